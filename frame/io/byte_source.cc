#include "frame/io/byte_source.h"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include <fmt/core.h>
#include <unistd.h>

#include "frame/base/parse_budget.h"

namespace cframefs::frame {

namespace {

/// Reads of this size and more check for a hole first.
constexpr std::size_t kMinHoleCheck = std::size_t{32} << 10;
/// A file that stores at most this much less than its length is treated as a file without holes.
constexpr std::uint64_t kMaxSlack = std::uint64_t{1} << 20;

codec::Failure ends_before(FileOffset at, std::size_t size, std::uint64_t end) {
  return codec::corrupt(fmt::format("the file ends at byte {}, but {} bytes are needed at {}", end, size, at.value));
}

class FileSource final : public ByteSource {
 public:
  /// `owner`: keeps `file` open, or null if the caller does.
  FileSource(ReadFileOps& files, OpenFile file, std::shared_ptr<const Descriptor> owner, FileOffset begin,
             std::uint64_t size)
      : files_(files), file_(file), owner_(std::move(owner)), begin_(begin), size_(size) {}

  std::uint64_t size() const override { return size_; }
  std::uint64_t stored() const override {
    const auto status = files_.status(file_);
    return status ? std::min(size_, stored_bytes(*status)) : size_;
  }
  FileOffset base_offset() const override { return begin_; }

  void prefetch(FileOffset at, std::uint64_t length) const override {
    if (at.value >= size_) return;
    files_.prefetch(file_, FileOffset{begin_.value + at.value}, std::min(length, size_ - at.value));
  }
  bool is_remote() const override { return files_.is_remote(); }
  bool is_busy() const override { return files_.is_busy(); }
  void expect(FileOffset at, std::uint64_t length) const override {
    if (at.value >= size_) return;
    files_.expect(file_, FileOffset{begin_.value + at.value}, std::min(length, size_ - at.value));
  }
  Result<void> fetch(FileOffset at, std::uint64_t length) const override {
    if (at.value >= size_) return {};
    return files_.fetch(file_, FileOffset{begin_.value + at.value}, std::min(length, size_ - at.value));
  }
  std::uint64_t zeros(FileOffset at) const override {
    if (at.value >= size_ || !has_holes()) return 0;
    const auto data = files_.seek(file_, FileOffset{begin_.value + at.value}, SEEK_DATA);
    if (data) return std::min(std::max(data->value, begin_.value + at.value) - begin_.value, size_) - at.value;
    if (data.error().sys != ENXIO) return 0;
    // ENXIO: no data up to the end of the file, which may have been truncated since it was opened.
    const auto status = files_.status(file_);
    if (!status) return 0;
    const auto length = static_cast<std::uint64_t>(status->st_size);
    const std::uint64_t end = std::min(length - std::min(length, begin_.value), size_);
    return std::max(end, at.value) - at.value;
  }
  Result<void> read(FileOffset at, ByteSpan into) const override {
    if (at.value > size_ || into.size() > size_ - at.value) return ends_before(at, into.size(), size_);
    if (into.size() >= kMinHoleCheck && zeros(at) >= into.size()) {
      std::fill(into.begin(), into.end(), std::uint8_t{0});
      return {};
    }
    const auto got = files_.pread(file_, into, FileOffset{begin_.value + at.value});
    if (!got) return codec::Failure(got.error());
    if (*got < into.size()) return ends_before(at, into.size(), at.value + *got);
    return {};
  }

 private:
  enum class Holes : std::uint8_t { not_known, none, some };

  /// Returns true if the file stores so much less than its length that checks for holes pay. Computed once; reads stay
  /// correct if the file changes later.
  bool has_holes() const {
    Holes holes = holes_.load(std::memory_order_relaxed);
    if (holes == Holes::not_known) {
      const auto status = files_.status(file_);
      const bool is_sparse = status && stored_bytes(*status) + kMaxSlack < static_cast<std::uint64_t>(status->st_size);
      holes = is_sparse ? Holes::some : Holes::none;
      holes_.store(holes, std::memory_order_relaxed);
    }
    return holes == Holes::some;
  }

  ReadFileOps& files_;
  const OpenFile file_;
  const std::shared_ptr<const Descriptor> owner_;
  const FileOffset begin_;
  const std::uint64_t size_;
  mutable std::atomic<Holes> holes_{Holes::not_known};
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}

  std::uint64_t size() const override { return bytes_.size(); }

  Result<void> read(FileOffset at, ByteSpan into) const override {
    if (at.value > bytes_.size() || into.size() > bytes_.size() - at.value) {
      return ends_before(at, into.size(), bytes_.size());
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at.value), into.size(), into.begin());
    return {};
  }

 private:
  const std::vector<std::uint8_t> bytes_;
};

std::unique_ptr<ByteSource> make_source(ReadFileOps& files, OpenFile file, std::shared_ptr<const Descriptor> owner,
                                        FileOffset begin, std::uint64_t size) {
  // There are no bytes past the largest offset, and sums with `begin` must not wrap.
  constexpr std::uint64_t kLastOffset = INT64_MAX;
  if (begin.value > kLastOffset) begin.value = kLastOffset;
  size = std::min(size, kLastOffset - begin.value);
  return std::make_unique<FileSource>(files, file, std::move(owner), begin, size);
}

}  // namespace

std::unique_ptr<ByteSource> file_source(ReadFileOps& files, std::shared_ptr<const Descriptor> file, FileOffset begin,
                                        std::uint64_t size) {
  const OpenFile handle = file->handle();
  return make_source(files, handle, std::move(file), begin, size);
}

std::unique_ptr<ByteSource> borrowed_source(ReadFileOps& files, OpenFile file, FileOffset begin, std::uint64_t size) {
  return make_source(files, file, nullptr, begin, size);
}

std::unique_ptr<ByteSource> memory_source(std::vector<std::uint8_t> bytes) {
  return std::make_unique<MemorySource>(std::move(bytes));
}

}  // namespace cframefs::frame
