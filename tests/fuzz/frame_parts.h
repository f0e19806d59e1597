// A frame in parts, which a fuzz target changes and puts together again: header, chunks, index, seal and trailer stay a
// whole that a reader accepts, so that what is hostile gets past the first checks.
//
// Thread safety: one thread per object. Units: bytes; places are offsets from the first byte of the frame.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codec/base/bytes.h"
#include "frame/container/container.h"
#include "tests/support/frame_builder.h"

namespace cframefs::test {

/// An entry of the index: a stored chunk, or a value as it stands in the index.
struct FrameEntry {
  std::optional<std::size_t> chunk;  // number in FrameParts::chunks
  std::int64_t value = 0;            // without a chunk; with one, what is added to its offset
};

/// A change of bytes: `value` is added to the 8 bytes at `place`, which is taken modulo the length of the part.
struct Poke {
  std::uint64_t place = 0;
  std::uint64_t value = 0;
};

enum class IndexForm : std::uint8_t { encoded, plain };

/// What seal.md section 1 calls "appended to" and "written whole".
enum class SealForm : std::uint8_t { none, appended, whole };

struct FrameParts {
  Bytes header;
  std::vector<Bytes> chunks;
  std::vector<std::size_t> order;  // in which the chunks lie, by their numbers
  std::vector<Bytes> gaps;         // dead bytes before each chunk, by its number
  std::vector<FrameEntry> entries;
  Bytes trailer;
  IndexForm index_form = IndexForm::encoded;
  SealForm seal_form = SealForm::none;
  std::size_t chunks_per_page = 3;
  // Changes of the seal's parts. The digest of each is that of the changed bytes.
  std::vector<Poke> pages;
  std::vector<Poke> root;
  std::vector<Poke> seal;
};

/// A frame that was put together, and where its parts are.
struct AssembledFrame {
  Bytes bytes;
  std::vector<codec::ByteRange> chunks;  // by their numbers
  codec::ByteRange index;
  codec::ByteRange trailer;
};

/// Takes a contiguous frame apart. Returns nullopt if the frame has more than `most_chunks` chunks, or chunks that
/// cannot be found. REQUIRES: `container` is the frame of these bytes.
std::optional<FrameParts> take_apart(codec::ByteView frame, const frame::Container& container,
                                     std::int64_t most_chunks);

/// The lengths in the header become those of the frame. REQUIRES: 1 <= entries.size().
AssembledFrame put_together(const FrameParts& parts);

/// Adds a value to 8 bytes, or to as many as there are.
void poke(codec::ByteSpan bytes, const Poke& change);

}  // namespace cframefs::test
