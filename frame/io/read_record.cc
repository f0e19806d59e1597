#include "frame/io/read_record.h"

#include <algorithm>
#include <utility>

#include <libdeflate.h>

namespace cframefs::frame {
namespace {

constexpr std::size_t kMaxPieces = 64;
constexpr std::size_t kStep = std::size_t{1} << 20;

}  // namespace

class ReadRecord::Source final : public ByteSource {
 public:
  Source(std::shared_ptr<const ByteSource> source, std::shared_ptr<ReadRecord> record)
      : source_(std::move(source)), record_(std::move(record)) {}

  std::uint64_t size() const override { return source_->size(); }
  FileOffset base_offset() const override { return source_->base_offset(); }
  std::string label() const override { return source_->label(); }
  void prefetch(FileOffset at, std::uint64_t length) const override { source_->prefetch(at, length); }
  bool is_remote() const override { return source_->is_remote(); }
  bool is_busy() const override { return source_->is_busy(); }
  void expect(FileOffset at, std::uint64_t length) const override { source_->expect(at, length); }
  Result<void> fetch(FileOffset at, std::uint64_t length) const override { return source_->fetch(at, length); }
  /// Returns 0 while recording, so that all bytes are read.
  std::uint64_t zeros(FileOffset at) const override { return record_->has_ended() ? source_->zeros(at) : 0; }
  Result<void> read(FileOffset at, ByteSpan into) const override {
    if (!record_->begin()) return source_->read(at, into);
    auto done = source_->read(at, into);
    record_->end(at, done ? std::optional<ByteView>(into) : std::nullopt);
    return done;
  }

 private:
  const std::shared_ptr<const ByteSource> source_;
  const std::shared_ptr<ReadRecord> record_;
};

void ReadRecord::Checksums::add(ByteView bytes) {
  crc = libdeflate_crc32(crc, bytes.data(), bytes.size());
  adler = libdeflate_adler32(adler, bytes.data(), bytes.size());
}

std::unique_ptr<ByteSource> ReadRecord::watch(std::unique_ptr<ByteSource> source) {
  codec::MutexLock lock(mutex_);
  source_ = std::move(source);
  pieces_.clear();
  return std::make_unique<Source>(source_, shared_from_this());
}

bool ReadRecord::begin() {
  if (has_ended()) return false;
  codec::MutexLock lock(mutex_);
  ++reading_;
  return true;
}

void ReadRecord::end(FileOffset at, std::optional<ByteView> bytes) {
  Checksums sums;
  if (bytes) sums.add(*bytes);
  codec::MutexLock lock(mutex_);
  --reading_;
  if (ended_) return;
  const auto known = std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
    return bytes && piece.at.value == at.value && piece.length == bytes->size();
  });
  if (known != pieces_.end() && known->sums == sums) return;
  if (bytes && known == pieces_.end() && pieces_.size() < kMaxPieces) {
    pieces_.push_back({at, bytes->size(), sums});
    return;
  }
  ended_ = true;
  pieces_ = {};
}

std::optional<ReadRecord::Checksums> ReadRecord::checksums_of(const ByteSource& source, FileOffset at,
                                                              std::uint64_t length) {
  Checksums sums;
  std::vector<std::uint8_t> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(length, kStep)));
  for (std::uint64_t done = 0; done < length;) {
    const ByteSpan step =
        ByteSpan(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(length - done, kStep)));
    if (!source.read(FileOffset{at.value + done}, step)) return std::nullopt;
    sums.add(step);
    done += step.size();
  }
  return sums;
}

bool ReadRecord::is_unchanged() const {
  std::shared_ptr<const ByteSource> source;
  std::vector<Piece> pieces;
  {
    codec::MutexLock lock(mutex_);
    // A read in progress may return bytes from before the change, and is not recorded yet.
    if (ended_ || reading_ > 0 || !source_) return false;
    source = source_;
    pieces = pieces_;
  }
  return std::all_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    const auto now = checksums_of(*source, piece.at, piece.length);
    return now && *now == piece.sums;
  });
}

}  // namespace cframefs::frame
