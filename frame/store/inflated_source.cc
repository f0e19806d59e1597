#include "frame/store/inflated_source.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/core.h>
#include <zlib.h>

#include "frame/base/parse_budget.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
constexpr std::uint64_t kFirstSpacing = 4;  // pieces between restart points, at first
constexpr std::size_t kMaxPoints = 128;     // restart points of one stream
// A pass over more pieces than this yields to other long passes after every kPiecesOfATurn pieces.
constexpr std::uint64_t kPiecesOfATurn = 16;
// Bytes of zlib's window and state.
constexpr std::size_t kPointBytes = (std::size_t{32} << 10) + (std::size_t{8} << 10);
constexpr std::size_t kInputBytes = std::size_t{16} << 10;
// Largest ratio of inflated to deflated bytes: the densest stream encodes a match of 258 bytes in 2 bits.
constexpr std::uint64_t kMaxRatio = 1032;
constexpr int kRawDeflate = -15;  // no header, a window of 32 KiB

}  // namespace

bool InflateMemory::try_reserve(std::size_t bytes) {
  std::size_t room = room_.load(std::memory_order_relaxed);
  while (room >= bytes) {
    if (room_.compare_exchange_weak(room, room - bytes, std::memory_order_relaxed)) return true;
  }
  return false;
}

/// An inflater at a position in a stream.
class InflatedSource::Inflater {
 public:
  /// Returns nullptr if memory is exhausted.
  static std::unique_ptr<Inflater> at_begin() {
    auto made = std::unique_ptr<Inflater>(new Inflater());
    made->opened_ = inflateInit2(&made->state_, kRawDeflate) == Z_OK;
    return made->opened_ ? std::move(made) : nullptr;
  }
  ~Inflater() {
    if (opened_) inflateEnd(&state_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Returns an inflater at the same position, or nullptr if memory is exhausted.
  std::unique_ptr<Inflater> copy() const {
    auto made = std::unique_ptr<Inflater>(new Inflater());
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): inflateCopy() does not change its source
    made->opened_ = inflateCopy(&made->state_, const_cast<z_stream*>(&state_)) == Z_OK;
    if (!made->opened_) return nullptr;
    made->consumed_ = consumed_;
    return made;
  }

  /// Fills `out` with the next bytes of the stream. corruption: the stream ends before.
  Result<void> inflate_to(const ByteSource& source, const Stream& stream, ByteSpan out) {
    state_.next_out = out.data();
    state_.avail_out = static_cast<uInt>(out.size());
    while (state_.avail_out != 0) {
      const auto going_on = feed(source, stream);
      if (!going_on) return Failure(going_on.error());
      if (!*going_on) break;
    }
    if (state_.avail_out == 0) return {};
    return corrupt("zip: '" + stream.name + "' inflates to fewer bytes than the directory says");
  }

  /// Returns true if the stream ends at this position with a valid end marker.
  Result<bool> ends(const ByteSource& source, const Stream& stream) {
    std::uint8_t more = 0;
    state_.next_out = &more;
    state_.avail_out = 1;
    for (;;) {
      const auto going_on = feed(source, stream);
      if (!going_on) return Failure(going_on.error());
      if (state_.avail_out == 0) return false;
      if (!*going_on) return ended_;
    }
  }

 private:
  Inflater() = default;

  /// Inflates from the next bytes of the source. Returns false if no more output will follow.
  Result<bool> feed(const ByteSource& source, const Stream& stream) {
    std::array<std::uint8_t, kInputBytes> input;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled before use
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(input.size(), stream.stored - consumed_));
    const FileOffset at{stream.begin.value + consumed_};
    if (auto done = source.read(at, ByteSpan(input).first(size)); !done) return Failure(done.error());
    state_.next_in = input.data();
    state_.avail_in = static_cast<uInt>(size);
    const int answer = ::inflate(&state_, Z_NO_FLUSH);
    consumed_ += size - state_.avail_in;
    state_.avail_in = 0;
    ended_ = answer == Z_STREAM_END;
    if (ended_ || answer == Z_BUF_ERROR) return false;
    if (answer == Z_OK) return size != 0;
    if (answer == Z_MEM_ERROR) return codec::io_error(ENOMEM, "inflate");
    return corrupt("zip: '" + stream.name + "' is damaged: " + message());
  }

