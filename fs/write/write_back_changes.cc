// The disk's side of a write-back: changes of the frame that contain no written data: metalayers, compaction,
// attributes, names.
#include <algorithm>
#include <utility>

#include "fs/util/log.h"
#include "fs/util/no_memory.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {
namespace {

// A frame is compacted if it has at least this many dead bytes, and at least half as many as live ones.
constexpr std::uint64_t kFewDeadBytes = std::uint64_t{8} << 10;

}  // namespace

codec::Result<void> WriteBack::commit_metadata(const std::function<codec::Result<void>(frame::FrameWriter&)>& change,
                                               ChangePermit& permit) {
  const std::lock_guard commits(commit_mutex_);
  {
    codec::MutexLock lock(mutex_);
    if (auto usable = check_usable(); !usable) return usable;
    busy_ = true;
  }
  writer_->abandon();
  auto done = change(*writer_);
  if (done) {
    done = waiting(Wait::lock,
                   [&] { return commit_counted([&] { return commit_writer(frame::Durability::ordered, permit); }); });
  }
  codec::MutexLock lock(mutex_);
  if (done) done = adopt_commit();
  if (!done) {
    writer_->abandon();
    stale_ = stale_ || done.error().kind == codec::ErrorKind::stale;
    if (!stale_) note_own_change();
  }
  end_change();
  return done;
}

void WriteBack::compact_if_wasteful() {
  const std::lock_guard commits(commit_mutex_);
  const std::uint64_t length = writer_->parameters().frame_length;
  const std::uint64_t dead = has_committed_ ? std::min(writer_->dead_bytes(), length) : 0;
  if (dead < kFewDeadBytes || dead < (length - dead) / 2 || !has_name_ || !writer_->has_room_for_copy()) return;
  {
    codec::MutexLock lock(mutex_);
    if (stale_ || committing_) return;
    busy_ = true;
  }
  auto done = or_no_memory([this] { return commit_counted([this] { return writer_->compact(); }); });
  codec::MutexLock lock(mutex_);
  if (done) done = adopt_state(true);
  if (!done) {
    codec::Error error = done.error();
    if (error.path.empty()) error.path = place_.path;
    if (error.sys != EBUSY) shared_.once.error(error);
  }
  end_change();
}

codec::Result<void> WriteBack::change_file(const std::function<codec::Result<void>()>& change) {
  const std::lock_guard commits(commit_mutex_);
  // What has changed the file since it was looked at last would be hidden by this change: follow() does not look while
  // a change is under way, and could not tell the two apart after it.
  static_cast<void>(reload_held());
  bool was_right = false;
  {
    codec::MutexLock lock(mutex_);
    auto disk = identity_on_disk();
    was_right = disk && *disk == identity_;
    busy_ = true;
  }
  auto done = change();
  codec::MutexLock lock(mutex_);
  refresh_identity(was_right);
  end_change();
  return done;
}

void WriteBack::note_identity(const frame::FileVersion& disk) {
  const frame::FileVersion before = std::exchange(identity_, disk);
  committed_(Committed{snapshot_, file_, before, identity_, true});
}

void WriteBack::refresh_identity(bool was_right) {
  auto disk = identity_on_disk();
  if (was_right && disk) note_identity(*disk);
}

WriteBack::Pause::Pause(std::shared_ptr<WriteBack> file) : file_(std::move(file)), commits_(file_->commit_mutex_) {
  codec::MutexLock lock(file_->mutex_);
  auto disk = file_->identity_on_disk();
  was_right_ = disk && *disk == file_->identity_;
  file_->busy_ = true;
}

WriteBack::Pause::~Pause() {
  codec::MutexLock lock(file_->mutex_);
  file_->refresh_identity(was_right_);
  file_->end_change();
}

void WriteBack::Pause::moved(FrameLocation place) {
  file_->place_ = std::move(place);
  file_->writer_->moved(file_->place_.directory->fd(), file_->place_.name);
}

void WriteBack::Pause::unlinked() {
  file_->writer_->unlinked();
  file_->has_name_ = false;
  file_->named_ = false;
}

}  // namespace cframefs::fs
