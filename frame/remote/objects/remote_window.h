// Decides what to fetch ahead of the readers of one object.
//
// Reads that follow each other are a stream. A stream has a window, which begins with 1 MiB and doubles whenever its
// reader has used half of what was fetched ahead, or 4 MiB if that is less: then the window is filled again, so that
// most of it is always there or in flight. A read inside the window, or a little behind, belongs to its stream,
// so that a reader that skips keeps what was fetched. After four reads in a row that belong to no stream, only a stream
// with several reads is fetched ahead.
//
// Thread safety: one thread at a time. Ownership: values. Errors: none.
#pragma once

#include <array>
#include <cstdint>

#include "frame/remote/http/byte_range.h"

namespace cframefs::frame {

class ReadAheadWindow {
 public:
  static constexpr std::uint64_t kFirst = 1U << 20;
  static constexpr std::uint64_t kMost = 64U << 20;
  static constexpr std::uint64_t kStep = 4U << 20;  // as FetchedRanges::kMostAheadRequest: one request for each step

  /// `most`: bound of a window, if less than kMost.
  explicit ReadAheadWindow(std::uint64_t most) : most_(std::min(most, kMost)) {}

  /// Notes a read of an object of `length` bytes. Returns what to fetch ahead, empty if nothing.
  ByteRange note(ByteRange read, std::uint64_t length);
  /// Notes that a range that note() returned was fetched only up to `covered`.
  void cut(ByteRange ahead, std::uint64_t covered);

 private:
  struct Stream {
    std::uint64_t position = 0;   // end of its farthest read
    std::uint64_t ahead_end = 0;  // end of what was fetched ahead
    std::uint64_t window = 0;
    unsigned hits = 0;       // reads that followed another one
    std::uint64_t used = 0;  // time of its last read
  };

  static bool belongs_to(ByteRange read, const Stream& stream);

  const std::uint64_t most_;
  std::array<Stream, 4> streams_;
  std::uint64_t time_ = 0;  // counts reads
  unsigned scattered_ = 0;  // reads in a row that belong to no stream
  bool is_off_ = false;
};

}  // namespace cframefs::frame
