#include "tests/support/failing_files.h"

#include <algorithm>
#include <utility>

namespace cframefs::test {

using codec::Result;
using Kind = FileCall::Kind;

namespace {

constexpr std::uint64_t kSector = 512;

}  // namespace

void FailingFiles::count(Wanted wanted) {
  const std::lock_guard lock(mutex_);
  wanted_ = std::move(wanted);
  calls_ = 0;
}

void FailingFiles::fail(std::int64_t number, int error, How how) {
  const std::lock_guard lock(mutex_);
  calls_ = 0;
  fail_at_ = number;
  error_ = error;
  how_ = how;
  failed_.reset();
}

void FailingFiles::stop() {
  {
    const std::lock_guard lock(mutex_);
    fail_at_ = hold_at_ = 0;
  }
  changed_.notify_all();
}

std::optional<FileCall> FailingFiles::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

std::int64_t FailingFiles::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void FailingFiles::hold(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  calls_ = 0;
  hold_at_ = number;
  held_ = false;
}

bool FailingFiles::wait_until_held(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [this] { return held_; });
}

void FailingFiles::release() {
  {
    const std::lock_guard lock(mutex_);
    hold_at_ = 0;
  }
  changed_.notify_all();
}

std::optional<FailingFiles::Fault> FailingFiles::enter(FileCall call) {
  std::unique_lock lock(mutex_);
  if (wanted_ && !wanted_(call)) return std::nullopt;
  const std::int64_t number = ++calls_;
  if (number == hold_at_) {
    held_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return hold_at_ == 0; });
    held_ = false;
  }
  const bool goes_on = how_ == for_good || how_ == cut_short_for_good;
  if (fail_at_ == 0 || number < fail_at_ || (number > fail_at_ && !goes_on)) return std::nullopt;
  const bool half = number == fail_at_ && (how_ == cut_short || how_ == cut_short_for_good);
  if (!failed_) failed_ = std::move(call);
  return Fault{error_, half};
}

template <class Go>
auto FailingFiles::run(FileCall call, Go go) -> decltype(go()) {
  if (const auto fault = enter(std::move(call))) return codec::io_error(fault->error, "call that was made to fail");
  return go();
}

Result<frame::OpenFile> FailingFiles::open_at(frame::OpenFile dir, const std::string& path, int flags) {
  return run({Kind::open, dir, path}, [&] { return base_.open_at(dir, path, flags); });
}

Result<frame::OpenFile> FailingFiles::open_named(const std::string& path, int flags) {
  return run({Kind::open, {}, path}, [&] { return base_.open_named(path, flags); });
}

Result<frame::OpenFile> FailingFiles::reopen(frame::OpenFile file, int flags) {
  return run({Kind::open, file, {}}, [&] { return base_.reopen(file, flags); });
}

Result<std::vector<std::uint8_t>> FailingFiles::handle_of(frame::OpenFile file) {
  return run({Kind::status, file, {}}, [&] { return base_.handle_of(file); });
}

Result<frame::OpenFile> FailingFiles::open_handle(frame::OpenFile mount, codec::ByteView handle, int flags) {
  return run({Kind::open, mount, {}}, [&] { return base_.open_handle(mount, handle, flags); });
}

Result<std::size_t> FailingFiles::pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) {
  return run({Kind::read, file, {}}, [&] { return base_.pread(file, into, at); });
}

Result<struct stat> FailingFiles::status(frame::OpenFile file) {
  return run({Kind::status, file, {}}, [&] { return base_.status(file); });
}

Result<struct stat> FailingFiles::status_at(frame::OpenFile dir, const std::string& path) {
  return run({Kind::status, dir, path}, [&] { return base_.status_at(dir, path); });
}

Result<struct statvfs> FailingFiles::filesystem_status(frame::OpenFile file) {
  return run({Kind::status, file, {}}, [&] { return base_.filesystem_status(file); });
}

Result<std::vector<frame::DirectoryEntry>> FailingFiles::list(frame::OpenFile dir_fd) {
  return run({Kind::list, dir_fd, {}}, [&] { return base_.list(dir_fd); });
}

Result<std::string> FailingFiles::read_link(frame::OpenFile file) {
  return run({Kind::read_link, file, {}}, [&] { return base_.read_link(file); });
}

Result<frame::FileOffset> FailingFiles::seek(frame::OpenFile file, frame::FileOffset from, int whence) {
  return run({Kind::seek, file, {}}, [&] { return base_.seek(file, from, whence); });
}

Result<void> FailingFiles::check_rights(frame::OpenFile file, int rights) {
  return run({Kind::get_attribute, file, {}}, [&] { return base_.check_rights(file, rights); });
}

Result<std::vector<std::string>> FailingFiles::list_attributes(frame::OpenFile file) {
  return run({Kind::get_attribute, file, {}}, [&] { return base_.list_attributes(file); });
}

