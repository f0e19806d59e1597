#include "frame/sparse_chunks.h"

#include <algorithm>
#include <iterator>

#include <fcntl.h>

#include "codec/chunk_header.h"
#include "frame/live_copy.h"
#include "frame/sparse_frame.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::SpecialValue;

constexpr std::size_t kNameDigits = 8;
constexpr const char* kSuffix = ".chunk";

/// The number in the name of a chunk file; -1 for other names.
std::int64_t number_of(const std::string& name) {
  if (name.size() != kNameDigits + 6 || !name.ends_with(kSuffix)) return -1;
  std::int64_t number = 0;
  for (const char c : name.substr(0, kNameDigits)) {
    if (c >= '0' && c <= '9') {
      number = number * 16 + (c - '0');
    } else if (c >= 'A' && c <= 'F') {
      number = number * 16 + (c - 'A' + 10);
    } else {
      return -1;
    }
  }
  return number;
}

/// The numbers that the index refers to, in no order; more than `most` are unsupported.
Result<std::vector<std::int64_t>> referenced(const FrameContainer& frame, std::size_t most) {
  std::vector<std::int64_t> numbers;
  const auto uniform = frame.uniform_entry();
  if (uniform && *uniform < 0) return numbers;
  for (std::int64_t chunk = 0; chunk < frame.chunk_count();) {
    const auto entry = uniform ? Result<std::int64_t>(*uniform) : frame.index_entry(ChunkNumber{chunk});
    if (!entry) return Failure(entry.error());
    ++chunk;
    if (*entry < 0) continue;
    if (numbers.size() == most) return codec::unsupported("sparse frame of more chunks than files");
    numbers.push_back(*entry);
  }
  return numbers;
}

}  // namespace

Result<void> SparseChunks::check_unshared(const FrameContainer& committed) const {
  auto numbers = referenced(committed, numbers_.size());
  if (!numbers) return Failure(numbers.error());
  std::sort(numbers->begin(), numbers->end());
  if (std::adjacent_find(numbers->begin(), numbers->end()) == numbers->end()) return {};
  return codec::unsupported("sparse frame whose chunks share files");
}

/// Once: whatever is there then is not overwritten, whether a frame refers to it or a crash left it.
Result<void> SparseChunks::look_around(const FrameContainer& committed) {
  if (looked_) return {};
  const auto entries = files_.list(folder_);
  if (!entries) return Failure(entries.error());
  for (const DirectoryEntry& entry : *entries) {
    if (const std::int64_t number = number_of(entry.name); number >= 0) numbers_.insert(number);
  }
  const auto index = files_.status_at(folder_, kSparseIndexName);
  if (!index) return Failure(index.error());
  mode_ = index->st_mode & 0777;
  if (auto unshared = check_unshared(committed); !unshared) return unshared;
  looked_ = true;
  return {};
}

std::int64_t SparseChunks::free_number() {
  auto used = numbers_.lower_bound(search_from_);
  while (used != numbers_.end() && *used == search_from_) {
    ++search_from_;
    ++used;
  }
  return search_from_;
}

Result<void> SparseChunks::write_file(std::int64_t number, ByteView bytes, bool durable) {
  const auto name = chunk_file_name(number);
  if (!name) return codec::unsupported("no number is left for a chunk file");
  const auto fd = files_.create_at(folder_, *name, O_RDWR | O_EXCL, mode_);
  if (!fd) return Failure(fd.error());
  const Descriptor file(files_, *fd);
  numbers_.insert(number);
  written_.push_back(number);
  if (auto put = files_.pwrite(file.fd(), bytes, FileOffset{0}); !put) return put;
  if (!durable) return {};
  auto synced = files_.sync(file.fd(), false);
  sync_failed_ = !synced;
  return synced;
}

/// The file of a chunk that the state to come does without.
Result<void> SparseChunks::kill(const FrameContainer& committed, std::int64_t chunk) {
  const auto entry = committed.index_entry(ChunkNumber{chunk});
  if (!entry) return Failure(entry.error());
  if (*entry < 0) return {};
  const auto name = chunk_file_name(*entry);
  if (!name) return Failure(name.error());
  killed_.push_back(*entry);
  // A file that is missing takes nothing.
  if (const auto status = files_.status_at(folder_, *name))
    killed_bytes_ += static_cast<std::uint64_t>(status->st_size);
  return {};
}

