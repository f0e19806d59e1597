#include "fs/write/dirty_layer.h"

namespace cframefs::fs {
namespace {

// The smallest allocation of a chunk. A chunk of at most kHeldWhole is allocated whole when it needs more than kLittle.
constexpr std::uint64_t kMinHeld = 4096;
constexpr std::uint64_t kLittle = std::uint64_t{64} << 10;
constexpr std::uint64_t kHeldWhole = std::uint64_t{4} << 20;

}  // namespace

void DirtyChunk::hold(std::uint64_t from, std::uint64_t to) {
  const std::uint64_t held = buffer_.bytes().size();
  if (to <= held) return;
  // A program that writes little at a time may never write more: double the allocation until the chunk is worth all of
  // it.
  std::uint64_t size = std::max({to, 2 * held, kMinHeld});
  if (size > kLittle && size_ <= kHeldWhole) size = size_;
  size = std::min(size, size_);
  Buffer larger = pool_.get(size);
  const codec::ByteSpan bytes = larger.bytes();
  std::copy(buffer_.bytes().begin(), buffer_.bytes().end(), bytes.begin());
  const auto zero = [&bytes](std::uint64_t begin, std::uint64_t end) {
    if (begin < end) std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), end - begin, std::uint8_t{0});
  };
  zero(held, from);
  zero(to, size);
  const std::uint64_t before = buffer_.capacity();
  counter_.fetch_add(larger.capacity() - before, std::memory_order_relaxed);
  buffer_ = std::move(larger);
}

std::vector<std::uint8_t> DirtyChunk::first(std::uint64_t length) const {
  const auto held = buffer_.bytes().first(std::min<std::uint64_t>(length, buffer_.bytes().size()));
  std::vector<std::uint8_t> bytes(held.begin(), held.end());
  bytes.resize(static_cast<std::size_t>(length));
  return bytes;
}

void DirtyChunk::cut(std::uint64_t end) {
  const codec::ByteSpan bytes = buffer_.bytes();
  const auto tail = bytes.subspan(std::min<std::uint64_t>(end, bytes.size()));
  std::fill(tail.begin(), tail.end(), std::uint8_t{0});
}

std::shared_ptr<DirtyChunk> DirtyChunk::copy() const {
  auto copied = std::make_shared<DirtyChunk>(pool_, size_, counter_);
  const codec::ByteSpan bytes = buffer_.bytes();
  copied->hold(0, bytes.size());
  std::copy(bytes.begin(), bytes.end(), copied->bytes().begin());
  return copied;
}

DirtyChunk& DirtyLayer::to_change(std::int64_t number) {
  Chunk& chunk = chunks_.at(number);
  if (chunk->early()) chunk = chunk->copy();
  return *chunk;
}

const DirtyLayer::Chunk* DirtyLayer::find(std::int64_t number) const {
  static const Chunk kZeros;
  if (const auto found = chunks_.find(number); found != chunks_.end()) return &found->second;
  return zeros_.contains(number) ? &kZeros : nullptr;
}

const ChunkPatches* DirtyLayer::find_patches(std::int64_t number) const {
  const auto found = patches_.find(number);
  return found == patches_.end() ? nullptr : found->second.get();
}

void DirtyLayer::put(std::int64_t number, Chunk chunk) {
  if (!chunk) return put_zeros(number, number + 1);
  chunks_[number] = std::move(chunk);
  patches_.erase(number);
  zeros_.remove(number, number + 1);
}

void DirtyLayer::put_zeros(std::int64_t begin, std::int64_t end) {
  const auto kept = static_cast<std::int64_t>(kept_ / chunksize_ + (kept_ % chunksize_ != 0 ? 1 : 0));
  zeros_.add(begin, std::min(end, kept));
  chunks_.erase(chunks_.lower_bound(begin), chunks_.lower_bound(end));
  patches_.erase(patches_.lower_bound(begin), patches_.lower_bound(end));
}

ChunkPatches& DirtyLayer::patch(std::int64_t number, std::uint64_t from, codec::ByteView bytes,
                                std::atomic<std::uint64_t>& counter) {
  std::shared_ptr<ChunkPatches>& patches = patches_[number];
  if (!patches) patches = std::make_shared<ChunkPatches>(counter);
  patches->write(from, bytes);
  return *patches;
}

std::uint64_t DirtyLayer::length_of(std::int64_t number) const {
  const std::uint64_t begin = static_cast<std::uint64_t>(number) * chunksize_;
  return begin >= size_ ? 0 : std::min(chunksize_, size_ - begin);
}

