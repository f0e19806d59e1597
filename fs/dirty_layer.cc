#include "fs/dirty_layer.h"

namespace cframefs::fs {

std::shared_ptr<DirtyChunk> DirtyChunk::copy() const {
  auto copied = std::make_shared<DirtyChunk>(pool_, buffer_.bytes().size(), counter_);
  std::copy(buffer_.bytes().begin(), buffer_.bytes().end(), copied->bytes().begin());
  return copied;
}

DirtyChunk& DirtyLayer::to_change(std::int64_t number) {
  Chunk& chunk = chunks_.at(number);
  if (chunk->early()) chunk = chunk->copy();
  return *chunk;
}

const DirtyLayer::Chunk* DirtyLayer::find(std::int64_t number) const {
  auto found = chunks_.find(number);
  return found == chunks_.end() ? nullptr : &found->second;
}

const ChunkPatches* DirtyLayer::find_patches(std::int64_t number) const {
  const auto found = patches_.find(number);
  return found == patches_.end() ? nullptr : found->second.get();
}

void DirtyLayer::put(std::int64_t number, Chunk chunk) {
  patches_.erase(number);
  chunks_[number] = std::move(chunk);
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
    if (auto cut = chunks_.find(last); cut != chunks_.end() && cut->second) {
      const auto tail = to_change(last).bytes().subspan(inside);
      std::fill(tail.begin(), tail.end(), std::uint8_t{0});
    }
    patches_.erase(patches_.lower_bound(inside == 0 ? last : last + 1), patches_.end());
    if (auto cut = patches_.find(last); cut != patches_.end()) cut->second->cut(inside);
    kept_ = std::min(kept_, size);
    touch(size);
  }
  size_ = size;
}

void DirtyLayer::resize_whole_chunks(std::uint64_t size) {
  chunks_.erase(chunks_.lower_bound(static_cast<std::int64_t>(size / chunksize_)), chunks_.end());
  size_ = size;
}

void DirtyLayer::merge_onto(DirtyLayer& below, const Make& make) const {
  below.resize(std::min(below.size_, kept_));
  for (const auto& [number, chunk] : chunks_)
    below.put(number, chunk);
  for (const auto& [number, patches] : patches_) {
    const auto whole = below.chunks_.find(number);
    if (whole == below.chunks_.end()) {
      std::shared_ptr<ChunkPatches>& under = below.patches_[number];
      if (under) {
        patches->merge_onto(*under);
      } else {
        under = patches;
      }
      continue;
    }
    if (!whole->second) {
      whole->second = make(chunksize_);
      std::fill(whole->second->bytes().begin(), whole->second->bytes().end(), std::uint8_t{0});
    }
    patches->lay_over(below.to_change(number).bytes());
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
      if (!into) {
        into = make(chunksize);
        std::fill(into->bytes().begin(), into->bytes().end(), std::uint8_t{0});
      }
      std::copy_n(bytes.begin(), step, into->bytes().begin() + static_cast<std::ptrdiff_t>(at % chunksize));
      bytes = bytes.subspan(step);
      at += step;
    }
  };
  for (const auto& [number, chunk] : chunks_) {
    const std::uint64_t begin = static_cast<std::uint64_t>(number) * chunksize_;
    if (chunk) put(begin, chunk->bytes().first(length_of(number)));
  }
  // Over nothing but zeros.
  for (const auto& [number, patches] : patches_) {
    const std::uint64_t begin = static_cast<std::uint64_t>(number) * chunksize_;
    for (const auto& [from, piece] : patches->pieces())
      put(begin + from, piece);
  }
  return layer;
}

}  // namespace cframefs::fs
