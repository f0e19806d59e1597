// Copies the readable chunks of a frame into a new one; decodes each chunk first.
//
// A stored chunk that many index entries name is checked once, and is stored once in the new frame. Unreadable chunks
// become zeros, so that all others keep their positions.
//
// Thread safety: one thread. Ownership: borrows its arguments. Memory: one piece of a chunk, and one stored metalayer.
// Errors: io of either file; unsupported for chunks that share bytes (a copy could be larger than the frame without
// bound) and for indexes that no writer makes. Damage is counted and reported.
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
      : from_(from),
        to_(to),
        io_(io),
        path_(path),
        chunksize_(static_cast<std::uint64_t>(from.parameters().chunksize)),
        nbytes_(from.parameters().nbytes) {}

  /// Copies the whole frame.
  codec::Result<void> run();
  /// Returns the number of chunks and metalayers that could not be read.
  std::int64_t lost() const { return lost_; }

 private:
  codec::Result<void> save_chunks();
  codec::Result<std::vector<frame::MetalayerLength>> check_vlmetalayers(frame::ParseBudget& budget);
  bool append_known(const frame::ChunkRun& run);
  codec::Result<void> save(const frame::ChunkRun& run);
  codec::Result<void> save_stored(frame::ChunkNumber chunk);
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
  const std::uint64_t chunksize_;
  const std::uint64_t nbytes_;
  std::int64_t lost_ = 0;
  std::uint64_t copied_ = 0;
  bool shares_bytes_ = false;
  BlockDecoder decoder_;
  struct Saved {
    std::int64_t entry = 0;  // index entry in the new frame
    bool is_lost = false;
  };
  RecentRuns<Saved> known_;
  std::int64_t reported_ = 0;  // losses printed so far
};

}  // namespace cframefs::tools
