#include "codec/stream/ndlz.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/core.h>

#include "codec/stream/stream_decoders.h"

namespace cframefs::codec {
namespace {

constexpr std::size_t kHeader = 9;  // number of dimensions, rows, columns
constexpr std::uint8_t kLiteral = 0x00;
constexpr std::uint8_t kOneValue = 0x40;
constexpr std::uint8_t kWholeCell = 0xc0;

constexpr std::size_t kMaxSide = 8;
using Rows = std::array<std::uint8_t, kMaxSide>;

/// Rows of a cell that are copied from one position; the others follow as literals, or are copied from a second
/// position.
struct RowMatch {
  Rows rows{};
  std::size_t count = 0;
  bool two_places = false;
};

RowMatch run_of_rows(std::size_t first, std::size_t count) {
  RowMatch match;
  match.count = count;
  for (std::size_t i = 0; i < count; ++i)
    match.rows[i] = static_cast<std::uint8_t>(first + i);
  return match;
}

/// Decodes a row token of an 8 x 8 cell; count is 0 if the token is unknown. So does rows_of_4() for 4 x 4.
RowMatch rows_of_8(std::uint8_t token) {
  if (token >= 0x88 && token <= 0x88 + 6) return run_of_rows(token - 0x88U, 2);
  if (token >= 0xa8 && token <= 0xa8 + 5) return run_of_rows(token - 0xa8U, 3);
  return {};
}

RowMatch rows_of_4(std::uint8_t token) {
  RowMatch match;
  if (token >= 224) {
    static constexpr std::array<std::array<std::uint8_t, 3>, 4> triples = {
        {{1, 2, 3}, {0, 1, 2}, {0, 1, 3}, {0, 2, 3}}};
    match.count = 3;
    std::copy_n(triples[(token >> 3) - 28U].begin(), 3, match.rows.begin());
  } else if (token == 128) {
    return run_of_rows(2, 2);
  } else if (token > 128 && token <= 191) {
    const auto first = static_cast<std::uint8_t>((token - 128) >> 5);
    const auto second = static_cast<std::uint8_t>(((token - 128) >> 3) - 4 * first);
    if (second <= first) return {};
    match.count = 2;
    match.rows = {first, second};
  } else if (token >= 40 && token <= 63) {
    match.count = 2;
    match.rows = {0, static_cast<std::uint8_t>((token - 32) >> 3)};
    match.two_places = true;
  }
  return match;
}

class Decoder {
 public:
  Decoder(std::size_t side, ByteView stream) : side_(side), stream_(stream) {}

  Result<void> decode(ByteSpan out) {
    if (stream_.size() < kHeader || stream_[0] != 2)
      return corrupt("ndlz: the stream is too short or not of two dimensions");
    const auto rows = load_le<std::int32_t>(&stream_[1]);
    const auto columns = load_le<std::int32_t>(&stream_[5]);
    if (rows <= 0 || columns <= 0 ||
        static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(columns) != out.size()) {
      return corrupt(fmt::format("ndlz: block of {} x {}, expected {} bytes", rows, columns, out.size()));
    }
    at_ = kHeader;
    const auto height = static_cast<std::size_t>(rows);
    const auto width = static_cast<std::size_t>(columns);
    for (std::size_t row = 0; row < height; row += side_) {
      for (std::size_t column = 0; column < width; column += side_) {
        const std::size_t cell_rows = std::min(side_, height - row);
        const std::size_t cell_columns = std::min(side_, width - column);
        const Result<ByteView> cell = read_cell(cell_rows, cell_columns);
        if (!cell) return Failure(cell.error());
        for (std::size_t i = 0; i < cell_rows; ++i) {
          std::copy_n(cell->begin() + static_cast<std::ptrdiff_t>(i * cell_columns), cell_columns,
                      out.begin() + static_cast<std::ptrdiff_t>((row + i) * width + column));
        }
      }
    }
    if (at_ != stream_.size()) return corrupt("ndlz: trailing bytes after the last cell");
    return {};
  }

 private:
  /// Returns the bytes of the next cell, row by row.
  Result<ByteView> read_cell(std::size_t rows, std::size_t columns) {
    Result<ByteView> first = next_bytes(1);
    if (!first) return first;
    token_at_ = at_ - 1;
    const std::uint8_t token = first->front();
    const std::size_t size = rows * columns;
    switch (token) {
      case kLiteral:
        return next_bytes(size);
      case kWholeCell:
        return copied_bytes(size);
      case kOneValue: {
        Result<ByteView> value = next_bytes(1);
        if (!value) return value;
        cell_.fill(value->front());
        return ByteView(cell_).first(size);
      }
      default:
        break;
    }
    const RowMatch match = side_ == 4 ? rows_of_4(token) : rows_of_8(token);
    if (match.count == 0) return corrupt(fmt::format("ndlz: unknown token {}", token));
    if (size != side_ * side_) return corrupt("ndlz: rows copied into an incomplete cell");
    return join_rows(match);
  }

  Result<ByteView> join_rows(const RowMatch& match) {
    const std::size_t size = match.count * side_;
    // Both distances count from the token. The literals, if any, follow the first distance.
    Result<ByteView> copied = copied_bytes(size);
    if (!copied) return copied;
    const std::size_t others = side_ * side_ - size;
    Result<ByteView> rest = match.two_places ? copied_bytes(others) : next_bytes(others);
    if (!rest) return rest;
    std::array<bool, kMaxSide> is_copied{};
    for (std::size_t i = 0; i < match.count; ++i) {
      is_copied[match.rows[i]] = true;
      place(*copied, i, match.rows[i]);
    }
    std::size_t next = 0;
    for (std::size_t row = 0; row < side_; ++row) {
      if (!is_copied[row]) place(*rest, next++, row);
    }
    return ByteView(cell_).first(side_ * side_);
  }

  void place(ByteView from, std::size_t from_row, std::size_t row) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(from_row * side_), side_,
                cell_.begin() + static_cast<std::ptrdiff_t>(row * side_));
  }

  /// Reads the next `size` bytes of the stream.
  Result<ByteView> next_bytes(std::size_t size) {
    if (size > stream_.size() - at_) return corrupt("ndlz: the stream ends inside a cell");
    at_ += size;
    return stream_.subspan(at_ - size, size);
  }

  /// Reads a distance and returns the `size` bytes of the stream that lie that far before the token.
  Result<ByteView> copied_bytes(std::size_t size) {
    Result<ByteView> field = next_bytes(2);
    if (!field) return field;
    const std::size_t distance = load_le<std::uint16_t>(field->data());
    if (distance > token_at_ - kHeader || distance < size) {
      return corrupt(fmt::format("ndlz: distance {} at byte {}, allowed are {} to {}", distance, token_at_, size,
                                 token_at_ - kHeader));
    }
    return stream_.subspan(token_at_ - distance, size);
  }

  const std::size_t side_;
  const ByteView stream_;
  std::size_t at_ = 0;
  std::size_t token_at_ = 0;
  std::array<std::uint8_t, kMaxSide * kMaxSide> cell_{};
};

}  // namespace

Result<void> decode_ndlz(std::uint8_t side, ByteView stream, ByteSpan out) {
  if (side != 4 && side != 8) return unsupported(fmt::format("codec 32 (ndlz) with cells of {}", side));
  return Decoder(side, stream).decode(out);
}

Result<void> decode_ndlz_stream(StateSlot&, const StreamCodec& codec, ByteView stream, ByteSpan out) {
  return decode_ndlz(codec.meta, stream, out);
}

}  // namespace cframefs::codec
