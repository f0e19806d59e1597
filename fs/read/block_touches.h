// Decides when the kernel should read a whole decoded block of a frame, because requests touch it again and again.
//
// A random reader gets one page for each request, and the kernel asks again for each other page of the same block. The
// second request that touches a block pays for the whole: the kernel then reads the rest of it, and later reads are
// served from the page cache. Measured: with the third request in place of the second, a file of 512 MiB takes 1.5
// times as long until it is cached.
//
// If memory is short, the kernel drops these pages before they are used. Then requests touch a block that was filled
// before: after kRegret of them the block counts as regretted, and may be filled again. If every second filling is
// regretted, nothing is filled for the next kPause requests. So a file that is much larger than the memory costs at
// most one filling in six requests for a short time, and almost nothing afterwards.
//
// Thread safety: all members. Two threads never get the same filling. Units: bytes of the flat view. Errors: none; a
// file whose counters do not fit into the memory for all files is not filled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "codec/base/mutex.h"

namespace cframefs::fs {

/// The bytes of a decoded block before and after those that a reply takes from it.
struct BlockAround {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

class BlockTouches {
 public:
  /// The request with this number for one block makes the kernel read the rest.
  static constexpr std::uint8_t kWanted = 2;
  /// Further requests for a block that was filled, after which it is regretted. Some are on their way while the kernel
  /// still reads it.
  static constexpr std::uint8_t kRegret = 4;
  static constexpr std::uint64_t kFewRegrets = 16;
  static constexpr std::uint64_t kPause = 4096;
  /// One counter, of one byte, is for this many bytes of the file. Files of more than kMaxCounters share counters among
  /// blocks that lie far apart.
  static constexpr std::uint64_t kUnit = std::uint64_t{64} << 10;
  static constexpr std::size_t kMaxCounters = std::size_t{1} << 18;
  /// Bytes of counters of all files.
  static constexpr std::size_t kMaxMemory = std::size_t{16} << 20;

  explicit BlockTouches(std::uint64_t file_size);
  ~BlockTouches();
  BlockTouches(const BlockTouches&) = delete;
  BlockTouches& operator=(const BlockTouches&) = delete;

  /// Records a request for a part of the block that begins at `at`. Returns true if the kernel should read it whole.
  bool note(std::uint64_t at);
  /// Takes back a filling that note() has returned and that could not be requested.
  void forget(std::uint64_t at);

 private:
  using Counter = std::atomic<std::uint8_t>;
  Counter* counters();
  Counter& counter(Counter* counters, std::uint64_t at) const { return counters[at / kUnit % count_]; }
  void note_regret();

  static std::atomic<std::size_t> memory_;  // of all files
  const std::size_t count_;
  codec::Mutex mutex_;  // of making the counters
  std::unique_ptr<Counter[]> made_ GUARDED_BY(mutex_);
  std::atomic<Counter*> counters_{nullptr};
  std::atomic<bool> has_no_memory_{false};
  std::atomic<std::uint64_t> fillings_{0};
  std::atomic<std::uint64_t> regrets_{0};
  std::atomic<std::uint64_t> paused_{0};  // requests that are still ignored
};

}  // namespace cframefs::fs