  std::string message() const { return state_.msg == nullptr ? "no deflated data" : state_.msg; }

  z_stream state_{};
  bool opened_ = false;
  bool ended_ = false;
  std::uint64_t consumed_ = 0;  // bytes of the source
};

Result<std::shared_ptr<const InflatedSource>> InflatedSource::open(std::shared_ptr<const ByteSource> source,
                                                                   Stream stream,
                                                                   std::shared_ptr<InflateMemory> memory) {
  if (stream.size / kMaxRatio > stream.stored) {
    return corrupt(fmt::format("zip: '{}' of {} bytes cannot inflate to {} bytes, as the directory says", stream.name,
                               stream.stored, stream.size));
  }
  // Opening a frame inflates all of it to read its end. A frame is compressed already, so zip saves little.
  if (stream.size > ParseBudget::asked(stream.stored).work_left()) {
    return codec::unsupported(fmt::format("zip: '{}' inflates from {} to {} bytes, too many for a frame", stream.name,
                                          stream.stored, stream.size));
  }
  return std::shared_ptr<const InflatedSource>(
      new InflatedSource(std::move(source), std::move(stream), std::move(memory)));
}

InflatedSource::InflatedSource(std::shared_ptr<const ByteSource> source, Stream stream,
                               std::shared_ptr<InflateMemory> memory)
    : source_(std::move(source)),
      stream_(std::move(stream)),
      memory_(std::move(memory)),
      number_(memory_->new_stream()),
      broken_at_(piece_count()),
      spacing_(kFirstSpacing) {}

InflatedSource::~InflatedSource() {
  memory_->give_room(points_.size() * kPointBytes);
}

std::uint64_t InflatedSource::piece_count() const {
  return stream_.size / kPieceBytes + (stream_.size % kPieceBytes == 0 ? 0 : 1);
}

std::size_t InflatedSource::piece_size(std::uint64_t piece) const {
  return static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, stream_.size - piece * kPieceBytes));
}

std::size_t InflatedSource::restart_points() const {
  codec::MutexLock lock(mutex_);
  return points_.size();
}

std::uint64_t InflatedSource::inflated_bytes() const {
  codec::MutexLock lock(mutex_);
  return inflated_;
}

Result<void> InflatedSource::read(FileOffset at, ByteSpan into) const {
  if (at.value > stream_.size || into.size() > stream_.size - at.value) {
    return corrupt("read past the end of zip member '" + stream_.name + "'");
  }
  for (std::uint64_t from = at.value; !into.empty();) {
    const auto piece = find_piece(from / kPieceBytes);
    if (!piece) return Failure(piece.error());
    const ByteView rest = ByteView(**piece).subspan(from % kPieceBytes);
    const std::size_t length = std::min(rest.size(), into.size());
    std::copy_n(rest.begin(), length, into.begin());
    into = into.subspan(length);
    from += length;
  }
  return {};
}

Result<InflateMemory::Piece> InflatedSource::find_piece(std::uint64_t piece) const {
  if (piece < broken_at_.load(std::memory_order_acquire)) {
    if (auto found = memory_->find(number_, piece)) return *found;
  }
  codec::MutexLock lock(mutex_);
  if (piece >= broken_at_.load(std::memory_order_relaxed)) return Failure(*damage_);
  // Another thread may have inflated the piece before this one got the lock.
  if (auto found = memory_->find(number_, piece)) return *found;
  return inflate_piece(piece);
}

