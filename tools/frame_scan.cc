#include "tools/frame_scan.h"

#include <algorithm>
#include <cerrno>

#include "frame/chunk_reader.h"

namespace cframefs::tools {

using codec::CodecFormat;
using codec::SpecialValue;
using frame::ChunkNumber;

namespace {

std::string format_name(const codec::ChunkHeader& header) {
  switch (header.format) {
    case CodecFormat::blosclz:
      return "blosclz";
    case CodecFormat::lz4:
      return "lz4";
    case CodecFormat::snappy:
      return "snappy";
    case CodecFormat::zlib:
      return "zlib";
    case CodecFormat::zstd:
      return "zstd";
    case CodecFormat::registered:
      return "registered " + std::to_string(header.compcode);
    case CodecFormat::reserved:
    case CodecFormat::superchunk:
      break;
  }
  return "unknown";
}

void count_header(FrameScan& scan, const codec::ChunkHeader& header) {
  ++scan.headers;
  scan.nbytes += static_cast<std::uint64_t>(header.nbytes);
  scan.cbytes += static_cast<std::uint64_t>(header.cbytes);
  scan.least_chunk = std::min(scan.least_chunk, header.nbytes);
  scan.most_chunk = std::max(scan.most_chunk, header.nbytes);
  if (header.special == SpecialValue::repeated) {
    ++scan.repeated;
  } else if (header.special != SpecialValue::none) {
    ++scan.stored_special;
  } else if (header.memcpyed) {
    ++scan.memcpyed;
  } else {
    ++scan.codecs[format_name(header)];
    ++(header.dont_split || header.typesize == 1 ? scan.unsplit : scan.split);
    scan.dictionary += header.dictionary;
    scan.instrumented += header.instrumented;
    scan.variable_blocks += header.vl_blocks;
    if (!header.vl_blocks) {
      scan.least_blocksize = std::min(scan.least_blocksize.value_or(header.blocksize), header.blocksize);
      scan.most_blocksize = std::max(scan.most_blocksize.value_or(0), header.blocksize);
    }
  }
}

/// Whether the chunk is a stored one.
bool count_place(FrameScan& scan, const frame::ChunkPlace& place) {
  switch (place.special) {
    case SpecialValue::zeros:
      ++scan.zeros;
      return false;
    case SpecialValue::nan:
      ++scan.nan;
      return false;
    case SpecialValue::uninitialised:
      ++scan.uninitialised;
      return false;
    case SpecialValue::none:
    case SpecialValue::repeated:
      break;
  }
  ++scan.stored;
  return true;
}

codec::Result<void> note_damage(FrameScan& scan, const codec::Error& error) {
  if (error.kind == codec::ErrorKind::io) return tl::unexpected(error);
  ++scan.damaged;
  if (!scan.first_damage) scan.first_damage = error;
  return {};
}

codec::Result<void> scan_chunk(FrameScan& scan, const frame::Container& container, ChunkNumber chunk,
                               std::int64_t most_headers) {
  const auto place = container.place(chunk);
  if (!place) return note_damage(scan, place.error());
  if (!count_place(scan, *place)) return {};
  if (scan.headers >= most_headers) {
    scan.complete = false;
    return {};
  }
  const auto reader = frame::ChunkReader::open(container, chunk);
  if (!reader) return note_damage(scan, reader.error());
  count_header(scan, (*reader)->decoder().header());
  return {};
}

}  // namespace

codec::Result<FrameScan> scan_frame(const frame::Container& container, std::int64_t most_headers,
                                    const std::atomic<bool>& stop, Progress& progress) {
  FrameScan scan;
  scan.chunks = container.chunk_count();
  for (std::int64_t number = 0; number < scan.chunks; ++number) {
    if (stop.load(std::memory_order_relaxed)) return codec::io_error(EINTR, "read");
    if (number % 256 == 0) {
      progress.update(static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(scan.chunks));
    }
    if (auto scanned = scan_chunk(scan, container, ChunkNumber{number}, most_headers); !scanned) {
      return tl::unexpected(scanned.error());
    }
  }
  return scan;
}

}  // namespace cframefs::tools
