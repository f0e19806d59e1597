#include "fs/write/chunk_patches.h"

#include <algorithm>
#include <iterator>

namespace cframefs::fs {
namespace {

// Estimated cost of each piece in the map and the allocator.
constexpr std::uint64_t kPerPiece = 128;

std::uint64_t cost(const std::vector<std::uint8_t>& piece) {
  return piece.capacity() + kPerPiece;
}

}  // namespace

ChunkPatches::~ChunkPatches() {
  counter_.fetch_sub(footprint_, std::memory_order_relaxed);
}

void ChunkPatches::count(std::uint64_t before, std::uint64_t after) {
  footprint_ += after - before;
  counter_.fetch_add(after - before, std::memory_order_relaxed);
}

std::uint64_t ChunkPatches::written() const {
  std::uint64_t bytes = 0;
  for (const auto& [from, piece] : pieces_)
    bytes += piece.size();
  return bytes;
}

bool ChunkPatches::covers(std::uint64_t length) const {
  if (length == 0) return true;
  return !pieces_.empty() && pieces_.begin()->first == 0 && pieces_.begin()->second.size() >= length;
}

void ChunkPatches::write(std::uint64_t from, codec::ByteView bytes) {
  auto at = pieces_.upper_bound(from);
  const bool extends = at != pieces_.begin() && std::prev(at)->first + std::prev(at)->second.size() >= from;
  at = extends ? std::prev(at) : pieces_.emplace_hint(at, from, std::vector<std::uint8_t>());
  std::vector<std::uint8_t>& piece = at->second;
  std::uint64_t before = extends ? cost(piece) : 0;
  const std::uint64_t inner = from - at->first;
  const std::uint64_t over = std::min<std::uint64_t>(bytes.size(), piece.size() - inner);
  std::copy_n(bytes.begin(), over, piece.begin() + static_cast<std::ptrdiff_t>(inner));
  piece.insert(piece.end(), bytes.begin() + static_cast<std::ptrdiff_t>(over), bytes.end());
  // Merge the following pieces that the new one reaches.
  const std::uint64_t end = at->first + piece.size();
  auto next = std::next(at);
  while (next != pieces_.end() && next->first <= end) {
    const std::vector<std::uint8_t>& other = next->second;
    before += cost(other);
    const std::uint64_t known = std::min<std::uint64_t>(end - next->first, other.size());
    piece.insert(piece.end(), other.begin() + static_cast<std::ptrdiff_t>(known), other.end());
    next = pieces_.erase(next);
  }
  count(before, cost(piece));
}

void ChunkPatches::cut(std::uint64_t end) {
  while (!pieces_.empty() && std::prev(pieces_.end())->first >= end) {
    const auto last = std::prev(pieces_.end());
    count(cost(last->second), 0);
    pieces_.erase(last);
  }
  if (pieces_.empty()) return;
  const auto last = std::prev(pieces_.end());
  if (last->second.size() > end - last->first) last->second.resize(end - last->first);
}

void ChunkPatches::apply_to(codec::ByteSpan plain) const {
  for (const auto& [from, piece] : pieces_) {
    if (from >= plain.size()) return;
    std::copy_n(piece.begin(), std::min<std::uint64_t>(piece.size(), plain.size() - from),
                plain.begin() + static_cast<std::ptrdiff_t>(from));
  }
}

void ChunkPatches::merge_into(ChunkPatches& below) const {
  for (const auto& [from, piece] : pieces_)
    below.write(from, piece);
}

}  // namespace cframefs::fs
