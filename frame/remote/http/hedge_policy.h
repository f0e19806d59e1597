// When a request whose answer does not begin is sent a second time, and how often that may happen.
//
// A server that is slow for all is not asked more: the patience is a multiple of the usual time to the first byte, and
// beyond a small burst one request in ten is sent twice.
//
// Thread safety: one thread at a time. Ownership: values. Errors: none.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace cframefs::frame {

class HedgePolicy {
 public:
  static constexpr unsigned kBurst = 8;          // second requests at once
  static constexpr unsigned kRequestsEach = 10;  // requests that allow one more
  static constexpr unsigned kFactor = 4;         // of the median
  static constexpr std::size_t kRemembered = 32;

  /// `least`: the patience with a server that is fast.
  explicit HedgePolicy(std::chrono::milliseconds least) : least_(least) {}

  /// Notes that a request was sent the first time.
  void note_request();
  /// Notes how long the first byte of an answer took, or that it took longer.
  void note_first_byte(std::chrono::milliseconds time);
  /// Returns how long a request waits for its first byte until it is sent a second time.
  std::chrono::milliseconds patience() const { return patience_; }
  /// Returns whether a request may be sent a second time now, and counts it.
  bool takes_hedge();

 private:
  const std::chrono::milliseconds least_;
  std::chrono::milliseconds patience_ = least_;
  std::array<std::chrono::milliseconds, kRemembered> times_{};  // the last ones, in a ring
  std::size_t noted_ = 0;
  unsigned credit_ = kBurst * kRequestsEach;
};

}  // namespace cframefs::frame
