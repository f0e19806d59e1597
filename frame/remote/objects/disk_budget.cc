#include "frame/remote/objects/disk_budget.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "codec/base/bytes.h"

namespace cframefs::frame {
namespace {

constexpr std::string_view kBudgetMagic("cfbudget", 8);
constexpr std::size_t kCountBytes = 16;
constexpr std::size_t kFileBytes = 8 + kCountBytes * DiskBudget::kDirectories;
constexpr std::uint64_t kMostCount = std::uint64_t{1} << 62;
constexpr int kLockAttempts = 50;
constexpr std::chrono::microseconds kLockPause{100};

using BudgetBytes = std::array<std::uint8_t, kFileBytes>;

void store_count(const DiskBudget::Count& count, std::uint8_t* at) {
  codec::store_le(at, count.bytes);
  codec::store_le(at + 8, count.changes);
}

}  // namespace

/// Opens the file again if it was removed.
bool DiskBudget::open_file() {
  struct stat status {};
  if (file_.is_open() && ::fstat(file_.number(), &status) == 0 && status.st_nlink > 0) return true;
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  file_ = SystemFd(::openat(directory_, "budget", kFlags, S_IRUSR | S_IWUSR));
  return file_.is_open() && ::fstat(file_.number(), &status) == 0 && S_ISREG(status.st_mode);
}

bool DiskBudget::lock_file() {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (::flock(file_.number(), LOCK_EX | LOCK_NB) == 0) return true;
    std::this_thread::sleep_for(kLockPause);
  }
  return false;
}

DiskBudget::Counts DiskBudget::read_counts() {
  Counts counts{};
  BudgetBytes bytes{};
  const auto got = ::pread(file_.number(), bytes.data(), bytes.size(), 0);
  if (got != static_cast<ssize_t>(bytes.size())) return counts;
  if (!std::equal(kBudgetMagic.begin(), kBudgetMagic.end(), bytes.begin())) return counts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::uint8_t* const at = &bytes[8 + kCountBytes * i];
    const auto count = codec::load_le<std::uint64_t>(at);
    counts[i] = {count <= kMostCount ? count : kNotKnown, codec::load_le<std::uint64_t>(at + 8)};
  }
  return counts;
}

bool DiskBudget::write_counts(const Counts& counts) {
  BudgetBytes bytes{};
  std::copy(kBudgetMagic.begin(), kBudgetMagic.end(), bytes.begin());
  for (std::size_t i = 0; i < counts.size(); ++i)
    store_count(counts[i], &bytes[8 + kCountBytes * i]);
  return ::pwrite(file_.number(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
}

template <class Change>
std::optional<DiskBudget::Counts> DiskBudget::change(const Change& change) {
  codec::MutexLock lock(mutex_);
  if (!open_file() || !lock_file()) return std::nullopt;
  Counts counts = read_counts();
  change(counts);
  const bool is_written = write_counts(counts);
  ::flock(file_.number(), LOCK_UN);
  return is_written ? std::optional(counts) : std::nullopt;
}

std::optional<DiskBudget::Counts> DiskBudget::add(unsigned directory, std::int64_t bytes) {
  return change([&](Counts& counts) {
    Count& count = counts.at(directory);
    ++count.changes;
    if (!count.is_known()) return;
    const auto sum = static_cast<std::int64_t>(count.bytes) + bytes;  // both are at most 2^62 in absolute value
    count.bytes = std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(sum, 0)), kMostCount);
  });
}

std::optional<DiskBudget::Counts> DiskBudget::correct(unsigned directory, const Count& before, std::uint64_t bytes) {
  return change([&](Counts& counts) {
    Count& count = counts.at(directory);
    if (count.changes == before.changes) count = {std::min(bytes, kMostCount), before.changes + 1};
  });
}

std::optional<DiskBudget::Counts> DiskBudget::counts() {
  return change([](Counts&) {});
}

std::uint64_t DiskBudget::total(const Counts& counts) {
  std::uint64_t sum = 0;
  for (const Count& count : counts) {
    if (count.is_known()) sum = std::min(sum + count.bytes, kMostCount);
  }
  return sum;
}

}  // namespace cframefs::frame
