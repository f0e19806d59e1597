// Copies into a new frame what can be read of another, chunk by chunk, each decoded first.
//
// What the index says of many chunks is looked at once, and stays one thing in the new frame. What cannot be read
// becomes zeros, so that all else keeps its place.
//
// Thread safety: one thread. Ownership: borrows all that it is given. Memory: one piece of a chunk, and one
// stored metalayer. Errors: io of either file; unsupported, for chunks that share bytes (a copy would be larger than
// the frame, without bound) and for indexes that no writer makes. Damage is counted and reported.
#pragma once

#include <string>
#include <vector>

#include "frame/base/parse_budget.h"
#include "frame/cframe/frame_container.h"
#include "frame/write/new_frame_file.h"
#include "tools/cframe/cframe.h"
#include "tools/lib/recent_runs.h"
#include "tools/stream/block_decoder.h"

namespace cframefs::tools {

class FrameSaver {
 public:
  FrameSaver(const frame::FrameContainer& from, frame::NewFrameFile& to, Io& io, const std::string& path)
      : from_(from), to_(to), io_(io), path_(path) {}

  /// All of it.
  codec::Result<void> run();
  /// Chunks and metalayers that could not be read.
  std::int64_t lost() const { return lost_; }

 private:
  codec::Result<void> save_chunks();
  codec::Result<std::vector<frame::MetalayerLength>> check_vlmetalayers(frame::ParseBudget& budget);
  codec::Result<void> save(const frame::ChunkRun& run);
  codec::Result<void> save_stored(const frame::ChunkLocation& place, frame::ChunkNumber chunk);
  codec::Result<void> save_anew(const frame::ChunkReader& reader);
  codec::Result<void> encode(codec::ByteView plain);
  codec::Result<void> save_zeros(std::int32_t nbytes);
  codec::Result<void> lose(codec::Error error, const frame::ChunkRun& run, std::int32_t nbytes);
  codec::Result<void> save_first(const frame::ChunkRun& run, std::int32_t nbytes);
  std::int32_t plain_bytes(frame::ChunkNumber chunk) const;

  const frame::FrameContainer& from_;
  frame::NewFrameFile& to_;
  Io& io_;
  const std::string& path_;
  std::int64_t lost_ = 0;
  std::uint64_t copied_ = 0;
  bool shares_bytes_ = false;
  BlockDecoder decoder_;
  struct Saved {
    std::int64_t entry = 0;  // of the new frame
    bool is_lost = false;
  };
  RecentRuns<Saved> known_;
  std::int64_t told_ = 0;  // losses
};

}  // namespace cframefs::tools
