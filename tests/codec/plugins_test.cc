// The registered codecs and filters for n-d blocks, tested against assembled streams, the encoder of libzfp, and simple
// loops.
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <zfp.h>

#include "codec/chunk_decoder.h"
#include "codec/filter/cells.h"
#include "codec/stream/ndlz.h"
#include "codec/stream/stream_decoders.h"
#include "codec/stream/zfp_streams.h"
#include "tests/codec/chunk_assembler.h"
#include "tests/codec/test_bytes.h"

namespace cframefs {
namespace {

using codec::ErrorKind;
using codec::ZfpMode;

// ---- ndlz ---------------------------------------------------------------------------------------------------------

/// Writes random tokens and the bytes that they decode to, from the token tables of codecs.md section 8.
class NdlzWriter {
 public:
  NdlzWriter(std::size_t side, std::size_t rows, std::size_t columns, std::uint32_t seed)
      : side_(side), rows_(rows), columns_(columns), random_(seed), plain_(rows * columns) {
    stream_.push_back(2);
    append_le(stream_, static_cast<std::int32_t>(rows));
    append_le(stream_, static_cast<std::int32_t>(columns));
    for (std::size_t row = 0; row < rows; row += side) {
      for (std::size_t column = 0; column < columns; column += side)
        cell(row, column);
    }
  }
  const Bytes& stream() const { return stream_; }
  const Bytes& plain() const { return plain_; }

 private:
  struct Token {
    std::uint8_t value;
    std::vector<std::vector<std::size_t>> copies;  // rows that are copied together
  };

  void cell(std::size_t row, std::size_t column) {
    const std::size_t height = std::min(side_, rows_ - row);
    const std::size_t width = std::min(side_, columns_ - column);
    token_at_ = stream_.size();
    const bool whole = height == side_ && width == side_;
    Bytes content(height * width);
    const unsigned kind = random_() % 5;
    const std::size_t before = token_at_ - 9;
    if (kind == 0) {
      stream_.push_back(0x40);
      stream_.push_back(static_cast<std::uint8_t>(random_()));
      content.assign(content.size(), stream_.back());
    } else if (kind == 1 && before >= content.size()) {
      stream_.push_back(0xc0);
      content = copy_back(content.size());
    } else if (kind < 4 && whole && before >= 3 * side_) {
      content = rows(random_token());
    } else {
      stream_.push_back(0);
      content = random_bytes(content.size(), random_());
      stream_ += content;
    }
    for (std::size_t i = 0; i < height; ++i)
      std::copy_n(&content[i * width], width, &plain_[(row + i) * columns_ + column]);
  }

  Token random_token() {
    if (side_ == 8) {
      const std::size_t count = 2 + random_() % 2;
      const std::size_t first = random_() % (9 - count);
      const auto base = static_cast<std::uint8_t>(count == 2 ? 0x88 : 0xa8);
      std::vector<std::size_t> rows;
      for (std::size_t i = 0; i < count; ++i)
        rows.push_back(first + i);
      return {static_cast<std::uint8_t>(base + first), {rows}};
    }
    const std::vector<Token> all = {
        {28 << 3, {{1, 2, 3}}},
        {29 << 3, {{0, 1, 2}}},
        {30 << 3, {{0, 1, 3}}},
        {31 << 3, {{0, 2, 3}}},
        {128, {{2, 3}}},
        {128 + (1 << 3), {{0, 1}}},
        {128 + (2 << 3), {{0, 2}}},
        {128 + (3 << 3), {{0, 3}}},
        {160 + (2 << 3), {{1, 2}}},
        {160 + (3 << 3), {{1, 3}}},
        {32 + (1 << 3), {{0, 1}, {2, 3}}},
        {32 + (2 << 3), {{0, 2}, {1, 3}}},
        {32 + (3 << 3), {{0, 3}, {1, 2}}},
    };
    return all[random_() % all.size()];
  }

