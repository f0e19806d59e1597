#include "frame/base/parse_budget.h"

#include <algorithm>
#include <limits>
#include <string>

namespace cframefs::frame {

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// Bytes that every file may use, however little it stores …
struct Free {
  std::uint64_t memory;
  std::uint64_t work;
};
constexpr Free kUnasked{24 * kMiB, 64 * kMiB};
constexpr Free kAsked{40 * kMiB, 256 * kMiB};
/// … plus this multiple of its stored bytes.
constexpr std::uint64_t kMemoryFactor = 2;
constexpr std::uint64_t kUnaskedWorkFactor = 16;
constexpr std::uint64_t kAskedWorkFactor = 64;

std::uint64_t with_factor(std::uint64_t base, std::uint64_t factor, std::uint64_t stored) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - base;
  return stored > most / factor ? std::numeric_limits<std::uint64_t>::max() : base + factor * stored;
}

codec::Failure too_much(std::string_view thing, const char* what, std::uint64_t bytes, std::uint64_t left) {
  return codec::unsupported(std::string(thing) + ": needs " + what + " of " + std::to_string(bytes) +
                            " bytes, but only " + std::to_string(left) +
                            " are left of what the size of the file justifies");
}

}  // namespace

ParseBudget ParseBudget::unasked(std::uint64_t stored) {
  return {with_factor(kUnasked.memory, kMemoryFactor, stored), with_factor(kUnasked.work, kUnaskedWorkFactor, stored)};
}

ParseBudget ParseBudget::asked(std::uint64_t stored) {
  return {with_factor(kAsked.memory, kMemoryFactor, stored), with_factor(kAsked.work, kAskedWorkFactor, stored)};
}

codec::Result<void> ParseBudget::take_memory(std::uint64_t bytes, std::string_view thing) {
  exceeded_ = exceeded_ || bytes > memory_;
  if (bytes > memory_) return too_much(thing, "memory", bytes, memory_);
  memory_ -= bytes;
  taken_ += bytes;
  return {};
}

void ParseBudget::release_memory(std::uint64_t bytes) {
  const std::uint64_t given = std::min(bytes, taken_);
  taken_ -= given;
  memory_ += given;
}

codec::Result<void> ParseBudget::spend_work(std::uint64_t bytes, std::string_view thing) {
  exceeded_ = exceeded_ || bytes > work_;
  if (bytes > work_) return too_much(thing, "work", bytes, work_);
  work_ -= bytes;
  return {};
}

std::uint64_t stored_bytes(const struct stat& status) {
  const auto length = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0));
  const auto blocks = static_cast<std::uint64_t>(std::max<blkcnt_t>(status.st_blocks, 0));
  constexpr std::uint64_t kBlock = 512;
  return blocks == 0 ? length : std::min(length, blocks * kBlock);
}

}  // namespace cframefs::frame
