// Iterates over the chunks of a frame in runs of equal index entries.
//
// If the index is known to be periodic, each entry of one period gives one run. Otherwise the entries come from the
// IndexCache, unit by unit. Units of more than OffsetIndex::kMaxCached entries would evict all others, so they are
// decoded into memory of the iterator.
//
// Thread safety: one thread per object. Ownership: borrows the index. Errors: io. A damaged part of the index is a run
// with ChunkRun::damage set.
#pragma once

#include <vector>

#include "frame/cframe/offset_index.h"
#include "frame/container/container.h"

namespace cframefs::frame {

class IndexRuns final : public ChunkRuns {
 public:
  /// Iterates over entries [begin, end). Each entry from `alone` on is a run of its own that equals no other run.
  IndexRuns(const OffsetIndex& index, std::int64_t begin, std::int64_t end, std::int64_t alone);

  Result<bool> next(ChunkRun& run) override;

 private:
  Result<bool> next_repeated(ChunkRun& run);
  Result<std::int64_t> repeated_entry();
  Result<bool> next_decoded(ChunkRun& run);
  Result<void> load();

  const OffsetIndex& index_;
  const std::int64_t end_;
  const std::int64_t alike_end_;  // entries before this one may share a run
  const std::int64_t begin_;
  std::int64_t at_;
  Error damage_;                           // ChunkRun::damage of the last run points here
  OffsetIndex::Entries large_;             // the last unit that bypassed the cache
  OffsetIndex::Piece piece_;               // the last unit from the cache
  std::span<const std::int64_t> entries_;  // rest of large_ or piece_, from at_ on
};

}  // namespace cframefs::frame
