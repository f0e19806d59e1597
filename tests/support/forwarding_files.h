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
  codec::Result<frame::OpenFile> reopen(frame::OpenFile file, int flags) override {
    return system_.reopen(file, flags);
  }
  codec::Result<std::vector<std::uint8_t>> handle_of(frame::OpenFile file) override { return system_.handle_of(file); }
  codec::Result<frame::OpenFile> open_handle(frame::OpenFile mount, codec::ByteView handle, int flags) override {
    return system_.open_handle(mount, handle, flags);
  }
  void close(frame::OpenFile file) override { system_.close(file); }
  std::optional<frame::SystemDescriptor> system_descriptor(frame::OpenFile file) const override {
    return system_.system_descriptor(file);
  }
  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    return system_.pread(file, into, at);
  }
  void note_access(frame::OpenFile file) override { system_.note_access(file); }
  void prefetch(frame::OpenFile file, frame::FileOffset at, std::uint64_t length) override {
    system_.prefetch(file, at, length);
  }
  codec::Result<struct stat> status(frame::OpenFile file) override { return system_.status(file); }
  codec::Result<struct stat> status_at(frame::OpenFile dir, const std::string& path) override {
    return system_.status_at(dir, path);
  }
  codec::Result<struct statvfs> filesystem_status(frame::OpenFile file) override {
    return system_.filesystem_status(file);
  }
  codec::Result<std::vector<frame::DirectoryEntry>> list(frame::OpenFile dir_fd) override {
    return system_.list(dir_fd);
  }
  codec::Result<std::string> read_link(frame::OpenFile file) override { return system_.read_link(file); }
  codec::Result<frame::FileOffset> seek(frame::OpenFile file, frame::FileOffset from, int whence) override {
    return system_.seek(file, from, whence);
  }
  codec::Result<void> check_rights(frame::OpenFile file, int rights) override {
    return system_.check_rights(file, rights);
  }
  codec::Result<std::vector<std::string>> list_attributes(frame::OpenFile file) override {
    return system_.list_attributes(file);
  }
  codec::Result<std::string> get_attribute(frame::OpenFile file, const std::string& name) override {
    return system_.get_attribute(file, name);
  }

  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override {
    return system_.create_at(dir, path, flags, mode);
  }
  codec::Result<void> pwrite(frame::OpenFile file, codec::ByteView from, frame::FileOffset at) override {
    return system_.pwrite(file, from, at);
  }
  codec::Result<void> truncate(frame::OpenFile file, std::uint64_t size) override {
    return system_.truncate(file, size);
  }
  codec::Result<void> allocate(frame::OpenFile file, int mode, frame::FileOffset at, std::uint64_t length) override {
    return system_.allocate(file, mode, at, length);
  }
  codec::Result<void> flush(frame::OpenFile file) override { return system_.flush(file); }
  codec::Result<void> sync(frame::OpenFile file, bool data_only) override { return system_.sync(file, data_only); }
  void start_writeback(frame::OpenFile file, frame::FileOffset at, std::uint64_t length) override {
    system_.start_writeback(file, at, length);
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
  codec::Result<void> link_at(frame::OpenFile file, frame::OpenFile to_dir, const std::string& to) override {
    return system_.link_at(file, to_dir, to);
  }
  codec::Result<void> make_symlink_at(const std::string& target, frame::OpenFile dir,
                                      const std::string& path) override {
    return system_.make_symlink_at(target, dir, path);
  }
  codec::Result<void> change_mode(frame::OpenFile file, mode_t mode) override {
    return system_.change_mode(file, mode);
  }
  codec::Result<void> change_owner(frame::OpenFile file, uid_t user, gid_t group) override {
    return system_.change_owner(file, user, group);
  }
  codec::Result<void> set_times(frame::OpenFile file, const std::array<struct timespec, 2>& times) override {
    return system_.set_times(file, times);
  }
  codec::Result<void> set_attribute(frame::OpenFile file, const std::string& name, const std::string& value,
                                    int flags) override {
    return system_.set_attribute(file, name, value, flags);
  }
  codec::Result<void> remove_attribute(frame::OpenFile file, const std::string& name) override {
    return system_.remove_attribute(file, name);
  }
  codec::Result<bool> try_lock(frame::OpenFile file, int operation) override {
    return system_.try_lock(file, operation);
  }
  codec::Result<bool> try_byte_lock(frame::OpenFile file, frame::FileOffset at, frame::ByteLock action) override {
    return system_.try_byte_lock(file, at, action);
  }

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
  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    if (++reads_ == fail_at_) return codec::io_error(EIO, "pread");
    auto got = ForwardingFiles::pread(file, into, at);
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
