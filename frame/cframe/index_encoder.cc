#include "frame/cframe/index_encoder.h"

#include <algorithm>
#include <array>

#include "codec/chunk_encoder.h"
#include "codec/filter/shuffle.h"
#include "codec/stream/stream_encoders.h"

namespace cframefs::frame {

namespace {

using codec::ByteSpan;
using codec::ByteView;
using codec::store_le;

constexpr std::size_t kEntry = sizeof(std::int64_t);
constexpr std::size_t kBlockBytes = IndexEncoder::kBlockEntries * kEntry;
/// Indexes shorter than this many bytes are not compressed.
constexpr std::size_t kMinCompressed = 32;

constexpr std::uint8_t kVersion = 5;
constexpr std::uint8_t kExtended = 0x05;
constexpr std::uint8_t kMemcpyed = 0x02;
constexpr std::uint8_t kLz4Format = 1 << 5;
/// The slowest level of LZ4, which is still faster than the disk.
constexpr int kLevel = 9;

void put_i32(std::vector<std::uint8_t>& to, std::int32_t value) {
  std::array<std::uint8_t, sizeof value> bytes{};
  store_le(bytes.data(), value);
  codec::append(to, bytes);
}

std::vector<std::uint8_t> chunk_header(std::uint8_t flags, std::size_t nbytes, std::size_t blocksize) {
  std::vector<std::uint8_t> header(codec::kExtendedHeaderLength);
  header[0x00] = kVersion;
  header[0x01] = 1;
  header[0x02] = flags;
  header[0x03] = kEntry;
  store_le(&header[0x04], static_cast<std::int32_t>(nbytes));
  store_le(&header[0x08], static_cast<std::int32_t>(blocksize));
  header[0x10 + codec::kFilterSlots - 1] = static_cast<std::uint8_t>(codec::FilterId::shuffle);
  header[0x16] = codec::kLz4;
  return header;
}

void set_cbytes(std::vector<std::uint8_t>& chunk) {
  store_le(&chunk[0x0c], static_cast<std::int32_t>(chunk.size()));
}

/// Returns the entries as stored, in little endian.
std::vector<std::uint8_t> stored(const std::vector<std::int64_t>& entries) {
  std::vector<std::uint8_t> bytes(entries.size() * kEntry);
  for (std::size_t i = 0; i < entries.size(); ++i)
    store_le(&bytes[i * kEntry], entries[i]);
  return bytes;
}

std::vector<std::uint8_t> shuffled(const std::vector<std::int64_t>& entries) {
  std::vector<std::uint8_t> bytes(entries.size() * kEntry);
  codec::shuffle(kEntry, stored(entries), bytes);
  return bytes;
}

}  // namespace

/// Appends a run if all bytes are equal. Otherwise appends the compressed bytes, or the plain bytes if compression does
/// not make them shorter.
void IndexEncoder::put_stream(std::vector<std::uint8_t>& to, ByteView plain) {
  const std::uint8_t first = plain.front();
  if (std::all_of(plain.begin(), plain.end(), [first](std::uint8_t byte) { return byte == first; })) {
    put_i32(to, -static_cast<std::int32_t>(first));
    if (first != 0) to.push_back(1);  // the token of a run
    return;
  }
  const ByteSpan room = context_.scratch(codec::EncodeContext::Slot::chunk, plain.size()).first(plain.size());
  const codec::StreamEncoder encoder{.compcode = codec::kLz4, .clevel = kLevel, .dictionary = nullptr};
  const auto length = codec::encode_stream(context_.states(), encoder, plain, room);
  if (length && *length > 0 && *length < plain.size()) {
    put_i32(to, static_cast<std::int32_t>(*length));
    codec::append(to, room.first(*length));
    return;
  }
  put_i32(to, static_cast<std::int32_t>(plain.size()));
  codec::append(to, plain);
}

std::vector<std::uint8_t> IndexEncoder::split_streams() {
  const auto bytes = shuffled(open_);
  std::vector<std::uint8_t> streams;
  for (unsigned plane = 0; plane < kEntry; ++plane)
    put_stream(streams, ByteView(bytes).subspan(plane * open_.size(), open_.size()));
  return streams;
}

/// Encodes a short last block, which is not split but one stream.
std::vector<std::uint8_t> IndexEncoder::leftover_stream() {
  std::vector<std::uint8_t> streams;
  put_stream(streams, shuffled(open_));
  return streams;
}

std::int64_t IndexEncoder::count() const {
  return static_cast<std::int64_t>(blocks_.size()) * kBlockEntries + static_cast<std::int64_t>(open_.size());
}

void IndexEncoder::note(std::int64_t entry) {
  if (!first_) first_ = entry;
  if (entry != *first_) uniform_ = false;
}

void IndexEncoder::append(std::int64_t entry) {
  note(entry);
  open_.push_back(entry);
  if (open_.size() == kBlockEntries) close_block();
}

void IndexEncoder::append_run(std::int64_t entry, std::int64_t count) {
  while (count > 0) {
    if (open_.empty() && count >= kBlockEntries && last_uniform_ && last_uniform_->uniform == entry) {
      append_block(last_uniform_);
      count -= kBlockEntries;
    } else {
      append(entry);
      --count;
    }
  }
}

void IndexEncoder::append_all(std::span<const std::int64_t> entries) {
  for (auto from = entries.begin(); from != entries.end();) {
    const std::int64_t entry = *from;
    const auto until = std::find_if(from, entries.end(), [entry](std::int64_t other) { return other != entry; });
    append_run(entry, until - from);
    from = until;
  }
}

void IndexEncoder::append_block(const Block& block) {
  if (block->uniform) {
    note(*block->uniform);
  } else {
    uniform_ = false;
  }
  blocks_.push_back(block);
}

void IndexEncoder::close_block() {
  auto block = std::make_shared<EncodedBlock>();
  block->streams = split_streams();
  const std::int64_t first = open_.front();
  if (std::all_of(open_.begin(), open_.end(), [first](std::int64_t entry) { return entry == first; })) {
    block->uniform = first;
    last_uniform_ = block;
  }
  blocks_.push_back(std::move(block));
  open_.clear();
}

std::vector<std::uint8_t> IndexEncoder::finish() {
  const std::size_t plain = static_cast<std::size_t>(count()) * kEntry;
  if (plain < kMinCompressed) return memcpyed();
  if (uniform_) return repeated();
  auto chunk = compressed();
  // memcpyed() needs all entries in `open_`, so there must be no full block. Only such a small index can grow.
  if (chunk.size() > plain + codec::kExtendedHeaderLength && blocks_.empty()) return memcpyed();
  return chunk;
}

std::vector<std::uint8_t> IndexEncoder::repeated() const {
  const std::size_t plain = static_cast<std::size_t>(count()) * kEntry;
  auto chunk = chunk_header(kExtended, plain, std::min(plain, kBlockBytes));
  chunk[0x1f] = static_cast<std::uint8_t>(static_cast<unsigned>(codec::SpecialValue::repeated) << 4);
  std::array<std::uint8_t, kEntry> value{};
  store_le(value.data(), first_.value_or(0));
  codec::append(chunk, value);
  set_cbytes(chunk);
  return chunk;
}

std::vector<std::uint8_t> IndexEncoder::memcpyed() const {
  const std::size_t plain = open_.size() * kEntry;
  auto chunk = chunk_header(kExtended | kMemcpyed, plain, plain);
  codec::append(chunk, stored(open_));
  set_cbytes(chunk);
  return chunk;
}

std::vector<std::uint8_t> IndexEncoder::compressed() {
  const std::size_t plain = static_cast<std::size_t>(count()) * kEntry;
  // In a chunk of one block, blocksize is the length of that block. The block is not a short last one, so it is split.
  const std::size_t blocksize = std::min(plain, kBlockBytes);
  std::vector<std::uint8_t> tail;
  if (!open_.empty()) tail = blocks_.empty() ? split_streams() : leftover_stream();

  const std::size_t starts = blocks_.size() + (tail.empty() ? 0 : 1);
  std::size_t place = codec::kExtendedHeaderLength + starts * sizeof(std::int32_t);
  auto chunk = chunk_header(kExtended | kLz4Format, plain, blocksize);
  for (const Block& block : blocks_) {
    put_i32(chunk, static_cast<std::int32_t>(place));
    place += block->streams.size();
  }
  if (!tail.empty()) put_i32(chunk, static_cast<std::int32_t>(place));
  chunk.reserve(place + tail.size());
  for (const Block& block : blocks_)
    codec::append(chunk, block->streams);
  codec::append(chunk, tail);
  set_cbytes(chunk);
  return chunk;
}

}  // namespace cframefs::frame
