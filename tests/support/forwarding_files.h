// The system's file operations, to derive doubles from that fail, count or change one thing.
//
// Thread safety: as the system's; what a double adds must see to its own.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "frame/file_ops.h"

namespace cframefs::test {

class ForwardingFiles : public frame::FileOps {
 public:
  codec::Result<int> open_at(int dir, const std::string& path, int flags) override {
    return system_.open_at(dir, path, flags);
  }
  codec::Result<int> open_named(const std::string& path, int flags) override { return system_.open_named(path, flags); }
  void close(int fd) override { system_.close(fd); }
  codec::Result<std::size_t> pread(int fd, codec::ByteSpan into, frame::FileOffset at) override {
    return system_.pread(fd, into, at);
  }
  codec::Result<struct stat> status(int fd) override { return system_.status(fd); }
  codec::Result<struct stat> status_at(int dir, const std::string& path) override {
    return system_.status_at(dir, path);
  }
  codec::Result<struct statvfs> filesystem_status(int fd) override { return system_.filesystem_status(fd); }
  codec::Result<std::vector<frame::DirectoryEntry>> list(int dir_fd) override { return system_.list(dir_fd); }
  codec::Result<std::string> read_link(int dir, const std::string& path) override {
    return system_.read_link(dir, path);
  }
  codec::Result<frame::FileOffset> seek(int fd, frame::FileOffset from, int whence) override {
    return system_.seek(fd, from, whence);
  }
  codec::Result<std::vector<std::string>> list_attributes(int fd) override { return system_.list_attributes(fd); }
  codec::Result<std::string> get_attribute(int fd, const std::string& name) override {
    return system_.get_attribute(fd, name);
  }

 private:
  frame::FileOps& system_ = frame::system_files();
};

/// Counts opens, reads and bytes read; the read number `fail_at` (from 1) fails with EIO.
class FaultyFiles : public ForwardingFiles {
 public:
  explicit FaultyFiles(std::int64_t fail_at = 0) : fail_at_(fail_at) {}

  codec::Result<int> open_at(int dir, const std::string& path, int flags) override {
    ++opens_;
    return ForwardingFiles::open_at(dir, path, flags);
  }
  codec::Result<std::size_t> pread(int fd, codec::ByteSpan into, frame::FileOffset at) override {
    if (++reads_ == fail_at_) return codec::io_error(EIO, "pread");
    auto got = ForwardingFiles::pread(fd, into, at);
    if (got) bytes_ += static_cast<std::int64_t>(*got);
    return got;
  }

  std::int64_t opens() const { return opens_; }
  std::int64_t reads() const { return reads_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  const std::int64_t fail_at_;
  std::atomic<std::int64_t> opens_{0};
  std::atomic<std::int64_t> reads_{0};
  std::atomic<std::int64_t> bytes_{0};
};

}  // namespace cframefs::test