  Bytes rows(const Token& token) {
    stream_.push_back(token.value);
    Bytes content(side_ * side_);
    std::vector<bool> done(side_);
    for (const auto& together : token.copies) {
      const Bytes copied = copy_back(together.size() * side_);
      for (std::size_t i = 0; i < together.size(); ++i) {
        std::copy_n(&copied[i * side_], side_, &content[together[i] * side_]);
        done[together[i]] = true;
      }
    }
    for (std::size_t row = 0; row < side_; ++row) {
      if (done[row]) continue;
      const Bytes literal = random_bytes(side_, random_());
      stream_ += literal;
      std::copy_n(literal.begin(), side_, &content[row * side_]);
    }
    return content;
  }

  Bytes copy_back(std::size_t size) {
    const std::size_t most = std::min<std::size_t>(token_at_ - 9, 0xffff);
    const std::size_t distance = size + random_() % (most - size + 1);
    append_le(stream_, static_cast<std::uint16_t>(distance));
    const auto from = stream_.begin() + static_cast<std::ptrdiff_t>(token_at_ - distance);
    return {from, from + static_cast<std::ptrdiff_t>(size)};
  }

  const std::size_t side_;
  const std::size_t rows_;
  const std::size_t columns_;
  std::mt19937 random_;
  Bytes stream_;
  Bytes plain_;
  std::size_t token_at_ = 0;
};

RC_GTEST_PROP(Ndlz, EveryTokenDecodes, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const std::uint8_t side = random() % 2 == 0 ? 4 : 8;
  const NdlzWriter writer(side, 1 + random() % 60, 1 + random() % 60, random());
  Bytes out(writer.plain().size());
  const auto done = codec::decode_ndlz(side, writer.stream(), out);
  RC_ASSERT(done.has_value());
  RC_ASSERT(out == writer.plain());
}

TEST(Ndlz, TruncatedDamagedOrWrongSizeIsCorrupt) {
  for (const std::uint8_t side : {4, 8}) {
    const NdlzWriter writer(side, 21, 33, 7);
    Bytes out(writer.plain().size());
    for (std::size_t length = 0; length < writer.stream().size(); ++length) {
      // A vector of exactly this length, so that a sanitizer detects any access past it.
      const Bytes cut(writer.stream().begin(), writer.stream().begin() + static_cast<std::ptrdiff_t>(length));
      const auto done = codec::decode_ndlz(side, cut, out);
      ASSERT_FALSE(done) << length;
      EXPECT_EQ(done.error().kind, ErrorKind::corruption);
    }
    Bytes longer = writer.stream();
    longer.push_back(0);
    EXPECT_FALSE(codec::decode_ndlz(side, longer, out));
    out.pop_back();
    EXPECT_FALSE(codec::decode_ndlz(side, writer.stream(), out));
  }
  Bytes out(1);
  EXPECT_EQ(codec::decode_ndlz(5, Bytes(16), out).error().kind, ErrorKind::unsupported);
}

TEST(Ndlz, DistancesStayBehindTheHeaderAndBeforeTheToken) {
  for (const std::uint16_t distance : {0, 15, 18, 65535}) {
    Bytes stream = {2, 4, 0, 0, 0, 8, 0, 0, 0, 0};
    stream += random_bytes(16, 1);
    stream.push_back(0xc0);
    append_le(stream, distance);
    Bytes out(32);
    EXPECT_FALSE(codec::decode_ndlz(4, stream, out)) << distance;
  }
}

// ---- zfp ----------------------------------------------------------------------------------------------------------

struct ZfpCase {
  std::uint8_t compcode;
  std::uint8_t meta;
};

/// Returns the stream that libzfp encodes `plain` to, and the bytes that libzfp decodes it to, as on a little-endian
/// machine.
std::pair<Bytes, Bytes> through_zfp(const ZfpCase& mode, zfp_type type, const std::vector<std::int32_t>& shape,
                                    Bytes plain) {
  std::array<std::size_t, 4> n{};
  for (std::size_t i = 0; i < shape.size(); ++i)
    n[i] = static_cast<std::size_t>(shape[shape.size() - 1 - i]);
  const std::size_t itemsize = type == zfp_type_float ? 4 : 8;
  codec::swap_if_big_endian(plain, itemsize);
  zfp_field* field = zfp_field_alloc();
  zfp_field_set_type(field, type);
  zfp_field_set_pointer(field, plain.data());
  field->nx = n[0];
  field->ny = n[1];
  field->nz = n[2];
  field->nw = n[3];
  zfp_stream* zfp = zfp_stream_open(nullptr);
  const auto ndim = static_cast<unsigned>(shape.size());
  if (mode.compcode == 33) zfp_stream_set_accuracy(zfp, std::pow(10.0, static_cast<std::int8_t>(mode.meta)));
  if (mode.compcode == 34) zfp_stream_set_precision(zfp, mode.meta + std::array<unsigned, 4>{5, 7, 9, 11}[ndim - 1]);
  if (mode.compcode == 35)
    zfp_stream_set_rate(zfp, mode.meta / 100.0 * (type == zfp_type_float ? 32 : 64), type, ndim, 0);
  Bytes stream(zfp_stream_maximum_size(zfp, field));
  bitstream* bits = stream_open(stream.data(), stream.size());
  zfp_stream_set_bit_stream(zfp, bits);
  zfp_stream_rewind(zfp);
  stream.resize(zfp_compress(zfp, field));
  zfp_stream_rewind(zfp);
  EXPECT_NE(zfp_decompress(zfp, field), 0U);
  stream_close(bits);
  zfp_stream_close(zfp);
  zfp_field_free(field);
  codec::swap_if_big_endian(stream, stream_word_bits / 8);
  codec::swap_if_big_endian(plain, itemsize);
  return {stream, plain};
}

Bytes waves(std::size_t count, std::int32_t typesize) {
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = 100 * std::sin(static_cast<double>(i) * 0.01) + static_cast<double>(i % 7);
    if (typesize == 8) {
      append_le(bytes, std::bit_cast<std::uint64_t>(value));
    } else {
      append_le(bytes, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    }
  }
  return bytes;
}

const std::vector<std::vector<std::int32_t>> kShapes = {{90}, {5, 6}, {8, 8}, {5, 6, 4}, {4, 5, 6, 7}};
ZfpMode mode_of(std::uint8_t compcode) {
  return static_cast<ZfpMode>(compcode - 33);
}

const std::vector<ZfpCase> kModes = {{33, 253}, {33, 0}, {33, 2}, {34, 5}, {34, 20}, {34, 40}, {35, 37}, {35, 80}};

TEST(Zfp, BlocksOfEveryShapeAndModeDecodeAsTheLibraryDoes) {
  for (const auto& shape : kShapes) {
    std::size_t count = 1;
    for (const std::int32_t extent : shape)
      count *= static_cast<std::size_t>(extent);
    for (const std::int32_t typesize : {4, 8}) {
      for (const ZfpCase& mode : kModes) {
        const zfp_type type = typesize == 4 ? zfp_type_float : zfp_type_double;
        const auto [stream, expected] = through_zfp(mode, type, shape, waves(count, typesize));
        Bytes out(expected.size());
        const auto done = codec::decode_zfp(mode_of(mode.compcode), mode.meta, typesize, shape, stream, out);
        ASSERT_TRUE(done) << describe(done.error());
        EXPECT_EQ(out, expected) << shape.size() << " dimensions, mode " << int{mode.compcode} << ", meta "
                                 << int{mode.meta};
      }
    }
  }
}

TEST(Zfp, CraftedStreamsAreNotReadPastTheirEnd) {
  std::mt19937 random(3);
  int failed = 0;
  for (const auto& shape : kShapes) {
    std::size_t count = 1;
    for (const std::int32_t extent : shape)
      count *= static_cast<std::size_t>(extent);
    for (const ZfpCase& mode : kModes) {
      for (const std::size_t length : {0, 1, 7, 64, 500}) {
        const Bytes stream = length == 64 ? Bytes(length, 0xff) : random_bytes(length, random());
        Bytes out(count * 8);
        const auto done = codec::decode_zfp(mode_of(mode.compcode), mode.meta, 8, shape, stream, out);
        if (length == 0) {
          EXPECT_FALSE(done);
        }
        if (!done) {
          ++failed;
          EXPECT_EQ(done.error().kind, ErrorKind::corruption);
        }
      }
    }
  }
  EXPECT_GT(failed, 50);
}

TEST(Zfp, BlocksOfOtherTypesOrShapesAreRefused) {
  Bytes out(64);
  const std::vector<std::int32_t> shape = {4, 4};
  const Bytes stream(40);
  EXPECT_EQ(codec::decode_zfp(ZfpMode::accuracy, 0, 2, shape, stream, out).error().kind, ErrorKind::unsupported);
  EXPECT_EQ(codec::decode_zfp(ZfpMode::accuracy, 0, 4, {}, stream, out).error().kind, ErrorKind::unsupported);
  EXPECT_EQ(codec::decode_zfp(ZfpMode::accuracy, 0, 4, std::vector<std::int32_t>(5, 1), stream, out).error().kind,
            ErrorKind::unsupported);
  for (const std::vector<std::int32_t>& other :
       std::vector<std::vector<std::int32_t>>{{4, 5}, {0, 4}, {-4, -4}, {INT32_MAX, INT32_MAX, INT32_MAX}, {2, 2}}) {
    EXPECT_EQ(codec::decode_zfp(ZfpMode::accuracy, 0, 4, other, stream, out).error().kind, ErrorKind::corruption);
  }
}

// ---- cells --------------------------------------------------------------------------------------------------------

/// Returns the items in cell order, by a search for the items of each cell.
Bytes by_cells(const std::vector<std::int32_t>& shape, std::size_t side, std::size_t itemsize, const Bytes& plain) {
  const std::size_t ndim = shape.size();
  std::vector<std::size_t> numbers(plain.size() / itemsize);
  std::vector<std::pair<std::vector<std::size_t>, std::size_t>> keys;
  for (std::size_t item = 0; item < numbers.size(); ++item) {
    std::vector<std::size_t> key(2 * ndim);
    std::size_t rest = item;
    for (std::size_t d = ndim; d-- > 0;) {
      const std::size_t at = rest % static_cast<std::size_t>(shape[d]);
      rest /= static_cast<std::size_t>(shape[d]);
      key[d] = at / side;
      key[ndim + d] = at % side;
    }
    keys.emplace_back(key, item);
  }
  // Not by the operator of vectors: on big-endian machines that of libstdc++ 12 compares too few bytes.
  std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    return std::lexicographical_compare(a.first.begin(), a.first.end(), b.first.begin(), b.first.end());
  });
  Bytes cells;
  for (const auto& [key, item] : keys)
    cells.insert(cells.end(), plain.begin() + static_cast<std::ptrdiff_t>(item * itemsize),
                 plain.begin() + static_cast<std::ptrdiff_t>((item + 1) * itemsize));
  return cells;
}

