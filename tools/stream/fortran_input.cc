#include "tools/stream/fortran_input.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cframefs::tools {

using codec::ByteSpan;
using codec::ByteView;
using codec::Failure;
using codec::Result;

namespace {

// Bytes fetched at once if the needed parts are close together.
constexpr std::uint64_t kWindowBytes = std::uint64_t{4} << 20;
// Parts that are this many times shorter than their distance are fetched one by one, unless the distance is small.
constexpr std::uint64_t kSparse = 8;
constexpr std::uint64_t kSmallDistance = std::uint64_t{64} << 10;

class TransposingInput final : public Input {
 public:
  TransposingInput(std::unique_ptr<SeekableInput> fortran, const std::vector<std::int64_t>& shape,
                   std::uint64_t itemsize, std::uint64_t band_bytes)
      : fortran_(std::move(fortran)), itemsize_(itemsize), total_(itemsize) {
    for (const std::int64_t extent : shape) {
      dimensions_.push_back({static_cast<std::uint64_t>(extent), total_, 0});
      total_ *= static_cast<std::uint64_t>(extent);
    }
    std::uint64_t stride = itemsize;
    for (std::size_t d = dimensions_.size(); d-- > 0;) {
      dimensions_[d].to_stride = stride;
      stride *= dimensions_[d].extent;
    }
    while (cut_ + 1 < dimensions_.size() && dimensions_[cut_].to_stride > band_bytes)
      ++cut_;
    if (total_ > 0 && !dimensions_.empty())
      steps_ = std::max<std::uint64_t>(band_bytes / dimensions_[cut_].to_stride, 1);
  }

  Result<std::size_t> read(ByteSpan into) override {
    std::size_t filled = 0;
    while (filled < into.size() && at_ < total_) {
      if (taken_ == band_.size()) {
        if (auto made = make_band(); !made) return Failure(made.error());
      }
      const std::size_t size = std::min(into.size() - filled, band_.size() - taken_);
      std::memcpy(into.data() + filled, band_.data() + taken_, size);
      taken_ += size;
      filled += size;
      at_ += size;
    }
    return filled;
  }

 private:
  struct Dimension {
    std::uint64_t extent = 0;
    std::uint64_t from_stride = 0;  // in Fortran order
    std::uint64_t to_stride = 0;    // in C order
  };

  /// Builds the band from at_ on: steps_ along the dimension cut_, all items of the dimensions after it, and one index
  /// of those before it.
  Result<void> make_band() {
    taken_ = 0;
    if (dimensions_.empty()) {
      band_.resize(static_cast<std::size_t>(itemsize_));
      return fetch_run(0, 0, 1, itemsize_, itemsize_);
    }
    std::uint64_t from = 0;
    std::uint64_t rest = at_;
    for (std::size_t d = 0; d < cut_; ++d) {
      from += rest / dimensions_[d].to_stride * dimensions_[d].from_stride;
      rest %= dimensions_[d].to_stride;
    }
    const Dimension& cut = dimensions_[cut_];
    const std::uint64_t first = rest / cut.to_stride;
    const std::uint64_t steps = std::min(steps_, cut.extent - first);
    from += first * cut.from_stride;
    band_.resize(static_cast<std::size_t>(steps * cut.to_stride));
    // Columns in the order in which they lie in the source: the last dimension is the slowest.
    std::vector<std::uint64_t> index(dimensions_.size());
    std::uint64_t to = 0;
    for (;;) {
      if (auto done = fetch_column(from, to, steps); !done) return done;
      std::size_t d = cut_ + 1;
      for (; d < dimensions_.size(); ++d) {
        from += dimensions_[d].from_stride;
        to += dimensions_[d].to_stride;
        if (++index[d] < dimensions_[d].extent) break;
        from -= dimensions_[d].extent * dimensions_[d].from_stride;
        to -= dimensions_[d].extent * dimensions_[d].to_stride;
        index[d] = 0;
      }
      if (d == dimensions_.size()) return {};
    }
  }

  /// Fetches `count` items along the dimension cut_, a window at a time.
  Result<void> fetch_column(std::uint64_t from, std::uint64_t to, std::uint64_t count) {
    const Dimension& cut = dimensions_[cut_];
    const std::uint64_t most = std::max<std::uint64_t>(kWindowBytes / cut.from_stride, 1);
    while (count > 0) {
      const std::uint64_t step = std::min(count, most);
      if (auto done = fetch_run(from, to, step, cut.from_stride, cut.to_stride); !done) return done;
      from += step * cut.from_stride;
      to += step * cut.to_stride;
      count -= step;
    }
    return {};
  }

  Result<void> fetch_run(std::uint64_t from, std::uint64_t to, std::uint64_t count, std::uint64_t from_stride,
                         std::uint64_t to_stride) {
    const auto bytes = window(from, (count - 1) * from_stride + itemsize_);
    if (!bytes) return Failure(bytes.error());
    const std::uint8_t* source = bytes->data();
    std::uint8_t* target = band_.data() + to;
    for (; count > 0; --count, source += from_stride, target += to_stride)
      std::memcpy(target, source, itemsize_);
    return {};
  }

  /// Returns bytes [from, from + length) of the source.
  Result<ByteView> window(std::uint64_t from, std::uint64_t length) {
    if (from < window_at_ || from - window_at_ > window_.size() || window_.size() - (from - window_at_) < length) {
      const std::uint64_t distance = cut_ + 1 < dimensions_.size() ? dimensions_[cut_ + 1].from_stride : total_;
      const bool close = distance <= std::max(length * kSparse, kSmallDistance);
      const std::uint64_t size =
          std::min(total_ - from, close ? std::max(length, kWindowBytes / distance * distance) : length);
      window_.resize(static_cast<std::size_t>(size));
      window_at_ = from;
      fortran_->go_to(from);
      const auto got = fortran_->read(window_);
      if (!got) return Failure(got.error());
      if (*got < size) return codec::corrupt("the array ends before its last item");
    }
    return ByteView(window_).subspan(static_cast<std::size_t>(from - window_at_), static_cast<std::size_t>(length));
  }

  const std::unique_ptr<SeekableInput> fortran_;
  const std::uint64_t itemsize_;
  std::uint64_t total_;  // bytes of all items
  std::vector<Dimension> dimensions_;
  std::size_t cut_ = 0;      // the dimension that bands divide
  std::uint64_t steps_ = 1;  // largest extent of a band in this dimension

  std::uint64_t at_ = 0;  // bytes returned so far
  std::vector<std::uint8_t> band_;
  std::size_t taken_ = 0;  // bytes of band_ that were returned
  std::uint64_t window_at_ = 0;
  std::vector<std::uint8_t> window_;
};

}  // namespace

std::unique_ptr<Input> in_c_order(std::unique_ptr<SeekableInput> fortran, const std::vector<std::int64_t>& shape,
                                  std::uint64_t itemsize, std::uint64_t band_bytes) {
  return std::make_unique<TransposingInput>(std::move(fortran), shape, itemsize, band_bytes);
}

}  // namespace cframefs::tools
