#include "fs/write/array_changes.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <linux/falloc.h>

#include "frame/array/array_partition.h"
#include "frame/array/array_scatter.h"
#include "frame/cframe/cframe.h"
#include "frame/numpy/npy_file.h"

namespace cframefs::fs {
namespace {

using frame::ArrayGeometry;
using frame::ChunkNumber;

// Chunk and block size of an array that replaces another one.
constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kBlockBytes = std::uint64_t{64} << 10;
constexpr std::string_view kShapeKey = "'shape': (";

codec::Failure too_large() {
  return codec::io_error(EFBIG, "write to an array", "the array would be too large");
}

codec::Failure no_whole_rows(std::uint64_t size, std::uint64_t head, std::uint64_t row) {
  return codec::invalid(
      fmt::format("size {} is not that of a header ({} bytes) and whole rows ({} bytes each)", size, head, row));
}

}  // namespace

/// C-order bytes that a commit puts into chunks. Offsets are flat.
struct ArrayChanges::Range {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  DirtyLayer::Chunk piece;  // null: zeros
  std::uint64_t inner = 0;  // offset in the piece
};

/// State that the chunks of one commit share.
struct ArrayChanges::Work {
  ArrayGeometry array;
  std::vector<Range> ranges;
  std::vector<std::pair<std::int64_t, std::uint32_t>> touched;  // chunk and range, sorted
  std::shared_ptr<const FrameSnapshot> snapshot;
  std::uint64_t kept_chunks = 0;  // chunks of the frame that stay
  ReadPath& read_path;

