// ChunkCopy, and the wait of a write-back for it.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "fs/write/chunk_copy.h"

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
  while (state_.is_copying())
    copied_.wait(mutex_);
}

/// Returns true if the first chunks decide about the parameters of the frame.
bool ChunkCopy::has_open_parameters() const {
  return file_.parameters_from_ != WriteBack::Parameters::fixed && file_.writer_->pending().chunk_count() == 0 &&
         file_.has_name_;
}

/// Returns whether the chunks can be stored at `at` of a file of `size` bytes.
bool ChunkCopy::fits(std::uint64_t at, std::uint64_t size, const CopiedChunks& copied, bool may_remake) const {
  const auto chunksize = static_cast<std::uint64_t>(copied.like.chunksize);
  if (at % chunksize != 0) return false;
  // A short chunk can only be the last one.
  if (copied.nbytes % chunksize != 0 && at + copied.nbytes < size) return false;
  const bool is_like = file_.writer_->pending().chunksize() == copied.like.chunksize &&
                       file_.writer_->parameters().typesize == copied.like.encode.typesize;
  const bool is_open = has_open_parameters();
  if (is_open) return may_remake;
  return is_like && !file_.writer_->parameters().use_dict;
}

codec::Result<ChunkCopy::Start> ChunkCopy::begin(std::uint64_t at, const CopiedChunks& copied, bool may_remake) {
  codec::MutexLock lock(file_.mutex_);
  if (auto usable = file_.check_usable(); !usable) return codec::Failure(usable.error());
  if (file_.is_dirty()) return Start::dirty;
  if (!fits(at, std::max(at, file_.dirty_.size()), copied, may_remake)) return Start::unfit;
  if (at > file_.dirty_.size()) return Start::behind;
  file_.state_.enter(Progress::copying);
  return Start::begun;
}

codec::Result<void> ChunkCopy::commit(std::uint64_t at, CopiedChunks copied, ChangePermit& permit) {
  file_.writer_->abandon();
  if (has_open_parameters()) {
    if (auto begun = permit.begin(); !begun) return begun;
    if (auto made = file_.remake(copied.like); !made) return made;
    permit.end();
  }
  auto number = static_cast<std::int64_t>(at / static_cast<std::uint64_t>(copied.like.chunksize));
  for (codec::EncodedChunk& chunk : copied.chunks) {
    if (auto stored = file_.writer_->store(frame::ChunkNumber{number++}, std::move(chunk)); !stored) return stored;
  }
  CopyPermit in_turn(file_.shared_.copy_turns, permit);
  return file_.commit_counted([&] { return file_.commit_writer(frame::Durability::ordered, in_turn); });
}

codec::Result<bool> ChunkCopy::store(std::uint64_t at, CopiedChunks copied, bool may_remake, ChangePermit& permit) {
  if (auto followed = file_.refresh(RefreshFor::change); !followed) return codec::Failure(followed.error());
  {
    codec::MutexLock lock(file_.mutex_);
    if (file_.array_) return false;  // the chunks of an array are not in the order of its bytes
  }
  for (int attempt = 0; attempt < kStoreAttempts; ++attempt) {
    if (auto done = file_.commit(frame::Durability::ordered); !done) return codec::Failure(done.error());
    std::unique_lock commits(file_.commit_mutex_);
    auto begun = begin(at, copied, may_remake);
    if (!begun) return codec::Failure(begun.error());
    if (*begun == Start::unfit) return false;
    if (*begun == Start::behind) {
      commits.unlock();
      if (auto allowed = permit.begin(); !allowed) return codec::Failure(allowed.error());
      if (auto grown = file_.resize(at); !grown) return codec::Failure(grown.error());
      permit.end();
    }
    if (*begun != Start::begun) continue;
    const std::uint64_t end = at + copied.nbytes;
    auto done = file_.waiting(CommitWait::lock, [&] { return commit(at, std::move(copied), permit); });
    file_.has_committed_ = file_.has_committed_ || done;
    if (done) file_.parameters_from_ = WriteBack::Parameters::fixed;
    codec::MutexLock lock(file_.mutex_);
    finish(done, end);
    if (!done) return codec::Failure(done.error());
    return true;
  }
  return false;
}

/// Restores the state before the copy, or adopts the new one. `end`: of the copied bytes.
void ChunkCopy::finish(codec::Result<void>& done, std::uint64_t end) {
  if (done) {
    done = file_.adopt_commit();
    // The frame on disk is not the one that snapshot_ describes.
    if (!done) file_.state_.lose_track();
  } else if (done.error().kind == codec::ErrorKind::stale) {
    file_.state_.lose_track();
  } else {
    file_.adopt_if_switched(done.error());
    file_.note_own_change();
  }
  if (!done) {
    file_.writer_->abandon();
    codec::Error& error = done.error();
    if (error.path.empty()) error.path = file_.place_.path;
    if (error.sys != EINTR) file_.shared_.once.error(error);
  }
  // No program has written since the copy began.
  const std::int32_t chunksize = file_.writer_->pending().chunksize();
  file_.dirty_ =
      DirtyLayer(chunksize > 0 ? static_cast<std::uint64_t>(chunksize) : file_.dirty_.chunksize(), file_.size_below());
  if (done) file_.last_touched_ = static_cast<std::int64_t>((end - 1) / file_.dirty_.chunksize());
  file_.end_change();
  file_.copied_.notify_all();
}

}  // namespace cframefs::fs