RC_GTEST_PROP(Cells, GoBackToTheirPlaces, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> shape(1 + random() % 5);
  std::size_t items = 1;
  for (std::int32_t& extent : shape) {
    extent = static_cast<std::int32_t>(1 + random() % 7);
    items *= static_cast<std::size_t>(extent);
  }
  const std::size_t itemsize = 1 + random() % 9;
  const std::size_t side = 1 + random() % 9;
  const Bytes plain = random_bytes(items * itemsize, random());
  const auto order = codec::CellOrder::create(shape, side, itemsize);
  RC_ASSERT(order.has_value());
  RC_ASSERT(order->size() == plain.size());
  Bytes out(plain.size());
  order->undo(by_cells(shape, side, itemsize, plain), out);
  RC_ASSERT(out == plain);
}

TEST(Cells, InvalidShapesAreRefused) {
  const std::vector<std::int32_t> shape = {4, 4};
  EXPECT_FALSE(codec::CellOrder::create(shape, 0, 1));
  EXPECT_FALSE(codec::CellOrder::create({}, 4, 1));
  EXPECT_FALSE(codec::CellOrder::create(std::vector<std::int32_t>(17, 1), 4, 1));
  EXPECT_FALSE(codec::CellOrder::create(std::vector<std::int32_t>{4, 0}, 4, 1));
  EXPECT_FALSE(codec::CellOrder::create(std::vector<std::int32_t>{INT32_MAX, INT32_MAX, INT32_MAX}, 4, 8));
}

