#include "fs/write/dirty_layer.h"

#include <utility>

namespace cframefs::fs {

void DirtyLayer::put(std::int64_t number, Chunk chunk) {
  if (!chunk) return put_zeros(number, number + 1);
  chunks_.put(number, std::move(chunk));
}

void DirtyLayer::put_zeros(std::int64_t begin, std::int64_t end) {
  chunks_.put_zeros(begin, end, static_cast<std::int64_t>(kept_ / chunksize_ + (kept_ % chunksize_ != 0 ? 1 : 0)));
}

std::uint64_t DirtyLayer::length_of(std::int64_t number) const {
  const std::uint64_t begin = static_cast<std::uint64_t>(number) * chunksize_;
  return begin >= size_ ? 0 : std::min(chunksize_, size_ - begin);
}

void DirtyLayer::resize(std::uint64_t size) {
  if (size < size_) {
    chunks_.truncate(static_cast<std::int64_t>(size / chunksize_), size % chunksize_);
    kept_ = std::min(kept_, size);
    touch(size);
  }
  size_ = size;
}

DirtyLayer DirtyLayer::split_off_last() {
  const auto last = static_cast<std::int64_t>((size_ - 1) / chunksize_);
  const std::uint64_t begin = static_cast<std::uint64_t>(last) * chunksize_;
  DirtyLayer above(chunksize_, begin);
  above.put(last, *chunks_.find(last));
  above.grow(size_);
  chunks_.truncate(last, 0);
  size_ = begin;
  return above;
}

DirtyLayer DirtyLayer::split_off(std::uint64_t size) {
  DirtyLayer above(chunksize_, size);
  above.size_ = size_;
  const std::uint64_t inside = size % chunksize_;
  const auto edge = static_cast<std::int64_t>(size / chunksize_);
  above.chunks_ = chunks_.split_off(edge, inside);
  size_ = size;
  const bool shares_edge = inside != 0 && chunks_.find(edge) != nullptr;
  if (shares_edge) above.clean_until_ = size;
  return above;
}

void DirtyLayer::merge_into(DirtyLayer& below, const Make& make) const {
  below.resize(std::min(below.size_, kept_));
  for (const auto& [begin, end] : chunks_.zeros().runs())
    below.put_zeros(begin, end);
  for (const auto& [number, chunk] : chunks_.whole())
    below.put(number, chunk);
  for (const auto& [number, patches] : chunks_.patches()) {
    const Chunk* whole = below.chunks_.find(number);
    if (whole == nullptr) {
      below.chunks_.put_patches(number, patches);
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

DirtyLayer rechunked(const DirtyLayer& layer, std::uint64_t chunksize, const DirtyLayer::Make& make) {
  DirtyLayer result(chunksize, 0);
  result.grow(layer.size());
  const auto put = [&](std::uint64_t at, codec::ByteView bytes) {
    while (!bytes.empty()) {
      const std::uint64_t inside = at % chunksize;
      const std::uint64_t step = std::min<std::uint64_t>(bytes.size(), chunksize - inside);
      const auto target = static_cast<std::int64_t>(at / chunksize);
      if (result.chunks().find(target) == nullptr) result.put(target, make(chunksize));
      DirtyChunk& into = result.to_change(target);
      into.hold(inside, inside + step);
      std::copy_n(bytes.begin(), step, into.bytes().begin() + static_cast<std::ptrdiff_t>(inside));
      bytes = bytes.subspan(step);
      at += step;
    }
  };
  for (const auto& [number, chunk] : layer.chunks().whole()) {
    const std::uint64_t begin = static_cast<std::uint64_t>(number) * layer.chunksize();
    put(begin, chunk->bytes().first(std::min<std::uint64_t>(layer.length_of(number), chunk->bytes().size())));
  }
  // The patches lie over zeros, because kept() is 0.
  for (const auto& [number, patches] : layer.chunks().patches()) {
    const std::uint64_t begin = static_cast<std::uint64_t>(number) * layer.chunksize();
    for (const auto& [from, piece] : patches->pieces())
      put(begin + from, piece);
  }
  return result;
}

}  // namespace cframefs::fs
