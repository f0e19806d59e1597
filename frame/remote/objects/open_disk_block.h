// An open file of the disk cache that holds a block: its header was verified, and each read verifies the pieces that it
// reads.
//
// Other processes may remove the file meanwhile; its bytes can still be read, and are still those of the block.
//
// Thread safety: const members may run concurrently. Ownership: owns the descriptor. Errors: false for bytes that
// cannot be read or are not those that were written.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <memory_resource>

#include "codec/base/bytes.h"
#include "frame/remote/objects/disk_block.h"
#include "frame/remote/objects/system_fd.h"

namespace cframefs::frame {

class OpenDiskBlock {
 public:
  /// Reads the header of a regular file of `file_length` bytes. Returns nullptr if it is not that of the block.
  /// `used`: when the file was last used, in seconds since 1970. `memory`: of the new object; must outlive it.
  static std::shared_ptr<const OpenDiskBlock> open(SystemFd fd, std::uint64_t file_length, const DiskBlockKey& key,
                                                   std::int64_t used, std::pmr::memory_resource& memory);

  /// Private to open().
  struct Private {};
  OpenDiskBlock(Private /*token*/, SystemFd fd, const DiskBlockHeader& header, std::int64_t used)
      : fd_(std::move(fd)), header_(header), used_(used) {}

  std::size_t length() const { return header_.length; }
  /// Fills `into` with the bytes of the block from `at`. REQUIRES: they lie in the block.
  bool read(std::size_t at, codec::ByteSpan into) const;
  /// Notes in the file that the block was used, at most once a minute.
  void touch() const;
  /// Returns whether the file was removed: then the open descriptor alone holds its bytes on disk.
  bool is_removed() const;

 private:
  bool is_piece(std::size_t number, codec::ByteView bytes) const;

  const SystemFd fd_;
  const DiskBlockHeader header_;
  mutable std::atomic<std::int64_t> used_;
};

}  // namespace cframefs::frame
