#include "frame/container/chunk_prefix.h"

#include <algorithm>
#include <array>
#include <vector>

namespace cframefs::frame {

namespace {

using codec::ChunkDecoder;
using codec::ChunkHeader;
using codec::Failure;

/// Size of the first part of the starts; each further part doubles the total.
constexpr std::size_t kMinPiece = std::size_t{64} << 10;
/// Bytes per read of the length fields of variable-length blocks, which serves blocks that lie close together.
constexpr std::size_t kLengthsRead = 4096;

Result<std::vector<std::uint8_t>> read_tables(const ByteSource& source, FileOffset at, const ChunkHeader& header,
                                              ByteView head) {
  const auto size = static_cast<std::size_t>(ChunkDecoder::tables_size(header));
  const std::size_t starts_end = header.length + std::size_t{4} * codec::block_geometry(header).count;
  std::vector<std::uint8_t> tables(head.begin(),
                                   head.begin() + static_cast<std::ptrdiff_t>(std::min(head.size(), size)));
  std::size_t checked = header.length;
  for (;;) {
    const std::size_t there = std::min(tables.size(), starts_end);
    const std::size_t whole = (there - checked) / sizeof(std::int32_t) * sizeof(std::int32_t);
    const auto first = static_cast<std::uint32_t>((checked - header.length) / sizeof(std::int32_t));
    if (auto good = codec::check_block_starts(ByteView(tables).subspan(checked, whole), first, header, starts_end);
        !good) {
      return Failure(good.error());
    }
    checked += whole;
    if (tables.size() == size) return tables;
    const std::size_t had = tables.size();
    tables.resize(std::min(size, had + std::max(kMinPiece, had)));
    if (auto done = source.read(FileOffset{at.value + had}, ByteSpan(tables).subspan(had)); !done) {
      return Failure(done.error());
    }
  }
}

/// Reads the length field of each variable-length block. REQUIRES: the starts are checked.
Result<std::vector<std::int32_t>> read_lengths(const ByteSource& source, FileOffset at, const ChunkHeader& header,
                                               ByteView tables) {
  const std::uint32_t count = codec::block_geometry(header).count;
  std::vector<std::int32_t> lengths;
  lengths.reserve(count);
  std::array<std::uint8_t, kLengthsRead> window{};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  for (std::uint32_t block = 0; block < count; ++block) {
    const auto start = codec::load_le<std::uint32_t>(&tables[header.length + std::size_t{4} * block]);
    if (start < begin || start + sizeof(std::int32_t) > end) {
      const auto size = std::min<std::uint64_t>(kLengthsRead, static_cast<std::uint64_t>(header.cbytes) - start);
      if (auto done = source.read(FileOffset{at.value + start}, ByteSpan(window).first(size)); !done) {
        return Failure(done.error());
      }
      begin = start;
      end = start + size;
    }
    lengths.push_back(codec::load_le<std::int32_t>(&window[start - begin]));
  }
  return lengths;
}

}  // namespace

Result<ChunkDecoder> parse_chunk(const ByteSource& source, FileOffset at, const ChunkHeader& header, ByteView head,
                                 const codec::DecodeParams& environment) {
  const std::uint64_t size = ChunkDecoder::prefix_size(header);
  if (size <= head.size()) return ChunkDecoder::parse(head, environment);
  if (header.special == codec::SpecialValue::repeated) {
    std::vector<std::uint8_t> all(static_cast<std::size_t>(size));
    if (auto done = source.read(at, all); !done) return Failure(done.error());
    return ChunkDecoder::parse(all, environment);
  }
  const auto tables = read_tables(source, at, header, head);
  if (!tables) return Failure(tables.error());
  if (!header.vl_blocks) return ChunkDecoder::parse(*tables, environment);
  const auto lengths = read_lengths(source, at, header, *tables);
  if (!lengths) return Failure(lengths.error());
  return ChunkDecoder::parse_vl(*tables, *lengths, environment);
}

}  // namespace cframefs::frame