  codec::Result<Buffer> chunk(std::int64_t number) const;
};

codec::Result<Buffer> ArrayChanges::Work::chunk(std::int64_t number) const {
  const auto first = std::lower_bound(touched.begin(), touched.end(), std::pair(number, std::uint32_t{0}));
  const auto last = std::find_if(first, touched.end(), [number](const auto& one) { return one.first != number; });
  Buffer made = read_path.pool().get(array.chunk_bytes());
  const codec::ByteSpan plain = made.bytes();
  std::uint64_t covered = 0;
  for (auto one = first; one != last; ++one) {
    const Range& range = ranges[one->second];
    const auto bytes = frame::bytes_in_chunk(array, ChunkNumber{number}, range.begin, range.length);
    if (!bytes) return codec::Failure(bytes.error());
    covered += *bytes;
  }
  const bool is_kept = static_cast<std::uint64_t>(number) < kept_chunks;
  if (is_kept && covered < array.item_bytes(ChunkNumber{number})) {
    const auto got = read_path.read_chunk(*snapshot, ChunkNumber{number}, plain);
    if (!got) return codec::Failure(got.error());
    if (*got != plain.size()) {
      return codec::corrupt(
          fmt::format("chunk {} has {} bytes; chunks of the array have {}", number, *got, plain.size()));
    }
  } else {
    std::fill(plain.begin(), plain.end(), std::uint8_t{0});
  }
  for (auto one = first; one != last; ++one) {
    const Range& range = ranges[one->second];
    const auto put = range.piece ? frame::scatter(array, ChunkNumber{number}, range.begin,
                                                  range.piece->bytes().subspan(range.inner, range.length), plain)
                                 : frame::scatter_zeros(array, ChunkNumber{number}, range.begin, range.length, plain);
    if (!put) return codec::Failure(put.error());
  }
  return made;
}

codec::Result<std::optional<ArrayChanges>> ArrayChanges::of(const FrameSnapshot& snapshot) {
  auto array = frame::GrowableArray::of(snapshot.container());
  if (!array) return codec::Failure(array.error());
  const frame::FlatView& view = snapshot.view();
  if (!*array) {
    // The frame may have been an array whose metalayer is damaged, or show a header without being a known array.
    if (snapshot.container().metalayer_damage() || !view.head().empty()) {
      return codec::unsupported("the array cannot be written: its metalayer is damaged or of an unknown form");
    }
    return std::optional<ArrayChanges>();
  }
  const std::int32_t chunksize = snapshot.container().parameters().chunksize;
  const bool fits = chunksize <= 0 || static_cast<std::uint32_t>(chunksize) == (*array)->chunk_bytes();
  if (!fits && (*array)->can_change()) {
    return codec::unsupported(
        fmt::format("chunks of the array have {} bytes, chunks of its frame {}", (*array)->chunk_bytes(), chunksize));
  }
  return std::optional(ArrayChanges(std::move(**array), view.array() != nullptr, view.head().size()));
}

codec::Result<ArrayChanges> ArrayChanges::from_head(codec::ByteView bytes) {
  const auto file = frame::parse_npy_file(bytes);
  if (!file) return codec::Failure(file.error());
  if (file->fortran_order && file->shape.size() > 1) {
    return codec::unsupported("the .npy file is in Fortran order, which an n-d array cannot have");
  }
  const auto item_bytes = frame::array_bytes(file->shape, file->type.itemsize);
  if (!item_bytes) return too_large();
  const auto layer = frame::plan_array(file->shape, file->type, kChunkBytes, kBlockBytes);
  if (!layer) return codec::Failure(layer.error());
  codec::EncodeParameters plain;
  plain.typesize = static_cast<std::int32_t>(file->type.itemsize);
  const auto chunksize = static_cast<std::int32_t>(frame::chunk_items(*layer) * file->type.itemsize);
  const frame::NewFrame empty{plain, chunksize, {{"b2nd", frame::array_layer_image(*layer)}}};
  const auto container = frame::open_cframe(frame::memory_source(frame::empty_frame(empty)), nullptr);
  if (!container) return codec::Failure(container.error());
  auto array = frame::GrowableArray::of(**container);
  if (!array) return codec::Failure(array.error());
  const std::vector<std::uint8_t> head = (*array)->npy_head((*array)->rows());
  if (head.size() > bytes.size() || !std::equal(head.begin(), head.end(), bytes.begin())) {
    return codec::unsupported("the .npy header is not in the form that NumPy writes");
  }
  ArrayChanges made(std::move(**array), true, head.size());
  made.item_bytes_ = *item_bytes;
  made.chunksize_ = chunksize;
  return made;
}

frame::NewFrame ArrayChanges::new_frame(codec::EncodeParameters like, std::uint64_t rows) const {
  like.typesize = static_cast<std::int32_t>(array_.typesize());
  return {encoding(like), chunksize_, {{"b2nd", array_.layer_content(rows)}}};
}

std::uint64_t ArrayChanges::rows_at(std::uint64_t size) const {
  if (!is_flat_ || !array_.can_change()) return array_.rows();
  return (std::max(size, head_) - head_) / array_.row_bytes();
}

std::uint64_t ArrayChanges::whole(std::uint64_t size) const {
  if (!is_flat_ || !array_.can_change()) return size;
  return head_ + rows_at(size) * array_.row_bytes();
}

std::uint64_t ArrayChanges::to_commit(std::uint64_t size, std::uint64_t below, bool complete) const {
  if (!is_flat_ || !array_.can_change()) return size;
  const std::uint64_t rows = rows_at(size);
  const std::uint64_t per_chunk = array_.chunk_rows();
  assert(per_chunk > 0);  // otherwise the array could not change
  const std::uint64_t whole_chunks = head_ + rows / per_chunk * per_chunk * array_.row_bytes();
  return complete && whole_chunks > below ? whole_chunks : head_ + rows * array_.row_bytes();
}

/// Returns whether the bytes are those of the header, or of a header with another number of rows.
bool ArrayChanges::is_head(codec::ByteView bytes, std::uint64_t at, std::uint64_t size) const {
  const std::vector<std::uint8_t> head = head_at(size);
  const codec::ByteView part = codec::ByteView(head).subspan(at, bytes.size());
  if (std::equal(bytes.begin(), bytes.end(), part.begin(), part.end())) return true;
  if (bytes.size() != head_ || !array_.can_change()) return false;
  const auto key = std::search(head.begin(), head.end(), kShapeKey.begin(), kShapeKey.end());
  const auto digits = static_cast<std::size_t>(key - head.begin()) + kShapeKey.size();
  if (digits >= head.size()) return false;
  const std::string text(bytes.begin() + static_cast<std::ptrdiff_t>(digits), bytes.end());
  std::int64_t rows = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), rows);
  if (parsed.ec != std::errc() || rows < 0) return false;
  const std::vector<std::uint8_t> other = array_.npy_head(static_cast<std::uint64_t>(rows));
  return std::equal(bytes.begin(), bytes.end(), other.begin(), other.end());
}

