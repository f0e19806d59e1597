#include "tools/stream/frame_map.h"

#include <algorithm>
#include <utility>

#include "codec/stream/codec_table.h"
#include "frame/cframe/frame_container.h"
#include "tools/lib/recent_runs.h"
#include "tools/stream/run_walk.h"

namespace cframefs::tools {

using codec::SpecialValue;
using frame::ChunkNumber;
using frame::ContainerKind;

namespace {

constexpr std::uint32_t kUnknownLength = 0;

std::string codec_name(const codec::ChunkHeader& header) {
  if (header.memcpyed) return "uncompressed";
  if (header.format == codec::CodecFormat::registered) return "registered " + std::to_string(header.compcode);
  const auto* const first = codec::stream_codec_info(header.format, 0);
  return first != nullptr ? std::string(first->name) : "unknown";
}

ChunkKind kind_of(SpecialValue special) {
  switch (special) {
    case SpecialValue::none:
      return ChunkKind::stored;
    case SpecialValue::zeros:
      return ChunkKind::zeros;
    case SpecialValue::nan:
      return ChunkKind::nan;
    case SpecialValue::repeated:
      return ChunkKind::repeated;
    case SpecialValue::uninitialised:
      return ChunkKind::uninitialised;
  }
  return ChunkKind::damaged;
}

codec::Result<codec::ChunkHeader> read_header(const frame::ChunkLocation& location) {
  std::array<std::uint8_t, codec::kExtendedHeaderLength> bytes{};
  const auto prefix = codec::ByteSpan(bytes).first(std::min<std::uint64_t>(location.limit, bytes.size()));
  if (auto done = location.source->read(location.offset, prefix); !done) return codec::Failure(done.error());
  auto header = codec::parse_chunk_header(prefix);
  if (!header) return header;
  if (static_cast<std::uint64_t>(header->cbytes) > location.limit) {
    return codec::corrupt("the chunk claims " + std::to_string(header->cbytes) + " bytes, at most " +
                          std::to_string(location.limit) + " can be stored there");
  }
  if (location.nbytes >= 0 && header->nbytes != location.nbytes) {
    return codec::corrupt("the chunk has " + std::to_string(header->nbytes) + " uncompressed bytes, expected " +
                          std::to_string(location.nbytes));
  }
  return header;
}

/// Returns where part `part` of `parts` equal ones begins, `total` for the end of the last.
std::uint64_t part_begin(std::uint64_t total, std::size_t parts, std::size_t part) {
  // The product of the total and a part need not fit.
  return total / parts * part + total % parts * part / parts;
}

/// Returns the part in which `at` lies. REQUIRES: at < total.
std::size_t part_of(std::uint64_t total, std::size_t parts, std::uint64_t at) {
  const double guess = static_cast<double>(at) / static_cast<double>(total) * static_cast<double>(parts);
  std::size_t part = std::min(static_cast<std::size_t>(guess), parts - 1);
  while (part > 0 && part_begin(total, parts, part) > at)
    --part;
  while (part + 1 < parts && part_begin(total, parts, part + 1) <= at)
    ++part;
  return part;
}

}  // namespace

class FrameMapper::State {
 public:
  State(const frame::Container& container, const MapRequest& request)
      : container_(container),
        request_(request),
        chunks_(container.chunk_count()),
        stride_((chunks_ + kMostHeaders - 1) / kMostHeaders),
        is_sparse_(container.parameters().kind == ContainerKind::sframe) {
    map_.length = std::max(request.file_bytes, is_sparse_ ? std::uint64_t{0} : container.parameters().frame_length);
    map_.space.resize(std::max<std::size_t>(request.space_cells, 1));
    map_.order.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(static_cast<std::int64_t>(request.order_cells),
                                                                        1, std::max<std::int64_t>(chunks_, 1))));
    map_.is_exact = stride_ <= 1;
  }

  bool try_add_run(const frame::ChunkRun& run) {
    if (run.damage != nullptr || !run.alike) return false;
    const auto& slot = known_.slot(run.same);
    if (!slot.value || slot.same != run.same) return false;
    count(run, *slot.value);
    return true;
  }

  codec::Result<void> add_run(const frame::ChunkRun& run) {
    if (run.damage != nullptr) {
      codec::Error error = *run.damage;
      if (!error.chunk) error.chunk = run.first.value;
      note(error);
      count(run, {});
      return {};
    }
    if (try_add_run(run)) return {};
    auto found = look_at(run.first);
    if (!found) return codec::Failure(found.error());
    count(run, *found);
    if (run.alike) {
      auto& slot = known_.slot(run.same);
      slot.same = run.same;
      slot.value = *found;
    }
    return {};
  }

  codec::Result<FrameMap> finish() {
    if (const auto* frame = container_.as_frame(); frame != nullptr && frame->seal()) {
      auto sealed = frame->seal()->ranges();
      if (!sealed) return codec::Failure(sealed.error());
      sealed_ = std::move(*sealed);
    }
    map_.shares_bytes = map_.is_exact && stored_ > static_cast<std::int64_t>(extents_.size());
    std::sort(extents_.begin(), extents_.end(), [](const Extent& a, const Extent& b) {
      return std::pair(a.begin, b.length) < std::pair(b.begin, a.length);
    });
    const auto same = [](const Extent& a, const Extent& b) { return a.begin == b.begin; };
    extents_.erase(std::unique(extents_.begin(), extents_.end(), same), extents_.end());
    if (is_sparse_) {
      paint_sparse();
    } else {
      paint_file();
    }
    for (const SpaceCell& cell : map_.space) {
      for (std::size_t kind = 0; kind < kSpaceKinds; ++kind)
        map_.bytes[kind] += cell.bytes[kind];
    }
    return std::move(map_);
  }

 private:
  /// Where a chunk is stored. `begin`: file offset, or the number of a chunk file.
  struct Extent {
    std::uint64_t begin = 0;
    std::uint32_t length = kUnknownLength;
    std::uint32_t plain = 0;
    bool is_damaged = false;
  };

  /// What one look at a chunk has found.
  struct ChunkLook {
    ChunkKind kind = ChunkKind::damaged;
    std::uint32_t length = kUnknownLength;
    std::uint32_t plain = 0;
    std::size_t codec = kMostCodecs;  // kMostCodecs: none
  };

  void note(const codec::Error& error) {
    if (!map_.first_damage) map_.first_damage = error;
  }

  std::size_t codec_index(const codec::ChunkHeader& header) {
    const std::string name = codec_name(header);
    for (std::size_t i = 0; i < map_.codecs.size(); ++i) {
      if (map_.codecs[i].name == name) return i;
    }
    if (map_.codecs.size() == kMostCodecs) return kMostCodecs - 1;
    map_.codecs.push_back({name, 0, 0, 0});
    return map_.codecs.size() - 1;
  }

  codec::Result<std::uint64_t> place_of(ChunkNumber chunk, const frame::ChunkLocation& location) const {
    if (!is_sparse_) return location.offset.value;
    const auto entry = container_.as_frame()->index_entry(chunk);
    if (!entry) return codec::Failure(entry.error());
    return static_cast<std::uint64_t>(*entry);
  }

  codec::Result<ChunkLook> look_at(ChunkNumber chunk) {
    const auto damaged = [&](codec::Error error) -> codec::Result<ChunkLook> {
      if (error.kind == codec::ErrorKind::io) return codec::Failure(std::move(error));
      if (!error.chunk) error.chunk = chunk.value;
      note(error);
      return ChunkLook{};
    };
    const auto location = container_.locate_chunk(chunk);
    if (!location) return damaged(location.error());
    if (location->special != SpecialValue::none) return ChunkLook{kind_of(location->special), 0, 0, kMostCodecs};
    if (seen_++ % stride_ != 0) return sample_.value_or(ChunkLook{});
    const auto place = place_of(chunk, *location);
    if (!place) return damaged(place.error());
    const auto header = read_header(*location);
    if (!header) {
      codec::Error error = header.error();
      error.file_offset = location->offset.value;
      if (error.kind != codec::ErrorKind::io) extents_.push_back({*place, kUnknownLength, 0, true});
      return damaged(std::move(error));
    }
    ChunkLook found{kind_of(header->special), static_cast<std::uint32_t>(header->cbytes),
                    static_cast<std::uint32_t>(header->nbytes), kMostCodecs};
    if (found.kind == ChunkKind::stored) found.codec = codec_index(*header);
    const bool is_damaged = request_.damaged.contains(chunk.value);
    if (is_damaged) found.kind = ChunkKind::damaged;
    extents_.push_back({*place, found.length, found.plain, is_damaged});
    sample_ = found;
    return found;
  }

  // ---- the order of chunks ---------------------------------------------------------------------------------------

  /// A cell of map_.order with its chunks [begin, end).
  struct OrderCell {
    std::size_t number = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  /// Returns the cell of a chunk. Divides only if the chunk is not in the cell of the last call.
  const OrderCell& cell_of(std::int64_t chunk) {
    if (chunk < cell_.begin || chunk >= cell_.end) {
      const auto total = static_cast<std::uint64_t>(chunks_);
      const std::size_t parts = map_.order.size();
      const std::size_t number = part_of(total, parts, static_cast<std::uint64_t>(chunk));
      cell_ = {number, static_cast<std::int64_t>(part_begin(total, parts, number)),
               static_cast<std::int64_t>(part_begin(total, parts, number + 1))};
    }
    return cell_;
  }

  void count(const frame::ChunkRun& run, const ChunkLook& found) {
    const std::int64_t last = run.first.value + (run.count - 1) * run.step;
    // Not one chunk at a time: a run may have very many.
    for (std::int64_t chunk = run.first.value; chunk <= last;) {
      const OrderCell& cell = cell_of(chunk);
      const std::int64_t end = std::min(cell.end, last + 1);
      const std::int64_t here = run.step == 1 ? end - chunk : (end - chunk + run.step - 1) / run.step;
      add(map_.order[cell.number], found, here);
      chunk += here * run.step;
    }
    map_.counts[static_cast<std::size_t>(found.kind)] += run.count;
    if (found.length > 0) stored_ += run.count;
    if (found.codec == kMostCodecs || found.kind != ChunkKind::stored) return;
    CodecTotal& total = map_.codecs[found.codec];
    total.chunks += run.count;
    total.plain += std::uint64_t{found.plain} * static_cast<std::uint64_t>(run.count);
    total.stored += std::uint64_t{found.length} * static_cast<std::uint64_t>(run.count);
  }

  static void add(ChunkCell& cell, const ChunkLook& found, std::int64_t count) {
    cell.counts[static_cast<std::size_t>(found.kind)] += count;
    if (found.kind != ChunkKind::stored) return;
    if (found.codec < kMostCodecs) cell.codecs[found.codec] += count;
    cell.plain += std::uint64_t{found.plain} * static_cast<std::uint64_t>(count);
    cell.stored += std::uint64_t{found.length} * static_cast<std::uint64_t>(count);
  }

  // ---- the file --------------------------------------------------------------------------------------------------

  /// `plain`: uncompressed bytes of the whole range.
  void paint(SpaceKind kind, std::uint64_t begin, std::uint64_t end, double plain = 0) {
    end = std::min(end, map_.length);
    if (begin >= end) return;
    const double share = plain / static_cast<double>(end - begin);
    for (std::size_t cell = part_of(map_.length, map_.space.size(), begin); begin < end; ++cell) {
      const std::uint64_t until = std::min(part_begin(map_.length, map_.space.size(), cell + 1), end);
      map_.space[cell].bytes[static_cast<std::size_t>(kind)] += until - begin;
      map_.space[cell].plain += share * static_cast<double>(until - begin);
      begin = until;
    }
  }

  void paint_sparse() {
    std::uint64_t at = std::min(container_.parameters().frame_length, map_.length);
    paint(SpaceKind::index, 0, at);
    for (const Extent& extent : extents_) {
      paint(extent.is_damaged ? SpaceKind::damaged : SpaceKind::live, at, at + extent.length, extent.plain);
      at += extent.length;
    }
    paint(SpaceKind::dead, at, map_.length);
  }

  /// Paints bytes that belong to no chunk. What the seal refers to is in use.
  void paint_between(SpaceKind kind, std::uint64_t begin, std::uint64_t end) {
    for (const codec::ByteRange& range : sealed_) {
      if (range.begin < begin || range.end > end) continue;
      paint(kind, begin, range.begin);
      paint(SpaceKind::index, range.begin, range.end);
      begin = range.end;
    }
    paint(kind, begin, end);
  }

  void paint_file() {
    const frame::FrameParameters& parameters = container_.parameters();
    const bool is_frame = container_.as_frame() != nullptr;
    // Other formats keep nothing unreferenced: what lies between their chunks are digests.
    const SpaceKind between = is_frame ? SpaceKind::dead : SpaceKind::index;
    const std::uint64_t section = is_frame           ? parameters.header_length
                                  : extents_.empty() ? map_.length
                                                     : extents_.front().begin;
    const std::uint64_t section_end = is_frame ? parameters.header_length + parameters.cbytes : map_.length;
    paint(SpaceKind::header, 0, section);
    std::uint64_t at = section;
    for (std::size_t i = 0; i < extents_.size(); ++i) {
      const Extent& extent = extents_[i];
      const std::uint64_t next = i + 1 < extents_.size() ? extents_[i + 1].begin : section_end;
      std::uint64_t end = extent.length == kUnknownLength ? next : extent.begin + extent.length;
      // A sampled chunk stands for those up to the next one.
      if (!map_.is_exact) end = std::min(next, extent.begin + static_cast<std::uint64_t>(stride_) * extent.length);
      paint_between(between, at, extent.begin);
      const std::uint64_t begin = std::max(at, extent.begin);
      map_.shares_bytes = map_.shares_bytes || begin > extent.begin;
      const double scale = map_.is_exact || extent.length == 0
                               ? 1
                               : static_cast<double>(end - extent.begin) / static_cast<double>(extent.length);
      if (begin < end)
        paint(extent.is_damaged ? SpaceKind::damaged : SpaceKind::live, begin, end, extent.plain * scale);
      at = std::max(at, end);
    }
    paint_between(between, at, section_end);
    paint(SpaceKind::index, std::max(at, section_end), is_frame ? parameters.frame_length : map_.length);
    // What an unfinished commit has left behind the frame.
    if (is_frame) paint(SpaceKind::dead, std::max(at, parameters.frame_length), map_.length);
  }

  FrameMap map_;
  const frame::Container& container_;
  const MapRequest& request_;
  const std::int64_t chunks_;
  const std::int64_t stride_;
  const bool is_sparse_;
  std::int64_t seen_ = 0;    // looks at stored chunks
  std::int64_t stored_ = 0;  // stored chunks whose header is good
  std::optional<ChunkLook> sample_;
  OrderCell cell_;  // the last that cell_of() returned
  std::vector<Extent> extents_;
  std::vector<codec::ByteRange> sealed_;  // pages and root of the seal, in the order of the file
  RecentRuns<ChunkLook> known_;
};