void DirtyLayer::resize(std::uint64_t size) {
  if (size < size_) {
    const std::uint64_t inside = size % chunksize_;
    const auto last = static_cast<std::int64_t>(size / chunksize_);
    chunks_.erase(chunks_.lower_bound(inside == 0 ? last : last + 1), chunks_.end());
    if (chunks_.contains(last)) to_change(last).cut(inside);
    zeros_.remove(inside == 0 ? last : last + 1, frame::ChunkIntervals::kEnd);
    patches_.erase(patches_.lower_bound(inside == 0 ? last : last + 1), patches_.end());
    if (auto cut = patches_.find(last); cut != patches_.end()) cut->second->cut(inside);
    kept_ = std::min(kept_, size);
    touch(size);
  }
  size_ = size;
}

void DirtyLayer::resize_whole_chunks(std::uint64_t size) {
  const auto count = static_cast<std::int64_t>(size / chunksize_);
  chunks_.erase(chunks_.lower_bound(count), chunks_.end());
  zeros_.remove(count, frame::ChunkIntervals::kEnd);
  size_ = size;
}

std::uint64_t DirtyLayer::footprint() const {
  std::uint64_t bytes = 0;
  for (const auto& [number, chunk] : chunks_)
    bytes += chunk->footprint();
  for (const auto& [number, patches] : patches_)
    bytes += patches->footprint();
  return bytes;
}

DirtyLayer DirtyLayer::split_off(std::uint64_t size) {
  DirtyLayer above(chunksize_, size);
  above.size_ = size_;
  const std::uint64_t inside = size % chunksize_;
  const auto edge = static_cast<std::int64_t>(size / chunksize_);
  const auto first = chunks_.lower_bound(edge);
  above.chunks_.insert(first, chunks_.end());
  chunks_.erase(first, chunks_.end());
  const bool shares_zeros = inside != 0 && zeros_.contains(edge);
  for (auto run = zeros_.next(edge); run; run = zeros_.next(run->end))
    above.zeros_.add(run->begin, run->end);
  zeros_.remove(edge, frame::ChunkIntervals::kEnd);
  if (shares_zeros) zeros_.add(edge, edge + 1);
  size_ = size;
  const auto shared = above.chunks_.find(edge);
  if (inside != 0 && shared != above.chunks_.end()) {
    const Chunk mine = shared->second->copy();
    mine->cut(inside);
    chunks_[edge] = mine;
  }
  if (shares_zeros || (inside != 0 && shared != above.chunks_.end())) above.clean_until_ = size;
  return above;
}

void DirtyLayer::merge_into(DirtyLayer& below, const Make& make) const {
  below.resize(std::min(below.size_, kept_));
  for (const auto& [begin, end] : zeros_.runs())
    below.put_zeros(begin, end);
  for (const auto& [number, chunk] : chunks_)
    below.put(number, chunk);
  for (const auto& [number, patches] : patches_) {
    const Chunk* whole = below.find(number);
    if (whole == nullptr) {
      std::shared_ptr<ChunkPatches>& under = below.patches_[number];
      if (under) {
        patches->merge_into(*under);
      } else {
        under = patches;
      }
      continue;
    }
    if (!*whole) below.put(number, make(chunksize_));
    DirtyChunk& into = below.to_change(number);
    const std::uint64_t end = std::min(patches->end(), chunksize_);
    into.hold(end, end);
    patches->apply_to(into.bytes());
  }
  below.size_ = size_;
  below.clean_until_ = 0;
}

DirtyLayer DirtyLayer::rechunked(std::uint64_t chunksize, const Make& make) const {
  DirtyLayer layer(chunksize, 0);
  layer.size_ = size_;
  const auto put = [&](std::uint64_t at, codec::ByteView bytes) {
    while (!bytes.empty()) {
      const std::uint64_t target = at / chunksize;
      const std::uint64_t step = std::min<std::uint64_t>(bytes.size(), (target + 1) * chunksize - at);
      Chunk& into = layer.chunks_[static_cast<std::int64_t>(target)];
      if (!into) into = make(chunksize);
      into->hold(at % chunksize, at % chunksize + step);
      std::copy_n(bytes.begin(), step, into->bytes().begin() + static_cast<std::ptrdiff_t>(at % chunksize));
      bytes = bytes.subspan(step);
      at += step;
    }
  };
  for (const auto& [number, chunk] : chunks_) {
    const std::uint64_t begin = static_cast<std::uint64_t>(number) * chunksize_;
    put(begin, chunk->bytes().first(std::min<std::uint64_t>(length_of(number), chunk->bytes().size())));
  }
  // The patches lie over zeros, because kept() is 0.
  for (const auto& [number, patches] : patches_) {
    const std::uint64_t begin = static_cast<std::uint64_t>(number) * chunksize_;
    for (const auto& [from, piece] : patches->pieces())
      put(begin + from, piece);
  }
  return layer;
}

}  // namespace cframefs::fs
