#include "tools/stream/array_stream.h"

#include <algorithm>
#include <cerrno>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "frame/array/array_geometry.h"
#include "frame/container/chunk_reader.h"
#include "tools/stream/block_decoder.h"

namespace cframefs::tools {

using codec::ByteSpan;
using codec::Result;
using frame::ArrayGeometry;
using frame::ChunkReader;

namespace {

constexpr std::uint64_t kStep = std::uint64_t{4} << 20;  // bytes passed to the sink at once
// The same if the blocks of a slab exceed kKeptBytes: each block is then decoded once for each step.
constexpr std::uint64_t kLongStep = std::uint64_t{256} << 20;
constexpr std::uint64_t kBatchBytes = std::uint64_t{64} << 20;  // bytes decoded in one batch
constexpr std::size_t kBatchTiles = 4096;
constexpr std::uint64_t kKeptBytes = std::uint64_t{512} << 20;
constexpr std::size_t kKeptReaders = 4096;

struct Block {
  std::unique_ptr<std::uint8_t[]> bytes;
  std::uint64_t left = 0;  // items not passed on yet
  std::list<std::pair<std::int64_t, std::uint32_t>>::iterator age;
};

class ArrayStream {
 public:
  ArrayStream(const frame::Container& container, const ArrayGeometry& array, unsigned workers)
      : container_(container), array_(array), decoders_(std::max(workers, 1U)) {}

  /// Reads C-order bytes [at, at + out.size()).
  Result<void> read(std::uint64_t at, ByteSpan out) {
    auto done = array_.for_each_part(at, out.size(), [&](const ArrayGeometry::Part& part) -> Result<void> {
      auto reader = reader_of(part.chunk);
      if (!reader) return codec::Failure(reader.error());
      if ((*reader)->storage() == frame::Storage::zeros) {
        frame::clear_box(part.to, out.data() + part.out);
        return {};
      }
      return array_.for_each_tile(part, [&](const ArrayGeometry::Tile& tile) -> Result<void> {
        add(part, tile, *reader);
        const bool full = missing_.size() * array_.block_bytes() >= kBatchBytes || tiles_.size() >= kBatchTiles;
        return full ? finish_batch(out) : Result<void>();
      });
    });
    return done ? finish_batch(out) : done;
  }

 private:
  using Key = std::pair<std::int64_t, std::uint32_t>;
  using Reader = std::shared_ptr<const ChunkReader>;
  struct Wanted {
    ArrayGeometry::Tile tile;
    Key key;
  };
  struct Missing {
    Reader reader;
    std::uint32_t inner = 0;
    std::uint8_t* to = nullptr;
    std::optional<codec::Error> error;
  };

  Result<Reader> reader_of(frame::ChunkNumber chunk) {
    if (const auto kept = readers_.find(chunk.value); kept != readers_.end()) return kept->second;
    auto opened = ChunkReader::open(container_, chunk);
    if (!opened) return opened;
    if ((*opened)->decoder().nbytes() != array_.chunk_bytes()) {
      codec::Error error{codec::ErrorKind::corruption, 0,
                         fmt::format("the chunk has {} bytes, a chunk of the array {}", (*opened)->decoder().nbytes(),
                                     array_.chunk_bytes())};
      error.chunk = chunk.value;
      return codec::Failure(error);
    }
    if (readers_.size() == kKeptReaders) readers_.clear();
    readers_.emplace(chunk.value, *opened);
    return opened;
  }

  void add(const ArrayGeometry::Part& part, const ArrayGeometry::Tile& tile, const Reader& reader) {
    const Key key{part.chunk.value, tile.block};
    tiles_.push_back({tile, key});
    const auto [place, is_new] = blocks_.try_emplace(key);
    if (!is_new) return;
    Block& block = place->second;
    block.bytes = std::make_unique_for_overwrite<std::uint8_t[]>(array_.block_bytes());
    block.left = array_.item_bytes(part.origin, tile.block, 1);
    block.age = ages_.insert(ages_.end(), key);
    missing_.push_back({reader, tile.block * array_.block_bytes(), block.bytes.get(), {}});
  }

  Result<void> finish_batch(ByteSpan out) {
    decode_missing();
    for (const Missing& missing : missing_) {
      if (missing.error) return codec::Failure(*missing.error);
    }
    missing_.clear();
    for (const Wanted& wanted : tiles_) {
      const auto found = blocks_.find(wanted.key);
      Block& block = found->second;
      const std::uint64_t within = wanted.tile.inner - std::uint64_t{wanted.tile.block} * array_.block_bytes();
      frame::copy_box(wanted.tile.box, block.bytes.get() + within, out.data() + wanted.tile.out);
      block.left -= std::min(block.left, wanted.tile.box.volume());
      if (block.left == 0) drop(found);
    }
    tiles_.clear();
    while (!ages_.empty() && blocks_.size() * array_.block_bytes() > kKeptBytes)
      drop(blocks_.find(ages_.front()));
    return {};
  }

  void drop(std::map<Key, Block>::iterator block) {
    ages_.erase(block->second.age);
    blocks_.erase(block);
  }

  void decode_missing() {
    std::atomic<std::size_t> next = 0;
    const auto work = [&](BlockDecoder& decoder) {
      for (std::size_t i = next++; i < missing_.size(); i = next++) {
        Missing& missing = missing_[i];
        auto decoded = decoder.decode(*missing.reader, missing.inner, ByteSpan(missing.to, array_.block_bytes()));
        if (!decoded) missing.error = decoded.error();
      }
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < std::min(decoders_.size(), missing_.size()); ++i)
      threads.emplace_back([&work, &decoder = decoders_[i]] { work(decoder); });
    work(decoders_[0]);
    for (std::thread& thread : threads)
      thread.join();
  }

  const frame::Container& container_;
  const ArrayGeometry& array_;
  std::vector<BlockDecoder> decoders_;
  std::map<std::int64_t, Reader> readers_;
  std::map<Key, Block> blocks_;
  std::list<Key> ages_;  // the oldest first
  std::vector<Wanted> tiles_;
  std::vector<Missing> missing_;
};

}  // namespace

Result<void> stream_view(const frame::FlatView& view, frame::FlatOffset begin, std::uint64_t length, unsigned workers,
                         const Sink& sink, const std::atomic<bool>& stop) {
  const codec::ByteView head = view.head();
  std::uint64_t at = begin.value;
  const std::uint64_t end = at + length;
  if (at < head.size() && at < end) {
    const std::uint64_t stop_at = std::min<std::uint64_t>(end, head.size());
    if (auto taken = sink(head.subspan(at, stop_at - at)); !taken) return taken;
    at = stop_at;
  }
  if (at == end) return {};
  const ArrayGeometry* array = view.array();
  if (array == nullptr) {
    const frame::FlatOffset inner{at - head.size()};
    return stream_flat(view.container(), inner, end - at, workers, sink, stop);
  }
  ArrayStream stream(view.container(), *array, workers);
  const std::uint64_t step_bytes = array->slab_block_bytes() > kKeptBytes ? kLongStep : kStep;
  std::vector<std::uint8_t> out(std::min(step_bytes, end - at));
  while (at < end) {
    if (stop.load()) return codec::io_error(EINTR, "read");
    const ByteSpan step = ByteSpan(out).first(std::min<std::uint64_t>(out.size(), end - at));
    if (auto read = stream.read(at - head.size(), step); !read) return read;
    if (auto taken = sink(step); !taken) return taken;
    at += step.size();
  }
  return {};
}

}  // namespace cframefs::tools
