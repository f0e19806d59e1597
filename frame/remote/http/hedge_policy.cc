#include "frame/remote/http/hedge_policy.h"

#include <algorithm>

namespace cframefs::frame {

void HedgePolicy::note_request() {
  credit_ = std::min(credit_ + 1, kBurst * kRequestsEach);
}

void HedgePolicy::note_first_byte(std::chrono::milliseconds time) {
  times_.at(noted_++ % kRemembered) = time;
  auto sorted = times_;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(noted_, kRemembered));
  const auto median = sorted.begin() + (end - sorted.begin()) / 2;
  std::nth_element(sorted.begin(), median, end);
  patience_ = std::max(least_, kFactor * *median);
}

bool HedgePolicy::takes_hedge() {
  if (credit_ < kRequestsEach) return false;
  credit_ -= kRequestsEach;
  return true;
}

}  // namespace cframefs::frame
