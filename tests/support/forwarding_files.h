// The system's file operations, to derive doubles from that fail, count or change one thing.
//
// Thread safety: as the system's; what a double adds must see to its own.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/io/file_ops.h"

namespace cframefs::test {

class ForwardingFiles : public frame::FileOps {
 public:
  codec::Result<frame::OpenFile> open_at(frame::OpenFile dir, const std::string& path, int flags) override {
    return system_.open_at(dir, path, flags);
  }
  codec::Result<frame::OpenFile> open_named(const std::string& path, int flags) override {
    return system_.open_named(path, flags);
  }
  codec::Result<frame::OpenFile> reopen(frame::OpenFile fd, int flags) override { return system_.reopen(fd, flags); }
  codec::Result<std::vector<std::uint8_t>> handle_of(frame::OpenFile fd) override { return system_.handle_of(fd); }
  codec::Result<frame::OpenFile> open_handle(frame::OpenFile mount, codec::ByteView handle, int flags) override {
    return system_.open_handle(mount, handle, flags);
  }
  void close(frame::OpenFile fd) override { system_.close(fd); }
  std::optional<frame::SystemDescriptor> system_descriptor(frame::OpenFile fd) const override {
    return system_.system_descriptor(fd);
  }
  codec::Result<std::size_t> pread(frame::OpenFile fd, codec::ByteSpan into, frame::FileOffset at) override {
    return system_.pread(fd, into, at);
  }
  void note_access(frame::OpenFile fd) override { system_.note_access(fd); }
  void prefetch(frame::OpenFile fd, frame::FileOffset at, std::uint64_t length) override {
    system_.prefetch(fd, at, length);
  }
  codec::Result<struct stat> status(frame::OpenFile fd) override { return system_.status(fd); }
  codec::Result<struct stat> status_at(frame::OpenFile dir, const std::string& path) override {
    return system_.status_at(dir, path);
  }
  codec::Result<struct statvfs> filesystem_status(frame::OpenFile fd) override { return system_.filesystem_status(fd); }
  codec::Result<std::vector<frame::DirectoryEntry>> list(frame::OpenFile dir_fd) override {
    return system_.list(dir_fd);
  }
  codec::Result<std::string> read_link(frame::OpenFile fd) override { return system_.read_link(fd); }
  codec::Result<frame::FileOffset> seek(frame::OpenFile fd, frame::FileOffset from, int whence) override {
    return system_.seek(fd, from, whence);
  }
  codec::Result<void> check_rights(frame::OpenFile fd, int rights) override { return system_.check_rights(fd, rights); }
  codec::Result<std::vector<std::string>> list_attributes(frame::OpenFile fd) override {
    return system_.list_attributes(fd);
  }
  codec::Result<std::string> get_attribute(frame::OpenFile fd, const std::string& name) override {
    return system_.get_attribute(fd, name);
  }

  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override {
    return system_.create_at(dir, path, flags, mode);
  }
  codec::Result<void> pwrite(frame::OpenFile fd, codec::ByteView from, frame::FileOffset at) override {
    return system_.pwrite(fd, from, at);
  }
  codec::Result<void> truncate(frame::OpenFile fd, std::uint64_t size) override { return system_.truncate(fd, size); }
  codec::Result<void> allocate(frame::OpenFile fd, int mode, frame::FileOffset at, std::uint64_t length) override {
    return system_.allocate(fd, mode, at, length);
  }
  codec::Result<void> flush(frame::OpenFile fd) override { return system_.flush(fd); }
  codec::Result<void> sync(frame::OpenFile fd, bool data_only) override { return system_.sync(fd, data_only); }
  void start_writeback(frame::OpenFile fd, frame::FileOffset at, std::uint64_t length) override {
    system_.start_writeback(fd, at, length);
  }
  codec::Result<void> rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                const std::string& to, unsigned flags) override {
    return system_.rename_at(from_dir, from, to_dir, to, flags);
  }
  codec::Result<void> remove_at(frame::OpenFile dir, const std::string& path, bool directory) override {
    return system_.remove_at(dir, path, directory);
  }
  codec::Result<void> make_directory_at(frame::OpenFile dir, const std::string& path, mode_t mode) override {
    return system_.make_directory_at(dir, path, mode);
  }
  codec::Result<void> make_node_at(frame::OpenFile dir, const std::string& path, mode_t mode, dev_t device) override {
    return system_.make_node_at(dir, path, mode, device);
  }
  codec::Result<void> link_at(frame::OpenFile fd, frame::OpenFile to_dir, const std::string& to) override {
    return system_.link_at(fd, to_dir, to);
  }
  codec::Result<void> make_symlink_at(const std::string& target, frame::OpenFile dir,
                                      const std::string& path) override {
    return system_.make_symlink_at(target, dir, path);
  }
  codec::Result<void> change_mode(frame::OpenFile fd, mode_t mode) override { return system_.change_mode(fd, mode); }
  codec::Result<void> change_owner(frame::OpenFile fd, uid_t user, gid_t group) override {
    return system_.change_owner(fd, user, group);
  }
  codec::Result<void> set_times(frame::OpenFile fd, const std::array<struct timespec, 2>& times) override {
    return system_.set_times(fd, times);
  }
  codec::Result<void> set_attribute(frame::OpenFile fd, const std::string& name, const std::string& value,
                                    int flags) override {
    return system_.set_attribute(fd, name, value, flags);
  }
  codec::Result<void> remove_attribute(frame::OpenFile fd, const std::string& name) override {
    return system_.remove_attribute(fd, name);
  }
  codec::Result<bool> try_lock(frame::OpenFile fd, int operation) override { return system_.try_lock(fd, operation); }

 private:
  frame::FileOps& system_ = frame::system_files();
};

/// Counts opens, reads and bytes read; the read number `fail_at` (from 1) fails with EIO.
class FaultyFiles : public ForwardingFiles {
 public:
  explicit FaultyFiles(std::int64_t fail_at = 0) : fail_at_(fail_at) {}

  codec::Result<frame::OpenFile> open_at(frame::OpenFile dir, const std::string& path, int flags) override {
    ++opens_;
    return ForwardingFiles::open_at(dir, path, flags);
  }
  codec::Result<std::size_t> pread(frame::OpenFile fd, codec::ByteSpan into, frame::FileOffset at) override {
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
