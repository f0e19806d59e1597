// The disk's side of a write-back: changes of the frame that contain no written data: metalayers, compaction,
// attributes, names.
#include <algorithm>
#include <utility>

#include <sys/stat.h>

#include "frame/write/frame_space.h"
#include "fs/util/log.h"
#include "fs/util/no_memory.h"
#include "fs/write/commit_pause.h"
#include "fs/write/mount_changes.h"

namespace cframefs::fs {
namespace {

// A frame is compacted if it has at least this many dead bytes, and at least half as many as live ones.
constexpr std::uint64_t kFewDeadBytes = std::uint64_t{8} << 10;
// Attempts to change metalayers while other programs commit.
constexpr int kMetadataAttempts = 5;

}  // namespace

codec::Result<void> MountChanges::commit_metadata(const std::function<codec::Result<void>(frame::FrameWriter&)>& change,
                                                  ChangePermit& permit) {
  const std::lock_guard commits(file_.commit_mutex_);
  for (int attempt = 1;; ++attempt) {
    auto done = commit_metadata_once(change, permit);
    if (done || done.error().kind != codec::ErrorKind::stale || attempt == kMetadataAttempts) return done;
    // The change joins what another program has committed before it.
    if (auto followed = file_.reload_held(); !followed) return followed;
  }
}

codec::Result<void> MountChanges::commit_metadata_once(
    const std::function<codec::Result<void>(frame::FrameWriter&)>& change, ChangePermit& permit) {
  {
    codec::MutexLock lock(file_.mutex_);
    if (auto usable = file_.check_usable(); !usable) return usable;
    file_.state_.enter(Progress::preparing);
  }
  file_.writer_->abandon();
  auto done = or_no_memory([&] { return change(*file_.writer_); });
  if (done) {
    done = file_.waiting(CommitWait::lock, [&] {
      return file_.commit_counted(
          [&] { return file_.commit_writer(frame::Durability::ordered, permit, [this] { return adopt_and_end(); }); });
    });
  }
  if (!done) file_.writer_->abandon();
  end_change(done);
  return done;
}

codec::Result<void> MountChanges::adopt_and_end() {
  codec::MutexLock lock(file_.mutex_);
  auto adopted = file_.adopt_commit();
  if (adopted) file_.end_change();
  return adopted;
}

void MountChanges::end_change(const codec::Result<void>& done) {
  codec::MutexLock lock(file_.mutex_);
  if (!file_.state_.is_busy()) return;
  if (!done) {
    // If the change has not begun, nothing is lost: refresh() takes over what the other program has made.
    if (done.error().kind == codec::ErrorKind::stale && file_.state_.has_begun_writing()) file_.state_.lose_track();
    file_.adopt_if_switched(done.error());
    if (file_.state_.is_usable()) file_.note_own_change();
  }
  file_.end_change();
}

void MountChanges::compact_if_wasteful() {
  const std::lock_guard commits(file_.commit_mutex_);
  const std::uint64_t length = file_.writer_->parameters().frame_length;
  const std::uint64_t dead =
      file_.has_committed_ ? std::min(frame::FrameSpace(*file_.writer_).dead_bytes(), length) : 0;
  if (dead < kFewDeadBytes || dead < (length - dead) / 2 || !file_.has_name_ ||
      !frame::FrameSpace(*file_.writer_).has_room_for_copy())
    return;
  {
    codec::MutexLock lock(file_.mutex_);
    if (!file_.state_.is_usable() || file_.committing_) return;
    file_.state_.enter(Progress::preparing);
  }
  const frame::CommitHooks hooks{[this] { return file_.begin_change(); }, [this] { return adopt_and_end(); }};
  const auto done = or_no_memory(
      [&] { return file_.commit_counted([&] { return frame::FrameSpace(*file_.writer_).compact(hooks); }); });
  end_change(done);
  // Another program that has changed the frame, or has it open, leaves the compaction to its own close.
  if (done || done.error().sys == EBUSY || done.error().kind == codec::ErrorKind::stale) return;
  try_in_memory([&] {
    codec::Error error = done.error();
    if (error.path.empty()) error.path = file_.place_.path;
    file_.shared_.once.error(error);
  });
}

codec::Result<void> MountChanges::change_file(const std::function<codec::Result<void>()>& change) {
  const std::lock_guard commits(file_.commit_mutex_);
  // What has changed the file since it was looked at last would be hidden by this change: follow() does not look while
  // a change is under way, and could not tell the two apart after it.
  static_cast<void>(file_.reload_held());
  bool was_right = false;
  {
    codec::MutexLock lock(file_.mutex_);
    auto disk = file_.identity_on_disk();
    was_right = disk && *disk == file_.identity_;
    file_.state_.enter(Progress::own_change);
  }
  auto done = or_no_memory(change);
  codec::MutexLock lock(file_.mutex_);
  file_.refresh_identity(was_right);
  file_.end_change();
  return done;
}

void MountChanges::note_times(const struct timespec& modified) {
  if (modified.tv_nsec == UTIME_OMIT) return;
  codec::MutexLock lock(file_.mutex_);
  file_.write_time_shown_ = true;
  if (modified.tv_nsec == UTIME_NOW) {
    clock_gettime(CLOCK_REALTIME_COARSE, &file_.last_write_);
  } else {
    file_.last_write_ = modified;
  }
}

void WriteBack::note_identity(const frame::FileVersion& disk) {
  // First what may lack memory: a caller may call again.
  host_->committed({snapshot_, file_, identity_, disk, true});
  identity_ = disk;
}

void WriteBack::refresh_identity(bool was_right) {
  if (!was_right) return;
  // Otherwise the change would be taken for another program's, and what is not committed would be lost.
  until_there_is_memory([this]() NO_THREAD_SAFETY_ANALYSIS {
    if (const auto version = own_version(*file_)) note_identity(*version);
  });
}

CommitPause::CommitPause(std::shared_ptr<WriteBack> file) : file_(std::move(file)), commits_(file_->commit_mutex_) {
  codec::MutexLock lock(file_->mutex_);
  auto disk = file_->identity_on_disk();
  was_right_ = disk && *disk == file_->identity_;
  file_->state_.enter(Progress::own_change);
}

CommitPause::~CommitPause() {
  codec::MutexLock lock(file_->mutex_);
  file_->refresh_identity(was_right_);
  file_->end_change();
}

bool CommitPause::would_wait(WriteBack& file) {
  return !std::unique_lock(file.commit_mutex_, std::try_to_lock).owns_lock();
}

void CommitPause::wait(WriteBack& file) {
  const std::lock_guard commits(file.commit_mutex_);
}

void CommitPause::moved(FrameLocation place) {
  until_there_is_memory([&] { file_->writer_->moved(place.directory->handle(), place.name); });
  file_->place_ = std::move(place);
}

void CommitPause::unlinked() {
  file_->writer_->unlinked();
  file_->has_name_ = false;
}

}  // namespace cframefs::fs
