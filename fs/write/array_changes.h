// Decides which writes to an n-d array are allowed, and plans how a commit stores them.
//
// An array that shows as C-order bytes, with or without a .npy header in front, can be overwritten anywhere, and rows
// along its first dimension can be appended and removed. Written bytes are kept in pieces of the shown file (a
// DirtyLayer of kPieceBytes). A commit takes the whole rows of them and puts their bytes into the chunks that they
// belong to; it first reads each chunk that they do not cover. An incomplete last row stays uncommitted until it is
// whole. The header follows from the array. A program may write the current header, or that of another number of rows,
// because the kernel may write back a page of an older header any time.
//
// An array that shows as its chunks can only be overwritten: neither chunks nor padding can be added or removed.
//
// Thread safety: immutable. Ownership: a commit's plan shares the pieces. Units: bytes of the file as it is shown;
// "flat" means relative to the end of the header. Errors: invalid (would break the shape); io (EFBIG).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "frame/array/growable_array.h"
#include "frame/cframe/frame_encoding.h"
#include "fs/read/frame_snapshot.h"
#include "fs/read/read_path.h"
#include "fs/write/chunk_encoders.h"
#include "fs/write/dirty_layer.h"

namespace cframefs::fs {

class ArrayChanges {
 public:
  static constexpr std::uint64_t kPieceBytes = std::uint64_t{64} << 10;

  /// Returns nullopt if the frame is no array. Error unsupported: the array cannot be written.
  static codec::Result<std::optional<ArrayChanges>> of(const FrameSnapshot& snapshot);

  /// Returns the array of a .npy file that begins with `bytes`, which contain at least its header. The array has no
  /// rows, or is filled with zeros if its number of rows is fixed. Error unsupported: no frame can hold the array, or
  /// its header differs from the one that the mount would show.
  static codec::Result<ArrayChanges> from_head(codec::ByteView bytes);
  /// Returns the size of a file with all rows that the header of from_head() names.
  std::uint64_t named_size() const { return head_ + item_bytes_; }
  /// Returns the size of the file when it is new.
  std::uint64_t new_size() const { return array_.can_change() ? head_ : head_ + item_bytes_; }
  /// Returns the parameters of a new frame for the array with `rows` rows. `like`: parameters of the encoding.
  frame::NewFrame new_frame(codec::EncodeParameters like, std::uint64_t rows) const;

  /// Returns whether the array shows in C order; otherwise it shows as its chunks.
  bool is_flat() const { return is_flat_; }
  /// Returns the size of the header.
  std::uint64_t head_bytes() const { return head_; }
  /// Returns the header of a file of `size` bytes.
  std::vector<std::uint8_t> head_at(std::uint64_t size) const { return array_.npy_head(rows_at(size)); }
  std::uint64_t rows_at(std::uint64_t size) const;
  /// Returns `size` without an incomplete last row.
  std::uint64_t whole(std::uint64_t size) const;
  /// Returns how much of a file of `size` bytes to commit, of which `below` bytes are committed: whole rows, or with
  /// `complete` only whole rows of chunks, if there are new ones: a stream would encode the other chunks twice.
  std::uint64_t to_commit(std::uint64_t size, std::uint64_t below, bool complete) const;

  /// Checks whether `bytes` may be written at `at` of a file of `size` bytes. Returns how many of the first bytes
  /// belong to the header; these change nothing.
  codec::Result<std::uint64_t> check_write(std::uint64_t at, codec::ByteView bytes, std::uint64_t size) const;
  /// Returns the new size of a file of `present` bytes: a file truncated to 0 bytes still has its header, and no rows.
  codec::Result<std::uint64_t> check_resize(std::uint64_t wanted, std::uint64_t present) const;
  /// Checks a fallocate(2).
  codec::Result<void> check_allocate(int mode, std::uint64_t at, std::uint64_t length, std::uint64_t size) const;

  /// Returns the uncompressed bytes of a chunk.
  std::uint32_t chunk_bytes() const { return array_.chunk_bytes(); }
  /// Returns the encoding parameters of the array's chunks, given those of the frame.
  codec::EncodeParameters encoding(codec::EncodeParameters frame) const;

  /// The changes that a commit of a layer over `snapshot` makes to the frame.
  struct Plan {
    std::uint64_t kept_bytes = 0;       // the frame is truncated to this many bytes of chunks first
    std::uint64_t nbytes = 0;           // of the frame in the end
    frame::ChunkIntervals zeros;        // kept chunks that become zeros
    std::vector<ChunkToEncode> chunks;  // by number; none of `zeros`
    std::vector<std::uint8_t> layer;    // new content of the metalayer; empty: unchanged
  };
  /// REQUIRES: is_flat(); layer.size() ends with a whole row. `is_new`: the array contains nothing of `snapshot`.
  codec::Result<Plan> plan(const DirtyLayer& layer, const std::shared_ptr<const FrameSnapshot>& snapshot,
                           ReadPath& read_path, bool is_new = false) const;
  const std::string& layer_name() const { return array_.layer_name(); }

 private:
  struct Range;
  struct Work;

  ArrayChanges(frame::GrowableArray array, bool is_flat, std::uint64_t head)
      : array_(std::move(array)), is_flat_(is_flat), head_(head) {}

  bool is_head(codec::ByteView bytes, std::uint64_t at, std::uint64_t size) const;
  std::vector<Range> ranges_of(const DirtyLayer& layer, std::uint64_t zeros_until) const;
  frame::ChunkIntervals take_zero_chunks(std::vector<Range>& ranges, std::uint64_t rows, std::uint64_t in_layer,
                                         std::uint64_t kept) const;

  frame::GrowableArray array_;
  bool is_flat_ = false;
  std::uint64_t head_ = 0;
  // Set by from_head() only:
  std::uint64_t item_bytes_ = 0;  // of all items
  std::int32_t chunksize_ = 0;
};

}  // namespace cframefs::fs
