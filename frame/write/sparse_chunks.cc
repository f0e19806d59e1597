#include "frame/write/sparse_chunks.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "codec/format/chunk_header.h"
#include "frame/cframe/sparse_frame.h"
#include "frame/cframe/stored_entries.h"
#include "frame/io/replacement_file.h"
#include "frame/io/system_version.h"
#include "frame/write/compaction.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::SpecialValue;

constexpr std::size_t kNameDigits = 8;
constexpr const char* kSuffix = ".chunk";
// The highest number of a chunk file: eight hexadecimal digits.
constexpr std::int64_t kLastNumber = 0xffffffff;

/// Returns the number in the name of a chunk file, or -1 for other names.
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

/// Returns the numbers that the index refers to, in any order. unsupported: more than `most`.
Result<std::vector<std::int64_t>> referenced(const FrameContainer& frame, std::size_t most) {
  std::vector<std::int64_t> numbers;
  const auto add_number = [&](std::int64_t, std::int64_t entry) -> Result<void> {
    if (numbers.size() == most)
      return codec::unsupported("sparse frame of more stored chunks than its " + std::to_string(most) + " chunk files");
    numbers.push_back(entry);
    return {};
  };
  if (auto done = for_each_stored(frame, 0, frame.chunk_count(), add_number); !done) return Failure(done.error());
  return numbers;
}

}  // namespace

Result<void> SparseChunks::check_unshared(const FrameContainer& committed) const {
  auto numbers = referenced(committed, taken_.size());
  if (!numbers) return Failure(numbers.error());
  std::sort(numbers->begin(), numbers->end());
  if (std::adjacent_find(numbers->begin(), numbers->end()) == numbers->end()) return {};
  return codec::unsupported("sparse frame whose chunks share files");
}

Result<std::set<std::int64_t>> SparseChunks::numbers_there() const {
  const auto entries = files_.list(directory_);
  if (!entries) return Failure(entries.error());
  std::set<std::int64_t> numbers;
  for (const DirectoryEntry& entry : *entries) {
    if (const std::int64_t number = number_of(entry.name); number >= 0) numbers.insert(number);
  }
  return numbers;
}

/// Reads the numbers of the existing files, which are never overwritten, whether a frame refers to them or a crash left
/// them. Runs before the first write, and again when all numbers were given out. The numbers include the files of held
/// states.
Result<void> SparseChunks::load_numbers(const FrameContainer& committed) {
  if (numbers_loaded_) return {};
  auto numbers = numbers_there();
  if (!numbers) return Failure(numbers.error());
  taken_ = std::move(*numbers);
  next_ = 0;
  const auto index = files_.status_at(directory_, kSparseIndexName);
  if (!index) return Failure(index.error());
  mode_ = index->st_mode & 0777;
  user_ = index->st_uid;
  group_ = index->st_gid;
  if (auto unshared = check_unshared(committed); !unshared) return unshared;
  numbers_loaded_ = true;
  return {};
}

std::int64_t SparseChunks::free_number() {
  while (taken_.contains(next_))
    ++next_;
  return next_++;
}

/// Returns a number that no existing file exceeds.
std::int64_t SparseChunks::highest_number() const {
  return std::max(taken_.empty() ? -1 : *taken_.rbegin(), next_ - 1);
}

Result<void> SparseChunks::write_file(std::int64_t number, ByteView bytes) {
  const auto name = chunk_file_name(number);
  if (!name) return codec::unsupported("all numbers of chunk files are in use");
  const auto fd = files_.create_at(directory_, *name, O_RDWR | O_EXCL, mode_);
  if (!fd) return Failure(fd.error());
  const Descriptor file(files_, *fd);
  written_.push_back(number);
  // Root gives new files to the owner of the index file. Other users own the files that they create.
  if (::geteuid() == 0 && (user_ != 0 || group_ != ::getegid())) {
    auto given = files_.change_owner(file.handle(), user_, group_);
    // As for the index file: if the filesystem does not allow a change of owner, the file keeps the owner it has.
    if (!given && !is_refused_change(given.error())) return given;
  }
  if (auto put = files_.pwrite(file.handle(), bytes, FileOffset{0}); !put) return put;
  auto synced = files_.sync(file.handle(), false);
  sync_failed_ = !synced;
  return synced;
}

/// Records that the next state drops the chunk file `entry`.
Result<void> SparseChunks::obsolete(std::int64_t entry) {
  const auto name = chunk_file_name(entry);
  if (!name) return Failure(name.error());
  const auto status = files_.status_at(directory_, *name);
  if (!status) return {};  // a missing file takes no space
  killed_bytes_ += static_cast<std::uint64_t>(status->st_size);
  obsolete_.push_back({entry, states_->first_of(entry), state_ - 1, version_of(*status)});
  return {};
}

