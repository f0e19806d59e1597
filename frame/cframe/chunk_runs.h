// The chunks of a frame in runs of equal index entries.
//
// Where the index is known to repeat itself, so do the runs: one for each entry of a period. Else its blocks are taken
// from the cache; very large ones are decoded into memory of the walk's own, for they would push all others out.
//
// Thread safety: one thread per object. Ownership: borrows the index. Errors: io; damage of the index is told in the
// runs.
#pragma once

#include <vector>

#include "frame/cframe/offset_index.h"
#include "frame/container/container.h"

namespace cframefs::frame {

class IndexRuns final : public ChunkRuns {
 public:
  /// The entries [begin, end); from `alone` on each is a run of its own, like no other.
  IndexRuns(const OffsetIndex& index, std::int64_t begin, std::int64_t end, std::int64_t alone);

  Result<bool> next(ChunkRun& run) override;

 private:
  Result<bool> next_repeated(ChunkRun& run);
  Result<bool> next_decoded(ChunkRun& run);
  Result<void> load();

  const OffsetIndex& index_;
  const std::int64_t end_;
  const std::int64_t alike_end_;  // entries before this one may be like others
  const std::int64_t begin_;
  std::int64_t at_;
  Error damage_;                           // of the run told last
  OffsetIndex::Entries large_;             // decoded last
  OffsetIndex::Piece piece_;               // or looked at last
  std::span<const std::int64_t> entries_;  // of one of these, from at_ on
};

}  // namespace cframefs::frame
