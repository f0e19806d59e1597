// The parts of an object that is written: gathers writes, and gives each part away once it has no gap.
//
// Parts have one size as far as the expected length of the object goes, because some services want that. A first part
// is given away last: a frame has its header there, which is written at the end.
//
// Thread safety: one thread at a time. Ownership: owns the bytes of parts until they are given away. Memory: the first
// part, and the parts with gaps. Errors: invalid for bytes that are written twice, and for an end with a gap; io EFBIG
// for more than 10,000 parts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "frame/io/write_target.h"

namespace cframefs::frame {

struct UploadPart {
  std::uint32_t number = 0;  // from 1 on
  std::string bytes;
};

class UploadParts {
 public:
  static constexpr std::uint32_t kMostParts = 10'000;
  static constexpr std::uint64_t kLeastPart = std::uint64_t{8} << 20;
  static constexpr std::uint64_t kMostPart = std::uint64_t{4} << 30;

  /// `expected`: length of the object as far as the caller knows it, or 0.
  explicit UploadParts(std::uint64_t expected);

  /// Returns the size of a part, if it is not the last one. 10,000 parts of these sizes have 5 TiB at least.
  std::uint64_t size_of(std::uint32_t number) const;

  Result<void> write(ByteView from, FileOffset at);
  /// Returns a part that is complete, but not the first one.
  std::optional<UploadPart> take();
  /// Returns a part of those that are left, the first one last, once all has been written; nullopt after that.
  Result<std::optional<UploadPart>> take_rest();

  /// Returns the length of what has been written, gaps included.
  std::uint64_t length() const { return end_; }
  /// Returns the bytes that are held.
  std::uint64_t held() const { return held_; }
  /// Returns whether there is more than one part.
  bool has_several() const { return opened_ > 1; }

 private:
  struct Open {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    std::string bytes;
  };

  Result<void> claim(std::uint64_t begin, std::uint64_t end);
  Result<void> open_until(std::uint64_t end);
  bool has_gap(std::uint64_t begin, std::uint64_t end) const;
  UploadPart give(std::map<std::uint32_t, Open>::iterator part);

  const std::uint64_t expected_;
  const std::uint64_t base_;
  std::uint64_t end_ = 0;
  std::map<std::uint64_t, std::uint64_t> gaps_;  // begin and end
  std::map<std::uint32_t, Open> open_;
  std::uint32_t opened_ = 0;      // parts so far
  std::uint64_t opened_end_ = 0;  // of the last of them
  std::uint64_t held_ = 0;
};

}  // namespace cframefs::frame
