#include "frame/store/zip_member.h"

#include <algorithm>
#include <utility>

namespace cframefs::frame {

namespace {

using codec::Failure;

class RangeSource final : public ByteSource {
 public:
  RangeSource(std::shared_ptr<const ByteSource> whole, FileOffset begin, std::uint64_t size)
      : whole_(std::move(whole)), begin_(begin), size_(size) {}
  std::uint64_t size() const override { return size_; }
  std::uint64_t stored() const override { return std::min(size_, whole_->stored()); }
  std::uint64_t zeros(FileOffset at) const override {
    return at.value < size_ ? std::min(whole_->zeros(FileOffset{begin_.value + at.value}), size_ - at.value) : 0;
  }
  Result<void> read(FileOffset at, ByteSpan into) const override {
    if (at.value > size_ || into.size() > size_ - at.value) return codec::corrupt("read past the end of a zip member");
    return whole_->read(FileOffset{begin_.value + at.value}, into);
  }
  void prefetch(FileOffset at, std::uint64_t length) const override {
    if (at.value < size_) whole_->prefetch(FileOffset{begin_.value + at.value}, std::min(length, size_ - at.value));
  }
  bool is_remote() const override { return whole_->is_remote(); }
  bool is_busy() const override { return whole_->is_busy(); }
  void expect(FileOffset at, std::uint64_t length) const override {
    if (at.value < size_) whole_->expect(FileOffset{begin_.value + at.value}, std::min(length, size_ - at.value));
  }
  Result<void> fetch(FileOffset at, std::uint64_t length) const override {
    if (at.value >= size_) return {};
    return whole_->fetch(FileOffset{begin_.value + at.value}, std::min(length, size_ - at.value));
  }
  FileOffset base_offset() const override { return FileOffset{whole_->base_offset().value + begin_.value}; }
  std::string label() const override { return whole_->label(); }

 private:
  const std::shared_ptr<const ByteSource> whole_;
  const FileOffset begin_;
  const std::uint64_t size_;
};

}  // namespace

std::unique_ptr<ByteSource> range_source(std::shared_ptr<const ByteSource> whole, FileOffset begin,
                                         std::uint64_t size) {
  return std::make_unique<RangeSource>(std::move(whole), begin, size);
}

Result<std::shared_ptr<const ByteSource>> open_zip_member(std::shared_ptr<const ByteSource> zip,
                                                          const ZipMember& member,
                                                          std::shared_ptr<InflateMemory> memory) {
  const auto begin = zip_member_begin(*zip, member);
  if (!begin) return Failure(begin.error());
  if (member.method == ZipMethod::stored) return range_source(std::move(zip), *begin, member.size);
  auto opened = InflatedSource::open(std::move(zip), {*begin, member.stored, member.size, member.checksum, member.name},
                                     std::move(memory));
  if (!opened) return Failure(opened.error());
  return std::move(*opened);
}

}  // namespace cframefs::frame
