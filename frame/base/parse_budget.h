// What the parsing of one file may cost: memory at most a fixed amount and a small multiple of what the file stores,
// work linear in what it stores.
//
// Small files that describe much more than they store would else take gigabytes or minutes. A parser asks before it
// allocates, decodes or walks anything whose size the file chose itself, and gives up with the failure that it gets.
//
// Work is counted in bytes that are decoded, compared or copied; a step that is no byte (an entry of a map, a call of
// the system) counts as what it takes in their time, see kStep.
//
// Thread safety: one thread. Units: bytes. Errors: unsupported, which names the thing, its cost and what was left.
#pragma once

#include <cstdint>
#include <string_view>

#include <sys/stat.h>

#include "codec/base/error.h"

namespace cframefs::frame {

class ParseBudget {
 public:
  /// For what programs do not ask for by name: stat, lookup, readdir. `stored`: bytes that the file takes on disk.
  static ParseBudget unasked(std::uint64_t stored);
  /// For what they ask for: open, getxattr, info, verify, repair.
  static ParseBudget asked(std::uint64_t stored);

  /// Work of one step that is no byte.
  static constexpr std::uint64_t kStep = 64;

  /// Before `bytes` of memory are taken for `thing`, which stay taken until release().
  codec::Result<void> take_memory(std::uint64_t bytes, std::string_view thing);
  void release_memory(std::uint64_t bytes);
  /// Before work on `bytes` for `thing`.
  codec::Result<void> spend_work(std::uint64_t bytes, std::string_view thing);

  std::uint64_t memory_left() const { return memory_; }
  std::uint64_t memory_taken() const { return taken_; }
  std::uint64_t work_left() const { return work_; }
  /// Something was refused.
  bool is_exceeded() const { return exceeded_; }

 private:
  ParseBudget(std::uint64_t memory, std::uint64_t work) : memory_(memory), work_(work) {}

  std::uint64_t memory_;
  std::uint64_t work_;
  std::uint64_t taken_ = 0;
  bool exceeded_ = false;
};

/// What a file takes on disk, holes not counted; its length on filesystems that do not tell.
std::uint64_t stored_bytes(const struct stat& status);

}  // namespace cframefs::frame
