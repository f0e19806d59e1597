#include "frame/remote/objects/disk_cache.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

namespace cframefs::frame {
namespace {

constexpr std::uint64_t kMeasureEach = 8;  // some sub-directory is measured after this many kept blocks
constexpr unsigned kMeasuredAtOnce = 8;    // sub-directories with counts that are not known, for each kept block
constexpr int kEvictionRounds = 32;
constexpr unsigned kSampled = 4;            // sub-directories among which the least recently used block is looked for
constexpr std::uint64_t kOpenShare = 8;     // of the bound, that open files hold at most
constexpr std::uint64_t kLeastOpen = 16;    // files
constexpr std::uint64_t kLookAfter = 4096;  // reads, for files that other processes have removed
constexpr std::uint64_t kMostFile = std::uint64_t{1} << 62;

std::int64_t steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

/// Returns some of the sub-directories whose counts `is_chosen` accepts, different ones, in random order.
template <class Chosen>
std::vector<unsigned> sample(const DiskBudget::Counts& counts, std::size_t most, const Chosen& is_chosen) {
  std::vector<unsigned> all;
  for (unsigned directory = 0; directory < DiskBudget::kDirectories; ++directory) {
    if (is_chosen(counts.at(directory))) all.push_back(directory);
  }
  const std::size_t count = std::min(most, all.size());
  for (std::size_t i = 0; i < count; ++i)
    std::swap(all[i], all[i + random_number() % (all.size() - i)]);
  all.resize(count);
  return all;
}

}  // namespace

codec::Result<std::unique_ptr<DiskCache>> DiskCache::open(const std::string& directory, std::uint64_t most_bytes,
                                                          unsigned free_percent) {
  auto root = open_cache_directory(directory);
  if (!root) return codec::Failure(root.error());
  const std::uint64_t most_open =
      std::clamp<std::uint64_t>(most_bytes / kOpenShare / kBlockBytes, kLeastOpen, kMostOpen);
  return std::unique_ptr<DiskCache>(new DiskCache(std::move(*root), most_bytes, free_percent, most_open));
}

DiskCache::DiskCache(SystemFd root, std::uint64_t most_bytes, unsigned free_percent, std::size_t most_open)
    : root_(std::move(root)),
      most_bytes_(most_bytes),
      free_percent_(free_percent),
      budget_(root_.number()),
      open_memory_(most_open),
      open_(most_open) {}

void DiskCache::unbook(unsigned directory, std::uint64_t bytes) {
  static_cast<void>(budget_.add(directory, -static_cast<std::int64_t>(std::min(bytes, kMostFile))));
}

/// Removes a file of `bytes`. Returns false if another process has.
bool DiskCache::remove(unsigned directory, const std::string& name, std::uint64_t bytes) {
  const SystemFd subdirectory = open_subdirectory(root_.number(), directory, false);
  if (!subdirectory.is_open()) return false;
  const std::string taken = take_away(subdirectory.number(), name);
  if (taken.empty()) return false;
  unbook(directory, bytes);
  return ::unlinkat(subdirectory.number(), taken.c_str(), 0) == 0;
}

/// Opens the file of a block. Returns nullptr if there is none; removes what is none of this block.
DiskCache::Open DiskCache::open_block(const DiskBlockKey& key, const DiskBlockPlace& place) {
  SystemFd fd = open_block_file(root_.number(), place.directory(), place.name());
  if (!fd.is_open()) {
    if (errno == ELOOP) remove(place.directory(), place.name(), 0);
    return nullptr;
  }
  struct stat status {};
  if (::fstat(fd.number(), &status) != 0) return nullptr;
  const bool is_file = S_ISREG(status.st_mode);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  Open block;
  if (is_file && size <= kMostDiskHeader + kBlockBytes)
    block = OpenDiskBlock::open(std::move(fd), size, key, status.st_mtim.tv_sec, open_memory_.resource());
  if (!block) remove(place.directory(), place.name(), is_file ? size : 0);
  return block;
}

/// Returns the file of a block, which then stays open for later reads; nullptr if there is none.
DiskCache::Open DiskCache::block_for_reading(const DiskBlockKey& key, const DiskBlockPlace& place) {
  if (const auto known = open_.find(place); known && *known) return *known;
  Open file = open_block(key, place);
  if (file) open_.replace(place, file, 1);
  return file;
}

/// Closes the files that other processes have removed: their bytes count for no bound.
void DiskCache::let_go_removed() {
  open_.remove_if([](const Open& file) { return !file || file->is_removed(); });
}

/// Removes the file of a block that has other bytes than were written.
void DiskCache::remove_damaged(const DiskBlockPlace& place, std::size_t length) {
  open_.replace(place, nullptr, 1);
  remove(place.directory(), place.name(), disk_header_length(length) + length);
}

std::optional<std::vector<std::uint8_t>> DiskCache::find(const std::string& state, std::uint64_t block) {
  if (!keeps()) return std::nullopt;
  const auto key = DiskBlockKey::of(state, block);
  const auto place = place_of(key);
  const Open file = open_block(key, place);
  if (!file) return std::nullopt;
  std::vector<std::uint8_t> body(file->length());
  if (!file->read(0, body)) {
    remove_damaged(place, file->length());
    return std::nullopt;
  }
  file->touch();
  return body;
}

bool DiskCache::read(const std::string& state, const RangeInBlock& range, codec::ByteSpan into) {
  if (!keeps()) return false;
  if (reads_.fetch_add(1, std::memory_order_relaxed) % kLookAfter == kLookAfter - 1) let_go_removed();
  const auto key = DiskBlockKey::of(state, range.block);
  const auto place = place_of(key);
  const Open file = block_for_reading(key, place);
  if (!file || file->length() != range.block_length) return false;
  if (!file->read(range.at, into)) {
    remove_damaged(place, file->length());
    return false;
  }
  file->touch();
  return true;
}

bool DiskCache::prepare(const std::string& state, std::uint64_t block) {
  if (!keeps()) return false;
  const auto key = DiskBlockKey::of(state, block);
  return block_for_reading(key, place_of(key)) != nullptr;
}

bool DiskCache::may_have(const std::string& state, std::uint64_t block) {
  if (!keeps()) return false;
  const auto place = place_of(DiskBlockKey::of(state, block));
  const std::string path = directory_name(place.directory()) + '/' + place.name();
  return ::faccessat(root_.number(), path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void DiskCache::keep(const std::string& state, std::uint64_t block, codec::ByteView bytes) {
  const std::uint64_t size = disk_header_length(bytes.size()) + bytes.size();
  if (!keeps() || bytes.empty() || bytes.size() > kBlockBytes || size > most_bytes_) return;
  const auto key = DiskBlockKey::of(state, block);
  const auto place = place_of(key);
  const SystemFd subdirectory = open_subdirectory(root_.number(), place.directory(), true);
  if (!subdirectory.is_open()) return;
  struct stat status {};
  const std::string name = place.name();
  const bool is_kept = ::fstatat(subdirectory.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                       S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) == size;
  if (is_kept) return;
  NewBlockFile file(subdirectory.number(), size);
  if (!file.is_open() || !reserve(place.directory(), size)) return;
  const int failure = file.write_as(name, header_of(key, bytes), bytes);
  if (failure != 0) unbook(place.directory(), size);
  if (failure == ENOSPC || failure == EDQUOT) {
    looked_at_ = steady_seconds();
    is_short_ = true;
  }
}

/// Books bytes for a file, which exists already. Removes others if there is no room. Returns false if it must not be
/// written.
bool DiskCache::reserve(unsigned directory, std::uint64_t bytes) {
  auto counts = budget_.counts();
  if (!counts) return false;
  const auto not_known = [](const DiskBudget::Count& count) { return !count.is_known(); };
  auto measured = sample(*counts, kMeasuredAtOnce, not_known);
  if (not_known(counts->at(directory)) && std::find(measured.begin(), measured.end(), directory) == measured.end()) {
    measured.push_back(directory);
  }
  for (const unsigned each : measured)
    measure(each, *counts, each == directory ? bytes : 0);
  if (kept_.fetch_add(1) % kMeasureEach == kMeasureEach - 1) {
    const auto any = static_cast<unsigned>(random_number() % DiskBudget::kDirectories);
    measure(any, *counts, any == directory ? bytes : 0);
  }
  if (is_disk_short()) {
    static_cast<void>(evict(*counts, bytes));
    return false;
  }
  counts = budget_.add(directory, static_cast<std::int64_t>(bytes));
  for (int round = 0; counts && DiskBudget::total(*counts) > most_bytes_ && round < kEvictionRounds; ++round)
    counts = evict(*counts, DiskBudget::total(*counts) - most_bytes_);
  if (counts && DiskBudget::total(*counts) <= most_bytes_) return true;
  unbook(directory, bytes);
  return false;
}

/// Looks through a sub-directory and corrects its count, which was that of `counts` before. `unbooked`: bytes of it
/// that are booked later.
void DiskCache::measure(unsigned directory, const DiskBudget::Counts& counts, std::uint64_t unbooked) {
  const std::uint64_t found = content_of(root_.number(), directory).bytes;
  const std::uint64_t bytes = found - std::min(found, unbooked);
  static_cast<void>(budget_.correct(directory, counts.at(directory), bytes));
}

/// Removes at least `bytes`, if some random sub-directories have as many, of what was used least recently in them.
std::optional<DiskBudget::Counts> DiskCache::evict(const DiskBudget::Counts& counts, std::uint64_t bytes) {
  const auto sampled =
      sample(counts, kSampled, [](const DiskBudget::Count& count) { return count.is_known() && count.bytes != 0; });
  std::vector<DiskBlockFile> files;
  std::uint64_t all = 0;
  for (const unsigned directory : sampled) {
    const auto content = content_of(root_.number(), directory);
    files.insert(files.end(), content.blocks.begin(), content.blocks.end());
    all += content.bytes;
    if (content.bytes != counts.at(directory).bytes) {
      static_cast<void>(budget_.correct(directory, counts.at(directory), content.bytes));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const DiskBlockFile& one, const DiskBlockFile& other) { return one.used < other.used; });
  const std::uint64_t wanted = std::max(bytes, all / 16);  // a large sub-directory is not looked through for each block
  std::uint64_t freed = 0;
  for (auto file = files.begin(); file != files.end() && freed < wanted; ++file) {
    if (remove(file->directory, file->name, file->bytes)) freed += file->bytes;
  }
  let_go_removed();
  return budget_.counts();
}

/// Looks at the free space at most once a second.
bool DiskCache::is_disk_short() {
  const std::int64_t now = steady_seconds();
  if (looked_at_.exchange(now) == now) return is_short_;
  struct statvfs status {};
  is_short_ = ::fstatvfs(root_.number(), &status) == 0 && status.f_blocks > 0 &&
              status.f_bavail < status.f_blocks / 100 * free_percent_;
  return is_short_;
}

}  // namespace cframefs::frame
