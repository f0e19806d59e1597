// How a write-back handles a disk that is full, or nearly so.
//
// A frame contains dead bytes until it is rewritten. If the disk has no room for that, dead bytes are punched as holes,
// so that truncating, punching or overwriting makes room as on any filesystem.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "frame/write/frame_space.h"
#include "fs/util/no_memory.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {
namespace {

// Fewer dead bytes than this are not searched for.
constexpr std::uint64_t kFewToGiveBack = std::uint64_t{4} << 10;

/// Returns the bytes that programs may still use; nullopt if the filesystem does not tell.
std::optional<std::uint64_t> free_bytes(frame::ReadFileOps& files, frame::OpenFile file) {
  const auto disk = files.filesystem_status(file);
  if (!disk || disk->f_blocks == 0) return std::nullopt;
  return std::uint64_t{disk->f_bavail} * disk->f_frsize;
}

}  // namespace

/// REQUIRES: commit_mutex_.
codec::Result<void> WriteBack::commit_writer(frame::Durability durability, ChangePermit& permit,
                                             const std::function<codec::Result<void>()>& after_change) {
  const auto begin = [&] {
    const auto begun = permit.begin();
    return begun ? begin_change() : begun;
  };
  const auto commit = [&] { return writer_->commit(durability, {begin, after_change}); };
  auto done = commit();
  if (done || done.error().sys != ENOSPC) return done;
  // Needed also if the commit has failed before its first write, because punching changes the version of the file.
  if (auto begun = begin(); !begun) return begun;
  const auto punched = frame::FrameSpace(*writer_).punch_dead_bytes();
  return punched && *punched > 0 ? commit() : done;
}

/// Commits a truncation, without what was written after it, and punches its bytes. Only at a chunk boundary: a crash
/// leaves a version that programs have seen. EINVAL: the frame was not truncated like that. REQUIRES: commit_mutex_; a
/// commit is in progress.
codec::Result<void> WriteBack::commit_cut() {
  std::uint64_t kept = 0;
  {
    codec::MutexLock lock(mutex_);
    kept = committing_->kept();
    if (array_ || kept % committing_->chunksize() != 0 || kept >= writer_->pending().nbytes())
      return codec::io_error(EINVAL, "commit of a cut");
  }
  writer_->abandon();
  if (auto cut = writer_->resize(kept); !cut) return cut;
  if (auto done = commit_counted([this] { return commit_writer(frame::Durability::ordered); }); !done) return done;
  partly_committed_ = has_committed_ = true;
  {
    codec::MutexLock lock(mutex_);
    if (auto adopted = adopt_commit(); !adopted) return adopted;
    state_.enter(Progress::preparing);
  }
  if (auto begun = begin_change(); !begun) return begun;
  const auto punched = frame::FrameSpace(*writer_).punch_dead_bytes();
  codec::MutexLock lock(mutex_);
  note_own_change();
  state_.enter(Progress::preparing);
  return punched ? codec::Result<void>() : codec::Failure(punched.error());
}

void WriteBack::watch_overwrites() {
  frame::FrameSpace(*writer_).on_overwrite([this] {
    codec::MutexLock lock(mutex_);
    ++foreign_states_;
  });
}

/// REQUIRES: commit_mutex_; no commit is in progress.
void WriteBack::give_back_room() {
  const std::uint64_t dead = frame::FrameSpace(*writer_).dead_bytes();
  if (dead < kFewToGiveBack || dead == searched_dead_) return;
  const auto free = free_bytes(shared_.files, writer_->file()->handle());
  if (!free || *free > writer_->parameters().frame_length) return;
  searched_dead_ = dead;
  bool was_right = false;
  {
    codec::MutexLock lock(mutex_);
    if (!state_.is_usable()) return;
    const auto disk = identity_on_disk();
    was_right = disk && *disk == identity_;
    state_.enter(Progress::own_change);
  }
  // Ignore errors: the frame is valid with and without the holes.
  static_cast<void>(or_no_memory([this]() -> codec::Result<void> {
    const auto punched = frame::FrameSpace(*writer_).punch_dead_bytes();
    return punched ? codec::Result<void>() : codec::Failure(punched.error());
  }));
  codec::MutexLock lock(mutex_);
  refresh_identity(was_right);
  end_change();
}

/// Checks whether the disk has room for preallocated bytes. The compressed size is unknown, but is at most about the
/// uncompressed size, so the room must suffice for data that do not compress.
codec::Result<void> WriteBack::check_room(std::uint64_t at, std::uint64_t length) {
  std::uint64_t size = 0;
  std::shared_ptr<const frame::Descriptor> file;
  {
    codec::MutexLock lock(mutex_);
    size = dirty_.size();
    file = file_;
  }
  const std::uint64_t begin = std::max(at, size);
  const std::uint64_t end = capped_sum(at, length);
  if (begin >= end) return {};
  const auto free = free_bytes(shared_.files, file->handle());
  if (free && *free < end - begin) return codec::io_error(ENOSPC, "fallocate");
  return {};
}

}  // namespace cframefs::fs
