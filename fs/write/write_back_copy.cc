// Stores compressed chunks of another frame and commits them at once, without decoding.
//
// Programs that would change the file wait until the copy is committed: their writes may have to overwrite the copied
// bytes.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "fs/write/write_back.h"

namespace cframefs::fs {
namespace {

// Attempts to begin, while a program keeps writing.
constexpr int kStoreAttempts = 5;

/// Limits how many copies write at once, which leaves time for other requests. A copy takes a turn when the frame is
/// about to change, so that no copy waits for a lock with a turn, and keeps it until its chunks are committed.
class CopyPermit final : public ChangePermit {
 public:
  CopyPermit(codec::Turns& turns, ChangePermit& permit) : turns_(turns), permit_(permit) {}
  codec::Result<void> begin() override {
    if (!turn_) turn_ = turns_.take_while_they_move(codec::Turns::kPatience, [] { return true; });
    return permit_.begin();
  }
  void end() override { permit_.end(); }

 private:
  codec::Turns& turns_;
  ChangePermit& permit_;
  codec::Turns::Turn turn_;
};

}  // namespace

void WriteBack::wait_until_copied() {
  while (copying_)
    copied_.wait(mutex_);
}

/// Returns whether the chunks can be stored at `at` of a file of `size` bytes.
bool WriteBack::takes_copied(std::uint64_t at, std::uint64_t size, const CopiedChunks& copied, bool may_remake) const {
  const auto chunksize = static_cast<std::uint64_t>(copied.like.chunksize);
  if (at % chunksize != 0) return false;
  // A short chunk can only be the last one.
  if (copied.nbytes % chunksize != 0 && at + copied.nbytes < size) return false;
  const bool is_like =
      writer_->chunksize() == copied.like.chunksize && writer_->parameters().typesize == copied.like.encode.typesize;
  const bool is_open = choose_ && writer_->chunk_count() == 0 && has_name_;
  if (is_open) return may_remake;
  return is_like && !writer_->parameters().use_dict;
}

codec::Result<WriteBack::CopyStart> WriteBack::begin_copy(std::uint64_t at, const CopiedChunks& copied,
                                                          bool may_remake) {
  codec::MutexLock lock(mutex_);
  if (auto usable = check_usable(); !usable) return codec::Failure(usable.error());
  if (is_dirty()) return CopyStart::dirty;
  if (!takes_copied(at, std::max(at, dirty_.size()), copied, may_remake)) return CopyStart::unfit;
  if (at > dirty_.size()) return CopyStart::behind;
  busy_ = copying_ = true;
  return CopyStart::begun;
}

codec::Result<void> WriteBack::commit_copied(std::uint64_t at, CopiedChunks copied, ChangePermit& permit) {
  writer_->abandon();
  if (choose_ && writer_->chunk_count() == 0 && has_name_) {
    if (auto begun = permit.begin(); !begun) return begun;
    if (auto made = remake(copied.like); !made) return made;
    permit.end();
  }
  auto number = static_cast<std::int64_t>(at / static_cast<std::uint64_t>(copied.like.chunksize));
  for (codec::EncodedChunk& chunk : copied.chunks) {
    if (auto stored = writer_->store(frame::ChunkNumber{number++}, std::move(chunk)); !stored) return stored;
  }
  CopyPermit in_turn(shared_.copy_turns, permit);
  return commit_counted([&] { return commit_writer(frame::Durability::ordered, in_turn); });
}

codec::Result<bool> WriteBack::store_copied(std::uint64_t at, CopiedChunks copied, bool may_remake,
                                            ChangePermit& permit) {
  if (auto followed = refresh(); !followed) return codec::Failure(followed.error());
  {
    codec::MutexLock lock(mutex_);
    if (array_) return false;  // the chunks of an array are not in the order of its bytes
  }
  for (int attempt = 0; attempt < kStoreAttempts; ++attempt) {
    if (auto done = commit(frame::Durability::ordered); !done) return codec::Failure(done.error());
    std::unique_lock commits(commit_mutex_);
    auto begun = begin_copy(at, copied, may_remake);
    if (!begun) return codec::Failure(begun.error());
    if (*begun == CopyStart::unfit) return false;
    if (*begun == CopyStart::behind) {
      commits.unlock();
      if (auto allowed = permit.begin(); !allowed) return codec::Failure(allowed.error());
      if (auto grown = resize(at); !grown) return codec::Failure(grown.error());
      permit.end();
    }
    if (*begun != CopyStart::begun) continue;
    const std::uint64_t end = at + copied.nbytes;
    auto done = waiting(Wait::lock, [&] { return commit_copied(at, std::move(copied), permit); });
    has_committed_ = has_committed_ || done;
    if (done) choose_ = nullptr;
    codec::MutexLock lock(mutex_);
    end_copy(done, end);
    if (!done) return codec::Failure(done.error());
    return true;
  }
  return false;
}

/// Restores the state before the copy, or adopts the new one. `end`: of the copied bytes.
void WriteBack::end_copy(codec::Result<void>& done, std::uint64_t end) {
  if (done) {
    done = adopt_commit();
    // The frame on disk is not the one that snapshot_ describes.
    if (!done) stale_ = true;
  } else if (done.error().kind == codec::ErrorKind::stale) {
    stale_ = true;
  } else {
    note_own_change();
  }
  if (!done) {
    writer_->abandon();
    codec::Error& error = done.error();
    if (error.path.empty()) error.path = place_.path;
    if (error.sys != EINTR) shared_.once.error(error);
  }
  // No program has written since the copy began.
  const std::int32_t chunksize = writer_->chunksize();
  dirty_ = DirtyLayer(chunksize > 0 ? static_cast<std::uint64_t>(chunksize) : dirty_.chunksize(), size_below());
  if (done) last_touched_ = static_cast<std::int64_t>((end - 1) / dirty_.chunksize());
  copying_ = false;
  end_change();
  copied_.notify_all();
}

}  // namespace cframefs::fs
