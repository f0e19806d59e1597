// Finds out whether a caller goes through the entries of a directory in order, as "ls -l" does, and how far to look
// ahead of it.
//
// Callers may go in more than one order at once, and a sorted order may differ from that of the listing: four positions
// of a directory are remembered. An entry shortly behind a position continues it; each continuation doubles the window,
// from 8 to 64 entries. Single look-ups look ahead of nothing.
//
// Thread safety: internally synchronised. Ownership: none. Errors: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "codec/base/mutex.h"
#include "frame/base/lru_cache.h"

namespace cframefs::frame {

class LookAhead {
 public:
  static constexpr std::size_t kMostWindow = 64;

  /// Notes that the entry with number `index` in the directory is wanted. Returns how many entries behind it will soon
  /// be wanted; 0: not known.
  std::size_t note(const std::string& directory, std::size_t index);

 private:
  static constexpr std::size_t kFirstWindow = 8;
  static constexpr std::size_t kReach = 64;  // entries
  static constexpr std::size_t kPositions = 4;
  static constexpr std::size_t kMostDirectories = 256;

  struct Position {
    std::size_t index = 0;
    std::size_t window = 0;
    std::uint64_t used = 0;  // 0: never
  };
  struct Directory {
    codec::Mutex mutex;
    std::array<Position, kPositions> positions GUARDED_BY(mutex);
    std::uint64_t uses GUARDED_BY(mutex) = 0;
  };

  LruCache<std::string, std::shared_ptr<Directory>> directories_{kMostDirectories};
};

}  // namespace cframefs::frame
