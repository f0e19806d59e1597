// How many bytes the sub-directories of a disk cache hold, as all processes that share it count them.
//
// The file "budget" has a count for each sub-directory. A process makes a file, books its bytes and then writes it; and
// gives a file another name, books its bytes off and then removes it. So a count is too high rather than too low, also
// after a process was killed. A process that has looked through a sub-directory corrects its count, if nothing was
// booked meanwhile. In a new file all counts are not known.
//
// Thread safety: internally synchronised. The file is locked for microseconds, and never waited for longer than some
// milliseconds: a stopped process may hold the lock. Ownership: borrows the descriptor of the directory.
// Errors: nullopt; then nothing was booked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "codec/base/mutex.h"
#include "frame/remote/objects/system_fd.h"

namespace cframefs::frame {

class DiskBudget {
 public:
  static constexpr unsigned kDirectories = 256;
  static constexpr std::uint64_t kNotKnown = UINT64_MAX;

  struct Count {
    std::uint64_t bytes = kNotKnown;
    std::uint64_t changes = 0;  // how often the count was changed; it may wrap

    bool is_known() const { return bytes != kNotKnown; }
  };
  using Counts = std::array<Count, kDirectories>;

  explicit DiskBudget(int directory) : directory_(directory) {}

  /// Returns all counts.
  std::optional<Counts> counts();
  /// Adds to a count, which ends at 0 and at 2^62. A count that is not known stays so. Returns all counts.
  std::optional<Counts> add(unsigned directory, std::int64_t bytes);
  /// Corrects the count of a sub-directory that was found to hold `bytes`. `before`: the count before it was looked
  /// through; nothing is corrected if the count has changed since. Returns all counts.
  std::optional<Counts> correct(unsigned directory, const Count& before, std::uint64_t bytes);

  /// Returns the sum of the counts that are known.
  static std::uint64_t total(const Counts& counts);

 private:
  template <class Change>
  std::optional<Counts> change(const Change& change);
  bool open_file() REQUIRES(mutex_);
  bool lock_file() REQUIRES(mutex_);
  Counts read_counts() REQUIRES(mutex_);
  bool write_counts(const Counts& counts) REQUIRES(mutex_);

  const int directory_;
  codec::Mutex mutex_;
  SystemFd file_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::frame