codec::Result<std::uint64_t> ArrayChanges::check_write(std::uint64_t at, codec::ByteView bytes,
                                                       std::uint64_t size) const {
  const std::uint64_t end = at + bytes.size();
  if (end < at) return too_large();
  if (end > size) {
    if (!is_flat_ || !array_.can_change()) return too_large();
    // Count an incomplete last row as a whole one.
    if (auto fits = array_.geometry((end - 1 - std::min(head_, end - 1)) / array_.row_bytes() + 1); !fits) {
      return codec::Failure(fits.error());
    }
  }
  if (at >= head_) return std::uint64_t{0};
  const std::uint64_t in_head = std::min<std::uint64_t>(head_ - at, bytes.size());
  if (!is_head(bytes.first(in_head), at, size)) {
    return codec::invalid("the header of a .npy file cannot be changed: it follows from its array");
  }
  return in_head;
}

codec::Result<std::uint64_t> ArrayChanges::check_resize(std::uint64_t wanted, std::uint64_t present) const {
  if (wanted == present) return present;
  if (!is_flat_ || !array_.can_change()) {
    if (wanted > present) return too_large();
    return codec::invalid("cannot truncate: the array has a fixed number of rows");
  }
  if (wanted == 0) return head_;
  if (wanted < head_ || (wanted - head_) % array_.row_bytes() != 0) {
    return no_whole_rows(wanted, head_, array_.row_bytes());
  }
  if (auto fits = array_.geometry(rows_at(wanted)); !fits) return codec::Failure(fits.error());
  return wanted;
}

codec::Result<void> ArrayChanges::check_allocate(int mode, std::uint64_t at, std::uint64_t length,
                                                 std::uint64_t size) const {
  const std::uint64_t end = at + length < at ? ~std::uint64_t{0} : at + length;
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0 && at < head_) {
    return codec::invalid("cannot punch a hole into the header of a .npy file");
  }
  if ((mode & FALLOC_FL_KEEP_SIZE) != 0 || end <= size) return {};
  if (auto fits = check_resize(end, size); !fits) return codec::Failure(fits.error());
  return {};
}

codec::EncodeParameters ArrayChanges::encoding(codec::EncodeParameters frame) const {
  // Readers of arrays require that the blocks of a chunk are those of the array.
  frame.blocksize = static_cast<std::int32_t>(array_.block_bytes());
  return frame;
}

/// Returns the ranges that the layer changes, in order; zeros only up to `zeros_until` (flat).
std::vector<ArrayChanges::Range> ArrayChanges::ranges_of(const DirtyLayer& layer, std::uint64_t zeros_until) const {
  std::vector<Range> ranges;
  const std::uint64_t kept = std::max(layer.kept(), head_) - head_;
  const std::uint64_t size = layer.size() - head_;
  const auto add_zeros = [&](std::uint64_t from, std::uint64_t until) {
    until = std::min(until, zeros_until);
    if (from < until) ranges.push_back({from, until - from, nullptr, 0});
  };
  std::uint64_t done = kept;
  // Merge pieces and runs of zeros in order.
  auto piece = layer.chunks().whole().begin();
  auto zeros = layer.chunks().zeros().runs().begin();
  while (piece != layer.chunks().whole().end() || zeros != layer.chunks().zeros().runs().end()) {
    const bool is_piece = zeros == layer.chunks().zeros().runs().end() ||
                          (piece != layer.chunks().whole().end() && piece->first < zeros->first);
    const std::int64_t first = is_piece ? piece->first : zeros->first;
    const std::int64_t last = is_piece ? first + 1 : zeros->second;
    const std::uint64_t origin = static_cast<std::uint64_t>(first) * layer.chunksize();
    const std::uint64_t begin = std::max({origin, head_, layer.clean_until()}) - head_;
    const std::uint64_t end = std::min(static_cast<std::uint64_t>(last) * layer.chunksize(), layer.size()) - head_;
    if (begin < end) {
      add_zeros(done, begin);
      if (is_piece) {
        ranges.push_back({begin, end - begin, piece->second, begin + head_ - origin});
      } else {
        add_zeros(begin, end);
      }
      done = std::max(done, end);
    }
    if (is_piece) {
      ++piece;
    } else {
      ++zeros;
    }
  }
  add_zeros(done, size);
  return ranges;
}

