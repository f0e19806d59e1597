#include "fs/write/dirty_chunks.h"

#include <algorithm>
#include <utility>

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

const DirtyChunks::Chunk* DirtyChunks::find(std::int64_t number) const {
  static const Chunk kZeros;
  if (const auto found = whole_.find(number); found != whole_.end()) return &found->second;
  return zeros_.contains(number) ? &kZeros : nullptr;
}

const ChunkPatches* DirtyChunks::find_patches(std::int64_t number) const {
  const auto found = patches_.find(number);
  return found == patches_.end() ? nullptr : found->second.get();
}

DirtyChunk& DirtyChunks::to_change(std::int64_t number) {
  Chunk& chunk = whole_.at(number);
  if (chunk->early()) chunk = chunk->copy();
  return *chunk;
}

void DirtyChunks::put(std::int64_t number, Chunk chunk) {
  whole_[number] = std::move(chunk);
  patches_.erase(number);
  zeros_.remove(number, number + 1);
}

void DirtyChunks::put_zeros(std::int64_t begin, std::int64_t end, std::int64_t zeros_end) {
  zeros_.add(begin, std::min(end, zeros_end));
  whole_.erase(whole_.lower_bound(begin), whole_.lower_bound(end));
  patches_.erase(patches_.lower_bound(begin), patches_.lower_bound(end));
}

ChunkPatches& DirtyChunks::patch(std::int64_t number, std::uint64_t from, codec::ByteView bytes,
                                 std::atomic<std::uint64_t>& counter) {
  std::shared_ptr<ChunkPatches>& patches = patches_[number];
  if (!patches) patches = std::make_shared<ChunkPatches>(counter);
  patches->write(from, bytes);
  return *patches;
}

void DirtyChunks::put_patches(std::int64_t number, const std::shared_ptr<ChunkPatches>& patches) {
  std::shared_ptr<ChunkPatches>& known = patches_[number];
  if (known) {
    patches->merge_into(*known);
  } else {
    known = patches;
  }
}

void DirtyChunks::erase(std::int64_t begin, std::int64_t end) {
  whole_.erase(whole_.lower_bound(begin), whole_.lower_bound(end));
  zeros_.remove(begin, end);
  patches_.erase(patches_.lower_bound(begin), patches_.lower_bound(end));
}

void DirtyChunks::truncate(std::int64_t last, std::uint64_t inside) {
  erase(inside == 0 ? last : last + 1, frame::ChunkIntervals::kEnd);
  if (whole_.contains(last)) to_change(last).cut(inside);
  if (const auto patched = patches_.find(last); patched != patches_.end()) patched->second->cut(inside);
}

DirtyChunks DirtyChunks::split_off(std::int64_t edge, std::uint64_t inside) {
  DirtyChunks above;
  const auto first = whole_.lower_bound(edge);
  above.whole_.insert(first, whole_.end());
  whole_.erase(first, whole_.end());
  const bool shares_zeros = inside != 0 && zeros_.contains(edge);
  for (auto run = zeros_.next(edge); run; run = zeros_.next(run->end))
    above.zeros_.add(run->begin, run->end);
  zeros_.remove(edge, frame::ChunkIntervals::kEnd);
  if (shares_zeros) zeros_.add(edge, edge + 1);
  if (const auto shared = above.whole_.find(edge); inside != 0 && shared != above.whole_.end()) {
    const Chunk lower = shared->second->copy();
    lower->cut(inside);
    whole_[edge] = lower;
  }
  return above;
}

std::uint64_t DirtyChunks::footprint() const {
  std::uint64_t bytes = 0;
  for (const auto& [number, chunk] : whole_)
    bytes += chunk->footprint();
  for (const auto& [number, patches] : patches_)
    bytes += patches->footprint();
  return bytes;
}

}  // namespace cframefs::fs