Result<InflateMemory::Piece> InflatedSource::inflate_piece(std::uint64_t piece) const {
  seek_checkpoint(piece);
  if (!cursor_) cursor_ = Inflater::at_begin();
  if (!cursor_) return codec::io_error(ENOMEM, "inflate");
  auto plain = std::make_shared<std::vector<std::uint8_t>>();
  const bool takes_turns = piece - cursor_piece_ > kPiecesOfATurn;
  codec::Turns::Turn turn;
  for (std::uint64_t walked = 0;; ++walked) {
    if (takes_turns && walked % kPiecesOfATurn == 0) {
      turn = codec::Turns::Turn();  // release the turn first, so that a waiting stream gets it
      turn = memory_->walks().take();
    }
    const bool wanted = cursor_piece_ == piece;
    plain->resize(piece_size(cursor_piece_));
    if (auto done = step(*plain); !done) {
      cursor_.reset();
      cursor_piece_ = 0;
      return Failure(done.error());
    }
    if (wanted) break;
  }
  memory_->keep(number_, piece, plain);
  return InflateMemory::Piece(std::move(plain));
}

/// Moves the cursor to the nearest known position at or before `piece`: a restart point, its old position or the begin.
void InflatedSource::seek_checkpoint(std::uint64_t piece) const {
  if (cursor_ && cursor_piece_ > piece) cursor_.reset();
  if (!cursor_) cursor_piece_ = 0;
  auto point = points_.upper_bound(piece);
  if (point == points_.begin()) return;
  --point;
  if (point->first <= cursor_piece_) return;
  if (auto copy = point->second->copy()) {
    cursor_ = std::move(copy);
    cursor_piece_ = point->first;
  }
}

/// Inflates the piece at the cursor.
Result<void> InflatedSource::step(ByteSpan out) const {
  auto done = cursor_->inflate_to(*source_, stream_, out);
  if (done) {
    inflated_ += out.size();
    if (cursor_piece_++ == frontier_) done = pass_frontier(out);
  } else if (done.error().kind == codec::ErrorKind::corruption) {
    damage_ = done.error();
    broken_at_.store(cursor_piece_, std::memory_order_release);
  }
  return done;
}

/// Called after the first inflation of a piece: updates the checksum, verifies the stream at its end, and takes restart
/// points.
Result<void> InflatedSource::pass_frontier(ByteView plain) const {
  const auto checksum = static_cast<std::uint32_t>(crc32(checksum_, plain.data(), static_cast<uInt>(plain.size())));
  if (frontier_ + 1 == piece_count()) {
    const auto ends = cursor_->ends(*source_, stream_);
    if (!ends && ends.error().kind != codec::ErrorKind::corruption) return Failure(ends.error());
    if (!ends || !*ends || checksum != stream_.checksum) {
      damage_ =
          corrupt("zip: '" + stream_.name + "' is damaged: checksum or length differs from the directory").value();
      broken_at_.store(0, std::memory_order_release);
      return Failure(*damage_);
    }
  }
  checksum_ = checksum;
  if (++frontier_ < piece_count()) add_checkpoint();
  return {};
}

void InflatedSource::add_checkpoint() const {
  if (frontier_ % spacing_ != 0) return;
  if (points_.size() == kMaxPoints) drop_every_second();
  while (!memory_->try_reserve(kPointBytes)) {
    if (points_.empty()) return;
    drop_every_second();
  }
  auto copy = frontier_ % spacing_ == 0 ? cursor_->copy() : nullptr;
  if (copy) {
    points_.emplace(frontier_, std::move(copy));
  } else {
    memory_->give_room(kPointBytes);
  }
}

/// Doubles the distance between restart points by dropping every second one.
void InflatedSource::drop_every_second() const {
  spacing_ *= 2;
  const std::size_t gone =
      std::erase_if(points_, [spacing = spacing_](const auto& point) { return point.first % spacing != 0; });
  memory_->give_room(gone * kPointBytes);
}

}  // namespace cframefs::frame
