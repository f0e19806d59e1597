// A contiguous frame whose chunks have digests, which no frame of today has: an oracle that any reader of stored bytes
// verifies a chunk first. A verifier refuses one chunk as damaged.
//
// Thread safety: immutable, except for the counter, which is atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "frame/cframe/frame_container.h"
#include "frame/cframe/frame_layout.h"

namespace cframefs::test {

/// Verifies every chunk but one.
class RefusingVerifier final : public frame::ChunkVerifier {
 public:
  explicit RefusingVerifier(std::int64_t refused) : refused_(refused) {}

  codec::Result<void> verify(frame::ChunkNumber chunk, const frame::ChunkLocation&, std::uint64_t) const override {
    ++verified_;
    return chunk.value == refused_ ? codec::Result<void>(codec::corrupt("the digest differs")) : codec::Result<void>();
  }
  int verified() const { return verified_; }

 private:
  const std::int64_t refused_;
  mutable std::atomic<int> verified_{0};
};

class DigestFrame final : public frame::FrameContainer {
 public:
  DigestFrame(frame::FrameParts parts, std::shared_ptr<const frame::ChunkVerifier> verifier)
      : FrameContainer(std::move(parts)), verifier_(std::move(verifier)) {}

 private:
  codec::Result<void> find_stored(std::int64_t entry, frame::ChunkLocation& location) const override {
    location.verifier = verifier_;
    return find_in_section(entry, codec::kExtendedHeaderLength, location);
  }

  const std::shared_ptr<const frame::ChunkVerifier> verifier_;
};

inline std::shared_ptr<const frame::FrameContainer> digest_frame(std::vector<std::uint8_t> bytes,
                                                                 std::shared_ptr<const RefusingVerifier> verifier) {
  auto parts = frame::read_frame_parts(frame::memory_source(std::move(bytes)), frame::layout::kContiguous,
                                       std::make_shared<frame::IndexCache>());
  if (!parts) return nullptr;
  return std::make_shared<const DigestFrame>(std::move(*parts), std::move(verifier));
}

}  // namespace cframefs::test
