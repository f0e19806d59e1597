#include "tools/stream/frame_packer.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "codec/base/mutex.h"
#include "codec/chunk_encoder.h"
#include "frame/write/new_frame_file.h"
#include "tools/stream/block_decoder.h"

namespace cframefs::tools {

using codec::Result;

namespace {

constexpr std::size_t kChunksPerWorker = 4;
constexpr std::size_t kMaxMemory = std::size_t{1} << 30;  // uncompressed bytes in slots; at least two chunks

std::size_t slot_count(unsigned workers, std::size_t chunksize) {
  return std::clamp<std::size_t>(kMaxMemory / chunksize, 2, kChunksPerWorker * workers);
}

/// The state that threads share. A thread claims a chunk, reads it, and encodes it into the slot of its number. Then it
/// appends all chunks that are next in order, unless another thread is appending.
class Packer {
 public:
  Packer(Input& input, const ReadAt& read_at, const frame::NewFrame& frame, frame::NewFrameFile& file,
         std::size_t slots, const std::atomic<bool>& stop)
      : input_(input), read_at_(read_at), frame_(frame), stop_(stop), file_(file), slots_(slots) {}

  /// Processes chunks until there are no more. `progress`: called after each chunk; may be empty.
  void work(const std::function<void(const Packed&)>& progress) {
    codec::EncodeContext context;
    RawBuffer buffer;
    while (const auto piece = next_piece(buffer)) {
      Slot& slot = slots_[static_cast<std::size_t>(piece->number) % slots_.size()];
      Result<void> done;
      if (!piece->plain) {
        done = codec::Failure(piece->plain.error());
      } else if (!piece->plain->empty()) {
        done = codec::encode_into(context, frame_.encode, *piece->plain, slot.chunk);
      }
      put(slot, std::move(done));
      while (append_next()) {
      }
      if (progress) progress(packed());
    }
  }

  Packed packed() {
    codec::MutexLock lock(mutex_);
    return packed_;
  }
  Result<void> result() {
    codec::MutexLock lock(mutex_);
    return result_;
  }

 private:
  struct Slot {
    codec::EncodedChunk chunk;
    Result<void> done;
    bool ready = false;  // under mutex_; the other members belong to the encoding, then to the appending thread
  };
  struct Piece {
    std::int64_t number = 0;
    Result<codec::ByteView> plain;
  };

  /// Claims the next chunk and reads it. Returns none if there are no more.
  std::optional<Piece> next_piece(RawBuffer& buffer) {
    const auto chunksize = static_cast<std::size_t>(frame_.chunksize);
    if (read_at_) {
      const auto number = claim();
      if (!number) return std::nullopt;
      const codec::ByteSpan into = buffer.of(chunksize);
      return read_piece(*number, into, read_at_(into, static_cast<std::uint64_t>(*number) * chunksize));
    }
    codec::MutexLock reading(reading_);
    const auto number = claim();
    if (!number) return std::nullopt;
    const codec::ByteSpan into = buffer.of(chunksize);
    return read_piece(*number, into, input_.read(into));
  }

  /// Claims the next chunk number, and waits until its slot is free. Returns none if there are no more.
  std::optional<std::int64_t> claim() {
    codec::MutexLock lock(mutex_);
    while (result_ && next_ <= last_ && next_ - appended_ >= static_cast<std::int64_t>(slots_.size()))
      freed_.wait(mutex_);
    if (stop_.load() && result_) {
      result_ = codec::io_error(EINTR, "pack");
      freed_.notify_all();
    }
    if (!result_ || next_ > last_) return std::nullopt;
    return next_++;
  }

  Piece read_piece(std::int64_t number, codec::ByteSpan into, const Result<std::size_t>& got) {
    if (got && *got == into.size()) return {number, codec::ByteView(into)};
    codec::MutexLock lock(mutex_);
    last_ = std::min(last_, got && *got == 0 ? number - 1 : number);
    freed_.notify_all();
    if (!got) return {number, codec::Failure(got.error())};
    return {number, codec::ByteView(into).first(*got)};
  }

  void put(Slot& slot, Result<void> done) {
    codec::MutexLock lock(mutex_);
    slot.done = std::move(done);
    slot.ready = true;
  }

  /// Appends the next chunk. Returns false if it is not encoded yet, or another thread is appending, which calls this
  /// again.
  bool append_next() {
    Slot* slot = nullptr;
    {
      codec::MutexLock lock(mutex_);
      if (!result_ || appending_ || appended_ > last_) return false;
      slot = &slots_[static_cast<std::size_t>(appended_) % slots_.size()];
      if (!slot->ready) return false;
      appending_ = true;
    }
    auto done = std::move(slot->done);
    if (done) done = file_.append(slot->chunk);
    {
      codec::MutexLock lock(mutex_);
      appending_ = false;
      slot->ready = false;
      ++appended_;
      packed_ = {file_.nbytes(), file_.stored()};
      if (!done) result_ = std::move(done);
    }
    freed_.notify_all();
    return true;
  }

  Input& input_;
  const ReadAt& read_at_;
  const frame::NewFrame& frame_;
  const std::atomic<bool>& stop_;
  codec::Mutex reading_;       // taken before mutex_; reads a stream in order
  frame::NewFrameFile& file_;  // used by the thread that has set appending_
  std::vector<Slot> slots_;
  codec::Mutex mutex_;
  codec::CondVar freed_;  // a slot is free, or the packing ends
  Result<void> result_ GUARDED_BY(mutex_);
  Packed packed_ GUARDED_BY(mutex_);
  bool appending_ GUARDED_BY(mutex_) = false;
  std::int64_t next_ GUARDED_BY(mutex_) = 0;      // the next number to claim
  std::int64_t appended_ GUARDED_BY(mutex_) = 0;  // number of appended chunks
  // The last chunk as far as known; threads may have claimed numbers beyond it.
  std::int64_t last_ GUARDED_BY(mutex_) = std::numeric_limits<std::int64_t>::max();
};

}  // namespace

Result<Packed> pack_frame(Input& input, const frame::NewFrame& frame, frame::WriteTarget& out, unsigned workers,
                          const std::function<void(const Packed&)>& progress, const std::atomic<bool>& stop,
                          const std::vector<frame::Metalayer>& vlmetalayers, const ReadAt& read_at) {
  const std::size_t slots = slot_count(workers, static_cast<std::size_t>(frame.chunksize));
  frame::NewFrameFile file(out, frame);
  Packer packer(input, read_at, frame, file, slots, stop);
  std::vector<std::thread> helpers;
  for (std::size_t i = 1; i < std::min<std::size_t>(workers, slots); ++i)
    helpers.emplace_back([&packer] { packer.work(nullptr); });
  packer.work(progress);
  for (std::thread& helper : helpers)
    helper.join();
  if (auto result = packer.result(); !result) return codec::Failure(result.error());
  progress(packer.packed());
  if (auto done = file.finish(vlmetalayers); !done) return codec::Failure(done.error());
  return Packed{file.nbytes(), file.stored()};
}

}  // namespace cframefs::tools
