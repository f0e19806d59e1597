// What may be written to a file that is an n-d array, and what becomes of it in a commit.
//
// Shown as C-order bytes, with the header of a .npy file in front or without, an array can be overwritten anywhere, and
// rows along its first dimension can be added and cut off. What programs write is kept in pieces of the file as they
// see it (a DirtyLayer of kPieceBytes); a commit takes the whole rows of it and puts their bytes into the chunks where
// they belong, each of which is read first unless it is covered. The part of a row at the end stays until it is whole.
// The header follows from the array: writing what it says already is fine, and so is another number of rows, because a
// page of an older header may be written back any time.
//
// Shown as its chunks, an array can be overwritten and nothing else: neither chunks nor padding may come or go.
//
// Thread safety: immutable. Ownership: a commit's plan shares the pieces. Units: bytes of the file as it is shown,
// unless they are called flat: those behind the header. Errors: invalid (would break the shape); io (EFBIG).
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

  /// None if the frame is no array. unsupported: it is one that cannot be told what to become.
  static codec::Result<std::optional<ArrayChanges>> of(const FrameSnapshot& snapshot);

  /// The array that a .npy file becomes whose first bytes, all of its header at least, are these: without rows, or with
  /// zeros if it cannot have any. unsupported: no frame can hold it, or its header is not the one that it would show.
  static codec::Result<ArrayChanges> from_head(codec::ByteView bytes);
  /// Whether a file of `size` bytes has no items, so that another header makes another array of it.
  bool is_empty(std::uint64_t size) const { return is_flat_ && head_ > 0 && size == head_; }
  /// The size of the file when it is new.
  std::uint64_t new_size() const { return array_.can_change() ? head_ : head_ + item_bytes_; }
  /// How its frame is made, with so many rows. `like`: parameters of the encoding.
  frame::NewFrame new_frame(codec::EncodeParameters like, std::uint64_t rows) const;

  /// Whether it is shown in C order; else as its chunks.
  bool is_flat() const { return is_flat_; }
  /// Bytes of the header.
  std::uint64_t head_bytes() const { return head_; }
  /// The header of a file of `size` bytes.
  std::vector<std::uint8_t> head_at(std::uint64_t size) const { return array_.npy_head(rows_at(size)); }
  std::uint64_t rows_at(std::uint64_t size) const;
  /// Less what is only a part of a row.
  std::uint64_t whole(std::uint64_t size) const;
  /// How much of a file of `size` bytes to commit, of which `below` bytes are: whole rows, or whole rows of chunks
  /// if there are some and only `complete` ones are wanted: a stream would encode the others twice.
  std::uint64_t to_commit(std::uint64_t size, std::uint64_t below, bool complete) const;

  /// Whether `bytes` may be written at `at` of a file of `size` bytes. Returns how many of them, in front, are header:
  /// they change nothing.
  codec::Result<std::uint64_t> check_write(std::uint64_t at, codec::ByteView bytes, std::uint64_t size) const;
  /// Returns the size that it will have: a file of 0 bytes still has its header, and no rows.
  codec::Result<std::uint64_t> check_resize(std::uint64_t wanted, std::uint64_t size) const;
  /// fallocate(2).
  codec::Result<void> check_allocate(int mode, std::uint64_t at, std::uint64_t length, std::uint64_t size) const;

  /// Plain bytes of a chunk of the frame.
  std::uint32_t chunk_bytes() const { return array_.chunk_bytes(); }
  /// How its chunks are encoded, given how the frame's are.
  codec::EncodeParameters encoding(codec::EncodeParameters frame) const;

  /// What a commit of a layer over `snapshot` comes to.
  struct Plan {
    std::uint64_t kept_bytes = 0;       // of the frame's chunks: what is behind goes first
    std::uint64_t nbytes = 0;           // of the frame in the end
    frame::ChunkIntervals zeros;        // of what is kept, these become zeros
    std::vector<ChunkToEncode> chunks;  // by number; none of the zeros
    std::vector<std::uint8_t> layer;    // content of the metalayer; empty: as it is
  };
  /// REQUIRES: is_flat(); layer.size() is whole.
  /// `is_new`: nothing of `snapshot` is in it.
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
  // Of one from from_head():
  std::uint64_t item_bytes_ = 0;  // all items'
  std::int32_t chunksize_ = 0;
};

}  // namespace cframefs::fs