Result<void> SparseChunks::kill_replaced(const FrameContainer& committed, const PendingChanges& pending) {
  for (const ChunkIntervals::Run& run : pending.killed(committed.chunk_count())) {
    const auto note_obsolete = [this](std::int64_t, std::int64_t entry) { return obsolete(entry); };
    if (auto done = for_each_stored(committed, run.begin, run.end, note_obsolete); !done) return done;
  }
  return {};
}

Result<std::uint64_t> SparseChunks::write(const FrameContainer& committed, const PendingChanges& pending,
                                          std::vector<std::pair<std::int64_t, std::int64_t>>& entries,
                                          SparseStates::Number state) {
  sync_failed_ = false;
  state_ = state;
  obsolete_.clear();  // of a failed commit: the committed state still refers to these files
  killed_bytes_ = 0;
  if (next_ + static_cast<std::int64_t>(pending.chunks().size()) > kLastNumber) numbers_loaded_ = false;
  if (auto loaded = load_numbers(committed); !loaded) return Failure(loaded.error());
  if (auto done = kill_replaced(committed, pending); !done) return Failure(done.error());
  written_.reserve(pending.chunks().size());  // discard() removes each file that is made
  std::uint64_t written = 0;
  std::int64_t highest = -1;
  for (const auto& [chunk, encoded] : pending.chunks()) {
    if (encoded.special != SpecialValue::none) {
      entries.emplace_back(chunk, special_entry_of(encoded.special));
      continue;
    }
    const std::int64_t number = free_number();
    if (auto done = write_file(number, encoded.bytes); !done) return Failure(done.error());
    entries.emplace_back(chunk, number);
    written += encoded.bytes.size();
    highest = std::max(highest, number);
  }
  const std::uint64_t before = committed.parameters().cbytes;
  const std::uint64_t sum = before - std::min(before, surplus_ + killed_bytes_) + written;
  auto given = with_room_for_numbers(committed, pending, sum, highest);
  if (given) next_surplus_ = *given - sum;
  return given;
}

/// Returns cbytes for the header. C-Blosc2 checks chunk numbers as if they were offsets and rejects numbers above
/// cbytes - 32. If a few short chunks have high numbers, `sum` is too small, so cbytes is overstated. No reader uses
/// the value otherwise.
Result<std::uint64_t> SparseChunks::with_room_for_numbers(const FrameContainer& committed,
                                                          const PendingChanges& pending, std::uint64_t sum,
                                                          std::int64_t highest) const {
  const auto needed = [](std::int64_t number) {
    return static_cast<std::uint64_t>(number) + codec::kExtendedHeaderLength;
  };
  if (needed(highest_number()) <= sum) return sum;
  const auto raise_highest = [&highest](std::int64_t, std::int64_t entry) -> Result<void> {
    highest = std::max(highest, entry);
    return {};
  };
  for (std::int64_t chunk = 0; chunk < pending.chunk_count();) {
    const PendingChanges::Piece piece = pending.piece(chunk);
    if (piece.kind == PendingChanges::Piece::Kind::kept) {
      if (auto done = for_each_stored(committed, chunk, piece.end, raise_highest); !done) return Failure(done.error());
    }
    chunk = piece.end;
  }
  return highest < 0 ? sum : std::max(sum, needed(highest));
}

void SparseChunks::prepare_to_keep() {
  states_->add_files(state_, written_);
  states_->reserve_dead(obsolete_.size());
}

void SparseChunks::keep() noexcept {
  written_.clear();
  surplus_ = next_surplus_;
}

void SparseChunks::delete_obsolete() {
  states_->add_dead(std::exchange(obsolete_, {}));
  states_->delete_obsolete();
}

/// Ignores errors: a file that cannot be removed is never referred to again.
void SparseChunks::remove(const std::vector<std::int64_t>& numbers) {
  for (const std::int64_t number : numbers)
    static_cast<void>(files_.remove_at(directory_, chunk_file_name(number).value_or(std::string()), false));
}

Result<void> SparseChunks::remove_unreferenced(const FrameContainer& committed) {
  const auto there = numbers_there();
  if (!there) return Failure(there.error());
  const auto wanted = referenced(committed, there->size());
  if (!wanted) return Failure(wanted.error());
  std::set<std::int64_t> kept = states_->waiting();
  kept.insert(wanted->begin(), wanted->end());
  std::vector<std::int64_t> left;
  std::set_difference(there->begin(), there->end(), kept.begin(), kept.end(), std::back_inserter(left));
  states_->unless_read([&] { remove(left); });
  return {};
}

void SparseChunks::discard() {
  states_->forget_files(written_);
  remove(written_);
  written_.clear();
}

}  // namespace cframefs::frame
