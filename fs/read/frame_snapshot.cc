#include "fs/read/frame_snapshot.h"

#include <algorithm>
#include <utility>

namespace cframefs::fs {
namespace {

// Memory of kept chunk readers: for each snapshot, for all snapshots, and the least for each, whatever their number.
constexpr std::size_t kReaderBytes = std::size_t{512} << 10;
constexpr std::size_t kAllReaderBytes = std::size_t{16} << 20;
constexpr std::size_t kFewReaderBytes = std::size_t{4} << 10;
constexpr std::uint64_t kCellBytes = std::uint64_t{64} << 10;

/// Returns how many of the blocks in a row make one cell.
std::uint32_t blocks_in_cell(const codec::ChunkDecoder& decoder, std::uint32_t row_blocks) {
  const std::uint64_t blocks = decoder.block_count();
  const std::uint64_t bytes = std::max<std::uint64_t>(decoder.nbytes(), 1);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kCellBytes * blocks / bytes, 1, row_blocks));
}

}  // namespace

std::atomic<std::size_t> FrameSnapshot::count_{0};

FrameSnapshot::FrameSnapshot(std::uint64_t id, frame::FileVersion identity, std::shared_ptr<const frame::FlatView> view,
                             std::string path, BlockCache& cache, std::shared_ptr<const frame::ReadRecord> record)
    : id_(id),
      identity_(identity),
      view_(std::move(view)),
      path_(std::move(path)),
      record_(std::move(record)),
      cells_(std::make_shared<const Cells>(cache, id)),
      damage_(std::make_shared<DamageNotes>()),
      touches_(std::make_shared<BlockTouches>(view_->size())),
      readers_(kReaderBytes) {
  count_.fetch_add(1, std::memory_order_relaxed);
}

FrameSnapshot::FrameSnapshot(const FrameSnapshot& same, const frame::FileVersion& identity)
    : id_(same.id_),
      identity_(identity),
      view_(same.view_),
      path_(same.path_),
      record_(same.record_),
      cells_(same.cells_),
      damage_(same.damage_),
      touches_(same.touches_),
      readers_(kReaderBytes) {
  count_.fetch_add(1, std::memory_order_relaxed);
}

FrameSnapshot::~FrameSnapshot() {
  count_.fetch_sub(1, std::memory_order_relaxed);
}

std::shared_ptr<const FrameSnapshot> FrameSnapshot::with_identity(const frame::FileVersion& identity) const {
  return std::shared_ptr<const FrameSnapshot>(new FrameSnapshot(*this, identity));
}

bool FrameSnapshot::has_same_content(const frame::FileVersion& now) const {
  frame::FileVersion same = now;
  same.mtime_ns = identity_.mtime_ns;
  same.ctime_ns = identity_.ctime_ns;
  return same == identity_ && record_ && record_->is_unchanged();
}

codec::Result<std::shared_ptr<const frame::ChunkReader>> FrameSnapshot::reader(
    frame::ChunkNumber chunk, const std::optional<codec::ByteRange>& soon) const {
  if (auto kept = readers_.find(chunk.value)) return *kept;
  auto opened = frame::ChunkReader::open(container(), chunk, soon);
  if (!opened) return opened;
  const std::size_t charge = (*opened)->footprint();
  const std::size_t share = kAllReaderBytes / count_.load(std::memory_order_relaxed);
  return readers_.insert(chunk.value, std::move(*opened), charge, std::max(share, kFewReaderBytes));
}

void FrameSnapshot::prefetch(frame::FlatOffset at, std::uint64_t length) const {
  const frame::ChunkOrder* chunks = view().chunk_order();
  std::vector<frame::Piece> ends;
  if (chunks == nullptr || !chunks->map(at, 1, ends)) return;
  if (!chunks->map(frame::FlatOffset{at.value + length - 1}, 1, ends) || ends.empty()) return;
  const auto first = container().locate_chunk(ends.front().chunk);
  const auto last = container().locate_chunk(ends.back().chunk);
  if (!first || !last || first->source == nullptr || first->source != last->source) return;
  // Only the header of the last chunk contains its length; few chunks are longer than their uncompressed bytes.
  const std::uint64_t tail = std::min<std::uint64_t>(last->limit, ends.back().inner + std::uint64_t{1});
  const std::uint64_t begin = first->offset.value;
  const std::uint64_t end = last->offset.value + tail;
  if (begin < end && end - begin <= 2 * length) first->source->prefetch(first->offset, end - begin);
}

CacheBlockLayout::CacheBlockLayout(const codec::ChunkDecoder& decoder, std::uint32_t row_blocks)
    : decoder_(&decoder),
      row_blocks_(std::max(row_blocks, 1U)),
      blocks_per_cell_(blocks_in_cell(decoder, row_blocks_)),
      cells_per_row_((row_blocks_ - 1) / blocks_per_cell_ + 1) {}

std::uint32_t CacheBlockLayout::block_count(std::uint32_t cell) const {
  const std::uint32_t first = first_block(cell);
  return std::min(blocks_per_cell_, row_blocks_ - first % row_blocks_);
}

codec::ByteRange CacheBlockLayout::range(std::uint32_t cell) const {
  const std::uint32_t first = first_block(cell);
  return {decoder_->block_range(first).begin, decoder_->block_range(first + block_count(cell) - 1).end};
}

}  // namespace cframefs::fs