TEST(Cells, ChunksOfArraysDecodeAndOthersDoNot) {
  const std::vector<std::int32_t> shape = {10, 12};
  const Bytes plain = random_bytes(2 * 10 * 12 * 4, 5);
  // Two blocks that the test filters itself, because the assembler does not support these filters.
  Bytes filtered;
  for (const std::size_t begin : {std::size_t{0}, plain.size() / 2}) {
    const auto from = plain.begin() + static_cast<std::ptrdiff_t>(begin);
    filtered += by_cells(shape, 4, 4, Bytes(from, from + static_cast<std::ptrdiff_t>(plain.size() / 2)));
  }
  ChunkPlan plan;
  plan.typesize = 4;
  plan.blocksize = static_cast<std::int32_t>(plain.size() / 2);
  for (const std::uint8_t filter : {32, 33}) {
    Bytes chunk = assemble(plan, filtered);
    chunk[0x10 + 2] = filter;
    chunk[0x18 + 2] = 4;
    codec::DecodeContext context;
    codec::DecodeParams environment;
    environment.frame_typesize = 4;
    EXPECT_EQ(codec::ChunkDecoder::parse(chunk, environment).error().kind, ErrorKind::corruption);
    environment.blockshape = shape;
    const auto decoder = codec::ChunkDecoder::parse(chunk, environment);
    ASSERT_TRUE(decoder) << describe(decoder.error());
    Bytes out(plain.size());
    const auto done = codec::decode_range(context, *decoder, chunk, 0, out);
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_EQ(out, plain);
    environment.blockshape = {10, 11};
    const auto other = codec::ChunkDecoder::parse(chunk, environment);
    ASSERT_TRUE(other);
    EXPECT_EQ(codec::decode_range(context, *other, chunk, 0, out).error().kind, ErrorKind::corruption);
  }
}

// ---- unavailable codecs -------------------------------------------------------------------------------------------

TEST(Registered, UnavailableCodecsAreNamed) {
  codec::DecodeContext context;
  Bytes out(100);
  const std::vector<std::pair<std::uint8_t, std::string>> missing = {
      {36, "openhtj2k"}, {37, "grok"}, {38, "openzl"}, {39, "j2k"}, {40, "htj2k"}, {41, "unknown"}, {200, "unknown"}};
  for (const auto& [compcode, name] : missing) {
    codec::StreamCodec stream_codec;
    stream_codec.format = codec::CodecFormat::registered;
    stream_codec.compcode = compcode;
    const auto done = codec::decode_stream(context.states(), stream_codec, Bytes(50), out);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::unsupported);
    EXPECT_NE(done.error().reason.find(name), std::string::npos) << done.error().reason;
    EXPECT_NE(done.error().reason.find(std::to_string(compcode)), std::string::npos) << done.error().reason;
  }
}

}  // namespace
}  // namespace cframefs
