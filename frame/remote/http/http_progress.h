// What the transport and the starter of an attempt tell each other while it is under way.
//
// Thread safety: all members may be called at once. Ownership: shared by both. Errors: none.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

namespace cframefs::frame {

class HttpProgress {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The transport: an answer has begun that is no redirect which the transport follows.
  void note_first_byte() { first_byte_ = std::chrono::steady_clock::now().time_since_epoch().count(); }
  std::optional<Time> first_byte() const {
    const Time::rep ticks = first_byte_;
    if (ticks == 0) return std::nullopt;
    return Time(Time::duration(ticks));
  }

  /// The starter: the answer is no longer wanted (HttpTransport::end_given_up()).
  void give_up() { is_given_up_ = true; }
  bool is_given_up() const { return is_given_up_; }

 private:
  std::atomic<Time::rep> first_byte_{0};  // of the clock; 0: none has come
  std::atomic<bool> is_given_up_{false};
};

}  // namespace cframefs::frame
