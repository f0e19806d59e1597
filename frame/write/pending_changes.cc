#include "frame/write/pending_changes.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "frame/cframe/frame_encoding.h"
#include "frame/cframe/index_encoder.h"

namespace cframefs::frame {

namespace {

using codec::invalid;
using codec::SpecialValue;

/// The most zero chunks of runs that store_odd_zeros() encodes.
constexpr std::int64_t kMaxStoredZeros = std::int64_t{1} << 18;

std::int64_t count_of(std::uint64_t nbytes, std::int32_t chunksize) {
  if (nbytes == 0) return 0;
  return static_cast<std::int64_t>((nbytes - 1) / static_cast<std::uint64_t>(chunksize) + 1);
}

std::int32_t length_of(std::int64_t chunk, std::uint64_t nbytes, std::int32_t chunksize) {
  const std::uint64_t begin = static_cast<std::uint64_t>(chunk) * static_cast<std::uint64_t>(chunksize);
  return static_cast<std::int32_t>(std::min<std::uint64_t>(static_cast<std::uint64_t>(chunksize), nbytes - begin));
}

}  // namespace

PendingChanges::PendingChanges(const FrameContainer& committed)
    : nbytes_(committed.parameters().nbytes),
      chunksize_(committed.parameters().chunksize),
      kept_(committed.chunk_count()) {}

std::int64_t PendingChanges::chunk_count() const {
  return count_of(nbytes_, chunksize_);
}

std::int32_t PendingChanges::chunk_nbytes(std::int64_t chunk) const {
  return length_of(chunk, nbytes_, chunksize_);
}

void PendingChanges::drop(std::int64_t chunk) {
  const auto found = chunks_.find(chunk);
  if (found == chunks_.end()) return;
  bytes_ -= found->second.bytes.size();
  chunks_.erase(found);
}

/// Undoes store_odd_zeros(), because the length of the chunks may change. They become ordinary zero chunks.
void PendingChanges::drop_odd_zeros() {
  for (const std::int64_t chunk : odd_zeros_) {
    drop(chunk);
    if (chunk < kept_) zeros_.add(chunk, chunk + 1);
  }
  odd_zeros_.clear();
}

void PendingChanges::put(std::int64_t chunk, codec::EncodedChunk encoded) {
  const auto [place, added] = chunks_.try_emplace(chunk);
  if (!added) bytes_ -= place->second.bytes.size();
  bytes_ += encoded.bytes.size();
  place->second = std::move(encoded);
  zeros_.remove(chunk, chunk + 1);
  changed_ = true;
}

void PendingChanges::store_zeros(std::int64_t begin, std::int64_t end) {
  drop_odd_zeros();
  while (true) {
    const auto found = chunks_.lower_bound(begin);
    if (found == chunks_.end() || found->first >= end) break;
    drop(found->first);
  }
  zeros_.add(begin, std::min(end, kept_));
  changed_ = changed_ || begin < end;
}

PendingChanges::Piece PendingChanges::piece(std::int64_t from) const {
  const auto next = chunks_.lower_bound(from);
  const std::int64_t until = next == chunks_.end() ? chunk_count() : next->first;
  if (until == from && next != chunks_.end()) return {Piece::Kind::changed, from + 1, &next->second};
  if (from >= kept_) return {Piece::Kind::zeros, until, nullptr};
  const auto zeros = zeros_.next(from);
  if (zeros && zeros->begin == from) return {Piece::Kind::zeros, std::min(zeros->end, until), nullptr};
  return {Piece::Kind::kept, std::min({kept_, until, zeros ? zeros->begin : kept_}), nullptr};
}

std::vector<ChunkIntervals::Run> PendingChanges::killed(std::int64_t committed_count) const {
  ChunkIntervals runs = zeros_;
  for (const auto& [number, encoded] : chunks_)
    runs.add(number, number + 1);
  runs.add(kept_, committed_count);
  runs.remove(committed_count, ChunkIntervals::kEnd);
  std::vector<ChunkIntervals::Run> found;
  for (const auto& [begin, end] : runs.runs())
    found.push_back({begin, end});
  return found;
}

Result<void> PendingChanges::store(ChunkNumber chunk, codec::EncodedChunk encoded) {
  drop_odd_zeros();
  const std::int64_t count = chunk_count();
  const std::int64_t number = chunk.value;
  if (number < 0 || number > count) {
    return invalid(fmt::format("store of chunk {} in a frame of {} chunks", number, count));
  }
  if (number >= IndexEncoder::kMaxEntries) return invalid("more chunks than an index can hold");
  if (encoded.nbytes <= 0) return invalid(fmt::format("chunk of {} bytes", encoded.nbytes));
  if (encoded.special == SpecialValue::none && encoded.bytes.size() < codec::kExtendedHeaderLength) {
    return invalid(fmt::format("encoded chunk of {} bytes is shorter than its header", encoded.bytes.size()));
  }
  // The first chunk decides the chunk size of an empty frame without one.
  if (chunksize_ <= 0) chunksize_ = encoded.nbytes;
  if (encoded.nbytes > chunksize_) {
    return invalid(fmt::format("chunk of {} bytes, at most {} are allowed", encoded.nbytes, chunksize_));
  }
  if (number + 1 < count && encoded.nbytes != chunksize_) {
    return invalid(fmt::format("chunk of {} bytes before the last chunk, must have {}", encoded.nbytes, chunksize_));
  }
  if (number + 1 >= count) {
    nbytes_ = static_cast<std::uint64_t>(number) * static_cast<std::uint64_t>(chunksize_) +
              static_cast<std::uint64_t>(encoded.nbytes);
  }
  put(number, std::move(encoded));
  return {};
}

Result<void> PendingChanges::resize(std::uint64_t nbytes) {
  if (nbytes == nbytes_) return {};
  drop_odd_zeros();
  if (nbytes > 0 && chunksize_ <= 0) return invalid("the frame has no chunk size yet");
  if (nbytes > 0 && (nbytes - 1) / static_cast<std::uint64_t>(chunksize_) >= IndexEncoder::kMaxEntries) {
    return invalid("more chunks than an index can hold");
  }
  const std::int64_t count = count_of(nbytes, chunksize_);
  while (!chunks_.empty() && std::prev(chunks_.end())->first >= count) {
    drop(std::prev(chunks_.end())->first);
  }
  kept_ = std::min(kept_, count);
  zeros_.remove(kept_, ChunkIntervals::kEnd);
  nbytes_ = nbytes;
  changed_ = true;
  return {};
}

/// Returns the zero chunks that store_odd_zeros() must encode.
Result<std::vector<std::int64_t>> PendingChanges::odd_zeros(const FrameContainer& committed) const {
  const std::int32_t typesize = committed.parameters().typesize;
  const auto is_odd = [&](std::int64_t chunk) { return chunk_nbytes(chunk) % typesize != 0; };
  const std::int64_t count = chunk_count();
  std::vector<std::int64_t> found;
  for (const auto& [chunk, encoded] : chunks_) {
    if (encoded.special == SpecialValue::zeros && is_odd(chunk)) found.push_back(chunk);
  }
  // Committed special chunks whose length has changed.
  for (const std::int64_t chunk : std::set<std::int64_t>{committed.chunk_count() - 1, count - 1}) {
    if (chunk < 0 || chunk >= std::min(kept_, count) || !is_odd(chunk)) continue;
    if (chunks_.contains(chunk) || zeros_.contains(chunk)) continue;
    const auto& before = committed.parameters();
    if (length_of(chunk, before.nbytes, before.chunksize) == chunk_nbytes(chunk)) continue;
    const auto entry = committed.index_entry(ChunkNumber{chunk});
    if (!entry) return codec::Failure(entry.error());
    if (*entry == layout::kZerosEntry || *entry == layout::kUninitialisedEntry) found.push_back(chunk);
  }
  // Chunks of zeros_, and chunks that resize() added. Only the last one can have another length than the others.
  ChunkIntervals runs = zeros_;
  runs.add(kept_, count);
  if (chunksize_ % typesize == 0) runs.remove(0, count - 1);
  std::int64_t most = kMaxStoredZeros;
  for (const auto& [begin, end] : runs.runs())
    most -= std::min(most + 1, end - begin);
  if (most < 0) return found;
  for (const auto& [begin, end] : runs.runs()) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      if (is_odd(chunk) && !chunks_.contains(chunk)) found.push_back(chunk);
    }
  }
  return found;
}