FrameMapper::FrameMapper(const frame::Container& container, const MapRequest& request)
    : state_(std::make_unique<State>(container, request)) {}

FrameMapper::~FrameMapper() = default;

bool FrameMapper::try_add_run(const frame::ChunkRun& run) {
  return state_->try_add_run(run);
}

codec::Result<void> FrameMapper::add_run(const frame::ChunkRun& run) {
  return state_->add_run(run);
}

codec::Result<FrameMap> FrameMapper::finish() {
  return state_->finish();
}

codec::Result<FrameMap> map_frame(const frame::Container& container, const MapRequest& request,
                                  const std::atomic<bool>& stop, Progress& progress) {
  FrameMapper mapper(container, request);
  const auto add = [&mapper](const frame::ChunkRun& run) -> codec::Result<void> {
    if (mapper.try_add_run(run)) return {};
    return mapper.add_run(run);
  };
  if (auto done = for_each_run(container, stop, progress, add); !done) return codec::Failure(done.error());
  return mapper.finish();
}

std::optional<std::uint64_t> compact_gain(const frame::Container& container, const FrameMap& map) {
  if (container.as_frame() == nullptr || container.parameters().variable_chunks || map.shares_bytes ||
      map.first_damage || map.count_of(ChunkKind::damaged) > 0)
    return std::nullopt;
  return map.bytes_of(SpaceKind::dead);
}

}  // namespace cframefs::tools
