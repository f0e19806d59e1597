// The reply to one read, made of cached bytes that stay pinned until the reply is sent: no copy in user space.
//
// Thread safety: belongs to the thread that serves the request. Ownership: holds the pins and buffers its parts point
// into. REQUIRES: destroyed before the cache and the pool.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <sys/uio.h>

#include "codec/base/bytes.h"
#include "fs/read/block_cache.h"
#include "fs/read/block_touches.h"
#include "fs/read/read_permit.h"
#include "fs/read/reads_under_way.h"

namespace cframefs::fs {

class Reply {
 public:
  Reply() = default;
  explicit Reply(ReadPermit&& permit) : own_permit_(std::move(permit)) {}
  /// A partial reply, which is read with the permit of the whole.
  explicit Reply(ReadPermit& whole) : permit_(&whole) {}
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  ReadPermit& permit() { return *permit_; }
  /// Returns the mark of the read, which ends when the reply is destroyed, after it has been sent.
  ReadsUnderWay::Mark& mark() { return mark_; }
  void clear();

  void add_zeros(std::uint64_t length);
  /// Appends `bytes`, which lie in the cell of `pin`.
  void add(BlockCache::Pin pin, codec::ByteView bytes);
  /// Appends the first `length` bytes of a buffer.
  void add(Buffer buffer, std::size_t length);

  /// Records that all bytes so far come from one decoded block, of which the reader wants a small part.
  void note_block(const BlockAround& around) { block_ = around; }
  const std::optional<BlockAround>& block() const { return block_; }

  std::span<const iovec> parts() const { return parts_; }
  std::uint64_t size() const { return size_; }
  /// Truncates the reply to `size` bytes.
  void truncate(std::uint64_t size);
  /// Copies all parts, in order, to `out` (size() bytes).
  void copy_to(std::uint8_t* out) const;
  /// Joins the parts if there are many: the kernel accepts at most 1024.
  void coalesce(BufferPool& pool);

 private:
  void add_part(codec::ByteView bytes);

  ReadPermit own_permit_;  // declared first: destroyed after the pins that it permitted
  ReadPermit* const permit_ = &own_permit_;
  ReadsUnderWay::Mark mark_;
  std::vector<iovec> parts_;
  std::vector<BlockCache::Pin> pins_;
  std::vector<Buffer> buffers_;
  std::uint64_t size_ = 0;
  std::optional<BlockAround> block_;
};

}  // namespace cframefs::fs
