#include "tools/stream/frame_scan.h"

#include <algorithm>

#include "codec/stream/codec_table.h"
#include "frame/container/chunk_reader.h"
#include "tools/lib/recent_runs.h"
#include "tools/stream/run_walk.h"

namespace cframefs::tools {

using codec::SpecialValue;
using frame::ChunkNumber;

namespace {

/// Returns the name of the first codec with the format of the streams.
std::string format_name(const codec::ChunkHeader& header) {
  if (header.format == codec::CodecFormat::registered) return "registered " + std::to_string(header.compcode);
  const auto* const first = codec::stream_codec_info(header.format, 0);
  return first != nullptr ? std::string(first->name) : "unknown";
}

/// The properties of a chunk, and the number of equal chunks.
struct Finding {
  std::int64_t count = 0;
  bool damaged = false;
  bool stored = false;
  SpecialValue special = SpecialValue::none;  // of a chunk that is not stored
  std::optional<codec::ChunkHeader> header;   // none: damaged, not stored, or not read
};

class Scanner {
 public:
  Scanner(FrameScan& scan, const frame::Container& container, std::int64_t most_headers)
      : scan_(scan), container_(container), most_headers_(most_headers) {}

  codec::Result<void> add_run(const frame::ChunkRun& run) {
    if (run.damage != nullptr) {
      codec::Error error = *run.damage;
      if (!error.chunk) error.chunk = run.first.value;
      note(error);
      scan_.damaged += run.count;
      return {};
    }
    if (!run.alike) return add_alone(run);
    auto& slot = known_.slot(run.same);
    if (!slot.value || slot.same != run.same) {
      if (slot.value) add(*slot.value);
      auto found = look_at(run.first);
      if (!found) return codec::Failure(found.error());
      slot.same = run.same;
      slot.value = *found;
    }
    slot.value->count += run.count;
    return {};
  }

  void finish() {
    for (const auto& slot : known_.slots()) {
      if (slot.value) add(*slot.value);
    }
  }

 private:
  codec::Result<void> add_alone(const frame::ChunkRun& run) {
    auto found = look_at(run.first);
    if (!found) return codec::Failure(found.error());
    found->count = run.count;
    add(*found);
    return {};
  }

  codec::Result<Finding> look_at(ChunkNumber chunk) {
    Finding found;
    const auto damaged = [&](const codec::Error& error) -> codec::Result<Finding> {
      if (error.kind == codec::ErrorKind::io) return codec::Failure(error);
      note(error);
      found.damaged = true;
      return found;
    };
    const auto location = container_.locate_chunk(chunk);
    if (!location) return damaged(location.error());
    found.special = location->special;
    found.stored = found.special == SpecialValue::none;
    if (!found.stored) return found;
    if (read_ >= most_headers_) {
      scan_.complete = false;
      return found;
    }
    const auto reader = frame::ChunkReader::open(container_, chunk);
    if (!reader) return damaged(reader.error());
    ++read_;
    found.header = (*reader)->decoder().header();
    return found;
  }

  void note(const codec::Error& error) {
    if (!scan_.first_damage) scan_.first_damage = error;
  }

  void add(const Finding& found) {
    scan_.zeros += found.special == SpecialValue::zeros ? found.count : 0;
    scan_.nan += found.special == SpecialValue::nan ? found.count : 0;
    scan_.uninitialised += found.special == SpecialValue::uninitialised ? found.count : 0;
    scan_.stored += found.stored ? found.count : 0;
    scan_.damaged += found.damaged ? found.count : 0;
    if (found.header) scan_.headers.add(*found.header, found.count);
  }

  FrameScan& scan_;
  const frame::Container& container_;
  const std::int64_t most_headers_;
  std::int64_t read_ = 0;
  RecentRuns<Finding> known_;
};

}  // namespace

void HeaderCounts::add(const codec::ChunkHeader& header, std::int64_t count) {
  read += count;
  nbytes += static_cast<std::uint64_t>(header.nbytes) * static_cast<std::uint64_t>(count);
  cbytes += static_cast<std::uint64_t>(header.cbytes) * static_cast<std::uint64_t>(count);
  least_chunk = std::min(least_chunk, header.nbytes);
  most_chunk = std::max(most_chunk, header.nbytes);
  if (header.special == SpecialValue::repeated) {
    repeated += count;
  } else if (header.special != SpecialValue::none) {
    stored_special += count;
  } else if (header.memcpyed) {
    memcpyed += count;
  } else {
    codecs[format_name(header)] += count;
    (header.dont_split || header.typesize == 1 ? unsplit : split) += count;
    dictionary += header.dictionary ? count : 0;
    instrumented += header.instrumented ? count : 0;
    variable_blocks += header.vl_blocks ? count : 0;
    if (!header.vl_blocks) {
      least_blocksize = std::min(least_blocksize.value_or(header.blocksize), header.blocksize);
      most_blocksize = std::max(most_blocksize.value_or(0), header.blocksize);
    }
  }
}

codec::Result<FrameScan> scan_frame(const frame::Container& container, std::int64_t most_headers, FrameMapper* mapper,
                                    const std::atomic<bool>& stop, Progress& progress) {
  FrameScan scan;
  scan.chunks = container.chunk_count();
  Scanner scanner(scan, container, most_headers);
  const auto add = [&](const frame::ChunkRun& run) -> codec::Result<void> {
    if (auto done = scanner.add_run(run); !done) return done;
    // A map of a part would read headers for nothing.
    if (mapper == nullptr || !scan.complete || scan.first_damage) return {};
    if (mapper->try_add_run(run)) return {};
    return mapper->add_run(run);
  };
  if (auto done = for_each_run(container, stop, progress, add); !done) return codec::Failure(done.error());
  scanner.finish();
  return scan;
}

}  // namespace cframefs::tools
