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
    kept_ = std::min(kept_, size);
  }
  size_ = size;
}

void DirtyLayer::resize_whole_chunks(std::uint64_t size) {
  chunks_.erase(chunks_.lower_bound(static_cast<std::int64_t>(size / chunksize_)), chunks_.end());
  size_ = size;
}

void DirtyLayer::merge_onto(DirtyLayer& below) const {
  below.resize(std::min(below.size_, kept_));
  for (const auto& [number, chunk] : chunks_)
    below.chunks_[number] = chunk;
  below.size_ = size_;
}

}  // namespace cframefs::fs