Result<void> SparseChunks::kill_replaced(const FrameContainer& committed, const PendingChanges& pending) {
  for (const auto& [chunk, encoded] : pending.chunks()) {
    if (chunk >= pending.kept()) break;
    if (auto done = kill(committed, chunk); !done) return done;
  }
  for (std::int64_t chunk = pending.kept(); chunk < committed.chunk_count(); ++chunk) {
    if (auto done = kill(committed, chunk); !done) return done;
  }
  return {};
}

Result<std::uint64_t> SparseChunks::write(const FrameContainer& committed, const PendingChanges& pending,
                                          std::vector<std::pair<std::int64_t, std::int64_t>>& entries, bool durable) {
  sync_failed_ = false;
  if (auto looked = look_around(committed); !looked) return Failure(looked.error());
  if (auto done = kill_replaced(committed, pending); !done) return Failure(done.error());
  std::uint64_t written = 0;
  std::int64_t highest = -1;
  for (const auto& [chunk, encoded] : pending.chunks()) {
    if (encoded.special != SpecialValue::none) {
      entries.emplace_back(chunk, special_entry_of(encoded.special));
      continue;
    }
    const std::int64_t number = free_number();
    if (auto done = write_file(number, encoded.bytes, durable); !done) return Failure(done.error());
    entries.emplace_back(chunk, number);
    written += encoded.bytes.size();
    highest = std::max(highest, number);
  }
  const std::uint64_t before = committed.parameters().cbytes;
  const std::uint64_t sum = before - std::min(before, killed_bytes_) + written;
  return with_room_for_numbers(committed, pending, sum, highest);
}

/// The reference library checks numbers as if they were offsets of chunks: none may lie past the sum less 32. Where few
/// short chunks are left that have high numbers, the sum is given as more than it is, which nobody minds.
Result<std::uint64_t> SparseChunks::with_room_for_numbers(const FrameContainer& committed,
                                                          const PendingChanges& pending, std::uint64_t sum,
                                                          std::int64_t highest) const {
  const auto needed = [](std::int64_t number) {
    return static_cast<std::uint64_t>(number) + codec::kExtendedHeaderLength;
  };
  if (numbers_.empty() || needed(*numbers_.rbegin()) <= sum) return sum;
  for (std::int64_t chunk = 0; chunk < std::min(pending.kept(), pending.chunk_count()); ++chunk) {
    if (pending.chunks().contains(chunk)) continue;
    const auto entry = committed.index_entry(ChunkNumber{chunk});
    if (!entry) return Failure(entry.error());
    highest = std::max(highest, *entry);
  }
  return highest < 0 ? sum : std::max(sum, needed(highest));
}

void SparseChunks::keep() {
  written_.clear();
  very_dead_.insert(very_dead_.end(), dead_.begin(), dead_.end());
  dead_ = std::move(killed_);
  killed_.clear();
  killed_bytes_ = 0;
}

void SparseChunks::remove(const std::vector<std::int64_t>& numbers) {
  for (const std::int64_t number : numbers) {
    // What cannot be removed is never referred to again, and its number stays taken.
    if (!files_.remove_at(folder_, chunk_file_name(number).value_or(std::string()), false)) continue;
    numbers_.erase(number);
    search_from_ = std::min(search_from_, number);
  }
}

void SparseChunks::remove_dead() {
  remove(very_dead_);
  very_dead_.clear();
}

void SparseChunks::remove_all_dead() {
  remove_dead();
  remove(dead_);
  dead_.clear();
}

Result<void> SparseChunks::remove_unreferenced(const FrameContainer& committed) {
  if (auto looked = look_around(committed); !looked) return looked;
  const auto wanted = referenced(committed, numbers_.size());
  if (!wanted) return Failure(wanted.error());
  const std::set<std::int64_t> live(wanted->begin(), wanted->end());
  std::vector<std::int64_t> left;
  std::set_difference(numbers_.begin(), numbers_.end(), live.begin(), live.end(), std::back_inserter(left));
  remove(left);
  // Their numbers may be given out again, to files that live.
  dead_.clear();
  very_dead_.clear();
  return {};
}

void SparseChunks::discard() {
  remove(written_);
  written_.clear();
  killed_.clear();
  killed_bytes_ = 0;
}

}  // namespace cframefs::frame
