// Definitions shared by the source files of FrameWriter; other files must not include this.
//
// Thread safety, errors: as FrameWriter.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "frame/write/frame_writer.h"

namespace cframefs::frame {

/// Bytes of a sector. A disk writes a sector completely or not at all. The header begins at a sector boundary.
inline constexpr std::size_t kSector = 512;

/// Filesystems allocate and free whole blocks, of this size or a multiple of it.
inline constexpr std::uint64_t kDiskBlock = 4096;

/// A state that is written but not committed yet.
struct FrameWriter::Next {
  std::vector<std::uint8_t> header;
  std::vector<std::pair<std::int64_t, std::int64_t>> entries;  // of pending chunks, by number
  std::vector<IndexEncoder::Block> index_blocks;
  std::shared_ptr<const FrameContainer> container;
  std::shared_ptr<const Descriptor> file;
  std::uint64_t dead_bytes = 0;
  SparseStates::State state;
};

/// Reads `length` bytes at `at`. corruption: the file ends before.
inline Result<std::vector<std::uint8_t>> read_bytes(FileOps& files, OpenFile file, FileOffset at,
                                                    std::uint64_t length) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(length));
  const auto got = files.pread(file, bytes, at);
  if (!got) return codec::Failure(got.error());
  if (*got < bytes.size()) return codec::corrupt("the file is truncated inside the frame");
  return bytes;
}

}  // namespace cframefs::frame
