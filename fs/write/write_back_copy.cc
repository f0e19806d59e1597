// Chunks that come encoded from another frame: stored and committed at once, without becoming plain bytes.
//
// While that is under way programs that would change the file wait: what they write may belong over what is copied.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "fs/write/write_back.h"

namespace cframefs::fs {
namespace {

// How often it is begun again because a program keeps writing.
constexpr int kStoreAttempts = 5;

/// Chunks that are in memory take a turn to be written, and keep it until they are committed: a crowd of copies leaves
/// time for other requests. A turn is taken when the frame is about to change, so that none waits for a lock with it.
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

/// Whether chunks of such a frame can be put at `at` of a file of `size` bytes.
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
    if (array_) return false;  // its chunks are not in the order of its bytes
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

/// What there was when it began is what there is again, or the new state. `end`: of what was copied.
void WriteBack::end_copy(codec::Result<void>& done, std::uint64_t end) {
  if (done) {
    done = adopt_commit();
    // The frame is another one than what is known of it.
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
  // Nobody has written since it began.
  const std::int32_t chunksize = writer_->chunksize();
  dirty_ = DirtyLayer(chunksize > 0 ? static_cast<std::uint64_t>(chunksize) : dirty_.chunksize(), size_below());
  if (done) last_touched_ = static_cast<std::int64_t>((end - 1) / dirty_.chunksize());
  copying_ = false;
  end_change();
  copied_.notify_all();
}

}  // namespace cframefs::fs
