// Limits the cost of parsing one file: memory to a fixed amount plus a small multiple of the stored bytes, work to a
// linear function of the stored bytes.
//
// Without a limit, small files that describe much more than they store would take gigabytes or minutes. A parser calls
// take_memory() or spend_work() before it allocates, decodes or walks anything whose size the file determines, and
// returns the error that it gets.
//
// Work is the number of bytes decoded, compared or copied; any other step (an entry of a map, a system call) counts as
// kStep bytes, which take about as long.
//
// Thread safety: one thread. Units: bytes. Errors: unsupported, which names the thing, its cost and the rest of the
// budget.
#pragma once

#include <cstdint>
#include <string_view>

#include <sys/stat.h>

#include "codec/base/error.h"

namespace cframefs::frame {

class ParseBudget {
 public:
  /// Returns the budget of implicit accesses: stat, lookup, readdir. `stored`: bytes of the file on disk.
  static ParseBudget unasked(std::uint64_t stored);
  /// Returns the larger budget of explicit accesses: open, getxattr, info, verify, repair.
  static ParseBudget asked(std::uint64_t stored);

  /// Work of a step that does not process bytes.
  static constexpr std::uint64_t kStep = 64;

  /// Reserves `bytes` of memory for `thing` until release_memory(). Call before allocating.
  codec::Result<void> take_memory(std::uint64_t bytes, std::string_view thing);
  void release_memory(std::uint64_t bytes);
  /// Spends the work of `bytes` on `thing`. Call before the work.
  codec::Result<void> spend_work(std::uint64_t bytes, std::string_view thing);

  std::uint64_t memory_left() const { return memory_; }
  std::uint64_t memory_taken() const { return taken_; }
  std::uint64_t work_left() const { return work_; }
  /// Returns true if a request was refused.
  bool is_exceeded() const { return exceeded_; }

 private:
  ParseBudget(std::uint64_t memory, std::uint64_t work) : memory_(memory), work_(work) {}

  std::uint64_t memory_;
  std::uint64_t work_;
  std::uint64_t taken_ = 0;
  bool exceeded_ = false;
};

/// Returns the bytes that a file takes on disk, without holes; its length if the filesystem does not report blocks.
std::uint64_t stored_bytes(const struct stat& status);

}  // namespace cframefs::frame
