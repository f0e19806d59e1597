// A source whose first bytes are replaced: a frame as it will be after its new header is written.
//
// Thread safety: immutable. Ownership: owns the header and the source. Errors: those of the source.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "frame/io/byte_source.h"

namespace cframefs::frame {

class OverlaySource final : public ByteSource {
 public:
  OverlaySource(std::vector<std::uint8_t> head, std::unique_ptr<ByteSource> rest)
      : head_(std::move(head)), rest_(std::move(rest)) {}

  std::uint64_t size() const override { return rest_->size(); }
  FileOffset base_offset() const override { return rest_->base_offset(); }
  std::string label() const override { return rest_->label(); }

  bool is_remote() const override { return rest_->is_remote(); }
  bool is_busy() const override { return rest_->is_busy(); }
  void prefetch(FileOffset at, std::uint64_t length) const override { rest_->prefetch(at, length); }
  void expect(FileOffset at, std::uint64_t length) const override { rest_->expect(at, length); }
  Result<void> fetch(FileOffset at, std::uint64_t length) const override { return rest_->fetch(at, length); }
  std::uint64_t zeros(FileOffset at) const override { return at.value >= head_.size() ? rest_->zeros(at) : 0; }
  Result<void> read(FileOffset at, ByteSpan into) const override {
    if (auto done = rest_->read(at, into); !done) return done;
    if (at.value >= head_.size()) return {};
    const std::size_t patched = std::min(into.size(), static_cast<std::size_t>(head_.size() - at.value));
    std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(at.value), patched, into.begin());
    return {};
  }

 private:
  const std::vector<std::uint8_t> head_;
  const std::unique_ptr<ByteSource> rest_;
};

}  // namespace cframefs::frame