Result<void> PendingChanges::store_odd_zeros(const FrameContainer& committed) {
  drop_odd_zeros();
  const auto chunks = odd_zeros(committed);
  if (!chunks) return codec::Failure(chunks.error());
  codec::EncodeContext context;
  codec::EncodedChunk zeros;
  for (const std::int64_t chunk : *chunks) {
    const std::int32_t length = chunk_nbytes(chunk);
    if (zeros.nbytes != length) {
      const std::vector<std::uint8_t> plain(static_cast<std::size_t>(length));
      auto encoded = codec::encode_chunk(context, encode_parameters(committed.parameters()), plain);
      if (!encoded) return codec::Failure(encoded.error());
      zeros = std::move(*encoded);
    }
    if (!chunks_.contains(chunk)) odd_zeros_.insert(chunk);
    put(chunk, zeros);
  }
  return {};
}

Result<void> PendingChanges::check_length(const FrameContainer& committed, std::int64_t chunk) const {
  if (chunk < 0 || chunk >= std::min(kept_, chunk_count())) return {};
  if (chunks_.contains(chunk) || zeros_.contains(chunk)) return {};
  const std::int32_t was = length_of(chunk, committed.parameters().nbytes, committed.parameters().chunksize);
  if (was == chunk_nbytes(chunk)) return {};
  const auto entry = committed.index_entry(ChunkNumber{chunk});
  if (!entry) return codec::Failure(entry.error());
  if (*entry < 0) return {};  // special chunks have any length
  return invalid(fmt::format("chunk {} changes its length from {} to {} bytes, but was not stored again", chunk, was,
                             chunk_nbytes(chunk)));
}

Result<void> PendingChanges::check(const FrameContainer& committed) const {
  for (const auto& [number, encoded] : chunks_) {
    if (encoded.special == SpecialValue::none && encoded.nbytes != chunk_nbytes(number)) {
      return invalid(
          fmt::format("chunk {} was stored with {} bytes, must have {}", number, encoded.nbytes, chunk_nbytes(number)));
    }
  }
  // Only a last chunk can be short, so only the old and the new last chunk can have changed their lengths.
  if (auto same = check_length(committed, committed.chunk_count() - 1); !same) return same;
  return check_length(committed, chunk_count() - 1);
}

}  // namespace cframefs::frame
