#include "frame/remote/listings/look_ahead.h"

#include <algorithm>

namespace cframefs::frame {

std::size_t LookAhead::note(const std::string& directory, std::size_t index) {
  auto found = directories_.find(directory);
  const auto known = found ? *found : directories_.insert(directory, std::make_shared<Directory>(), 1);
  const codec::MutexLock lock(known->mutex);
  auto& positions = known->positions;
  // Threads that go together come a little out of order, hence entries before a position belong to it, too.
  const auto near = std::find_if(positions.begin(), positions.end(), [index](const Position& position) {
    return position.used != 0 && index + kReach >= position.index && index <= position.index + kReach;
  });
  const std::uint64_t now = ++known->uses;
  if (near == positions.end()) {
    const auto oldest = std::min_element(positions.begin(), positions.end(),
                                         [](const Position& a, const Position& b) { return a.used < b.used; });
    *oldest = {index, 0, now};
    return 0;
  }
  near->used = now;
  if (index > near->index) {
    near->index = index;
    near->window = std::clamp(near->window * 2, kFirstWindow, kMostWindow);
  }
  return near->window;
}

}  // namespace cframefs::frame
