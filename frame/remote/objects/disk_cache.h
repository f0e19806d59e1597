// A RangeStore in a directory: one file for each block, named by a digest of the state and the number of the block.
//
// A file is written under a temporary name and then renamed; it is not synced, because a file with a wrong byte in what
// is read is a miss and is removed. So any number of processes may share the directory without locks, be killed at any
// time, and start without looking through it. The bound holds by counts that the processes share (DiskBudget); what was
// used least recently, among some random sub-directories, is removed. A share of the filesystem is left free.
//
// The files that were read last stay open, so that reading on in them is one system call. Those that other processes
// have removed meanwhile are let go after some thousand reads; all that are open hold an eighth of the bound at most,
// or 16 MiB.
//
// What fails (a full, read-only or damaged disk) only means that a block is not kept.
//
// Thread safety: internally synchronised. Ownership: owns the descriptors of directory and counts. Errors: open() only.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "codec/base/error.h"
#include "frame/base/lru_cache.h"
#include "frame/remote/objects/disk_block.h"
#include "frame/remote/objects/disk_budget.h"
#include "frame/remote/objects/disk_directory.h"
#include "frame/remote/objects/open_block_memory.h"
#include "frame/remote/objects/open_disk_block.h"
#include "frame/remote/objects/range_store.h"

namespace cframefs::frame {

class DiskCache final : public RangeStore {
 public:
  static constexpr unsigned kUsualFreePercent = 5;
  static constexpr std::size_t kMostOpen = 512;  // files

  /// `most_bytes`: bound of the files of all processes. `free_percent`: of the filesystem, left free. Errors: those of
  /// open_cache_directory().
  static codec::Result<std::unique_ptr<DiskCache>> open(const std::string& directory, std::uint64_t most_bytes,
                                                        unsigned free_percent = kUsualFreePercent);

  std::optional<std::vector<std::uint8_t>> find(const std::string& state, std::uint64_t block) override;
  bool read(const std::string& state, const RangeInBlock& range, codec::ByteSpan into) override;
  bool may_have(const std::string& state, std::uint64_t block) override;
  bool prepare(const std::string& state, std::uint64_t block) override;
  void keep(const std::string& state, std::uint64_t block, codec::ByteView bytes) override;
  bool keeps() const override { return root_.is_open(); }

 private:
  using Open = std::shared_ptr<const OpenDiskBlock>;

  /// `most_open`: bound of the files that stay open.
  DiskCache(SystemFd root, std::uint64_t most_bytes, unsigned free_percent, std::size_t most_open);

  Open open_block(const DiskBlockKey& key, const DiskBlockPlace& place);
  Open block_for_reading(const DiskBlockKey& key, const DiskBlockPlace& place);
  void let_go_removed();
  void remove_damaged(const DiskBlockPlace& place, std::size_t length);
  bool reserve(unsigned directory, std::uint64_t bytes);
  void measure(unsigned directory, const DiskBudget::Counts& counts, std::uint64_t unbooked);
  std::optional<DiskBudget::Counts> evict(const DiskBudget::Counts& counts, std::uint64_t bytes);
  bool is_disk_short();
  void unbook(unsigned directory, std::uint64_t bytes);
  bool remove(unsigned directory, const std::string& name, std::uint64_t bytes);

  const SystemFd root_;
  const std::uint64_t most_bytes_;
  const unsigned free_percent_;
  DiskBudget budget_;
  OpenBlockMemory open_memory_;
  LruCache<DiskBlockPlace, Open, DiskBlockPlace::Hash> open_;  // null for files that were removed
  std::atomic<std::uint64_t> reads_{0};
  std::atomic<std::uint64_t> kept_{0};      // blocks
  std::atomic<std::int64_t> looked_at_{0};  // when the free space was looked at, in seconds of the steady clock
  std::atomic<bool> is_short_{false};       // what was seen then
};

}  // namespace cframefs::frame