Result<std::string> FailingFiles::get_attribute(frame::OpenFile file, const std::string& name) {
  return run({Kind::get_attribute, file, name}, [&] { return base_.get_attribute(file, name); });
}

Result<frame::OpenFile> FailingFiles::create_at(frame::OpenFile dir, const std::string& path, int flags, mode_t mode) {
  return run({Kind::create, dir, path}, [&] { return base_.create_at(dir, path, flags, mode); });
}

Result<void> FailingFiles::pwrite(frame::OpenFile file, codec::ByteView from, frame::FileOffset at) {
  const auto fault = enter({Kind::write, file, {}});
  if (!fault) return base_.pwrite(file, from, at);
  if (fault->half) {
    // What lies in one sector is written whole or not at all.
    const std::uint64_t cut = std::max((at.value + from.size() / 2) / kSector * kSector, at.value);
    static_cast<void>(base_.pwrite(file, from.first(static_cast<std::size_t>(cut - at.value)), at));
  }
  return codec::io_error(fault->error, "call that was made to fail");
}

Result<void> FailingFiles::truncate(frame::OpenFile file, std::uint64_t size) {
  return run({Kind::truncate, file, {}}, [&] { return base_.truncate(file, size); });
}

Result<void> FailingFiles::allocate(frame::OpenFile file, int mode, frame::FileOffset at, std::uint64_t length) {
  return run({Kind::allocate, file, {}}, [&] { return base_.allocate(file, mode, at, length); });
}

Result<void> FailingFiles::sync(frame::OpenFile file, bool data_only) {
  return run({Kind::sync, file, {}}, [&] { return base_.sync(file, data_only); });
}

Result<void> FailingFiles::rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                     const std::string& to, unsigned flags) {
  return run({Kind::rename, to_dir, to}, [&] { return base_.rename_at(from_dir, from, to_dir, to, flags); });
}

Result<void> FailingFiles::remove_at(frame::OpenFile dir, const std::string& path, bool directory) {
  return run({Kind::remove, dir, path}, [&] { return base_.remove_at(dir, path, directory); });
}

Result<void> FailingFiles::make_directory_at(frame::OpenFile dir, const std::string& path, mode_t mode) {
  return run({Kind::make, dir, path}, [&] { return base_.make_directory_at(dir, path, mode); });
}

Result<void> FailingFiles::make_node_at(frame::OpenFile dir, const std::string& path, mode_t mode, dev_t device) {
  return run({Kind::make, dir, path}, [&] { return base_.make_node_at(dir, path, mode, device); });
}

Result<void> FailingFiles::link_at(frame::OpenFile file, frame::OpenFile to_dir, const std::string& to) {
  return run({Kind::make, to_dir, to}, [&] { return base_.link_at(file, to_dir, to); });
}

Result<void> FailingFiles::make_symlink_at(const std::string& target, frame::OpenFile dir, const std::string& path) {
  return run({Kind::make, dir, path}, [&] { return base_.make_symlink_at(target, dir, path); });
}

Result<void> FailingFiles::change_mode(frame::OpenFile file, mode_t mode) {
  return run({Kind::change_attributes, file, {}}, [&] { return base_.change_mode(file, mode); });
}

Result<void> FailingFiles::change_owner(frame::OpenFile file, uid_t user, gid_t group) {
  return run({Kind::change_attributes, file, {}}, [&] { return base_.change_owner(file, user, group); });
}

Result<void> FailingFiles::flush(frame::OpenFile file) {
  return run({Kind::sync, file, {}}, [&] { return base_.flush(file); });
}

Result<void> FailingFiles::set_times(frame::OpenFile file, const std::array<struct timespec, 2>& times) {
  return run({Kind::change_attributes, file, {}}, [&] { return base_.set_times(file, times); });
}

Result<void> FailingFiles::set_attribute(frame::OpenFile file, const std::string& name, const std::string& value,
                                         int flags) {
  return run({Kind::change_attributes, file, name}, [&] { return base_.set_attribute(file, name, value, flags); });
}

Result<void> FailingFiles::remove_attribute(frame::OpenFile file, const std::string& name) {
  return run({Kind::change_attributes, file, name}, [&] { return base_.remove_attribute(file, name); });
}

Result<bool> FailingFiles::try_lock(frame::OpenFile file, int operation) {
  return run({Kind::lock, file, {}}, [&] { return base_.try_lock(file, operation); });
}

Result<bool> FailingFiles::try_byte_lock(frame::OpenFile file, frame::FileOffset at, frame::ByteLock action) {
  return run({Kind::lock, file, {}}, [&] { return base_.try_byte_lock(file, at, action); });
}

}  // namespace cframefs::test