/// Removes from `ranges` the chunks that become entirely zeros, and returns them: their number costs nothing. Chunks
/// are ordered by row, `in_layer` chunks in each row of chunks. Chunks from `kept` on are zeros anyway.
frame::ChunkIntervals ArrayChanges::take_zero_chunks(std::vector<Range>& ranges, std::uint64_t rows,
                                                     std::uint64_t in_layer, std::uint64_t kept) const {
  frame::ChunkIntervals zeros;
  const std::uint64_t outer_slab_bytes = array_.chunk_rows() * array_.row_bytes();
  assert(outer_slab_bytes > 0);  // otherwise the array could not change
  std::vector<Range> left;
  for (Range& range : ranges) {
    const std::uint64_t end = range.begin + range.length;
    const std::uint64_t first = (range.begin + outer_slab_bytes - 1) / outer_slab_bytes;
    // The last row of chunks may have fewer rows.
    const std::uint64_t last = (end == rows * array_.row_bytes() ? end + outer_slab_bytes - 1 : end) / outer_slab_bytes;
    if (range.piece || first >= last) {
      left.push_back(std::move(range));
      continue;
    }
    zeros.add(static_cast<std::int64_t>(first * in_layer), static_cast<std::int64_t>(std::min(last * in_layer, kept)));
    const std::uint64_t before = first * outer_slab_bytes;
    const std::uint64_t behind = std::min(last * outer_slab_bytes, end);
    if (range.begin < before) left.push_back({range.begin, before - range.begin, nullptr, 0});
    if (behind < end) left.push_back({behind, end - behind, nullptr, 0});
  }
  ranges = std::move(left);
  return zeros;
}

codec::Result<ArrayChanges::Plan> ArrayChanges::plan(const DirtyLayer& layer,
                                                     const std::shared_ptr<const FrameSnapshot>& snapshot,
                                                     ReadPath& read_path, bool is_new) const {
  const std::uint64_t rows = rows_at(layer.size());
  auto array = array_.geometry(rows);
  auto kept = array_.geometry(rows_at(layer.kept()));
  if (!array) return codec::Failure(array.error());
  if (!kept) return codec::Failure(kept.error());
  Plan plan;
  plan.nbytes = array->chunk_count() * array_.chunk_bytes();
  const std::uint64_t kept_chunks = is_new ? 0 : std::min(kept->chunk_count(), array->chunk_count());
  plan.kept_bytes = kept_chunks * array_.chunk_bytes();
  if (rows != array_.rows()) plan.layer = array_.layer_content(rows);
  // New rows in chunks that stay; chunks behind these are zeros anyway.
  const std::uint64_t kept_rows = rows_at(layer.kept());
  const std::uint64_t layers =
      array_.can_change() && !is_new ? (kept_rows + array_.chunk_rows() - 1) / array_.chunk_rows() : 0;
  const std::uint64_t zeros_until = layers * array_.chunk_rows() * array_.row_bytes();
  std::vector<Range> ranges = ranges_of(layer, zeros_until);
  if (array_.can_change() && rows > 0) {
    const std::uint64_t in_layer = array->chunk_count() / ((rows - 1) / array_.chunk_rows() + 1);
    plan.zeros = take_zero_chunks(ranges, rows, in_layer, kept_chunks);
  }
  const auto work =
      std::make_shared<Work>(Work{std::move(*array), std::move(ranges), {}, snapshot, kept_chunks, read_path});
  for (std::uint32_t i = 0; i < work->ranges.size(); ++i) {
    const Range& range = work->ranges[i];
    const auto note = [&](const ArrayGeometry::Part& part) -> codec::Result<void> {
      work->touched.emplace_back(part.chunk.value, i);
      return {};
    };
    if (auto done = work->array.for_each_part(range.begin, range.length, note); !done) {
      return codec::Failure(done.error());
    }
  }
  std::sort(work->touched.begin(), work->touched.end());
  work->touched.erase(std::unique(work->touched.begin(), work->touched.end()), work->touched.end());
  for (const auto& [number, range] : work->touched) {
    if (!plan.chunks.empty() && plan.chunks.back().number == number) continue;
    plan.chunks.push_back(
        {number, nullptr, array_.chunk_bytes(), [work, chunk = number] { return work->chunk(chunk); }});
  }
  return plan;
}

}  // namespace cframefs::fs
