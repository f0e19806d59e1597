// The array metalayer: valid ones are parsed, invalid ones are refused.
#include "frame/cframe/b2nd_meta.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "frame/array/array_geometry.h"
#include "tests/support/array_builder.h"

namespace cframefs::frame {
namespace {

using test::ArraySpec;
using test::Bytes;

const ArraySpec kSpec = {{10, 7, 5}, {4, 3, 5}, {2, 2, 3}, 4, "<f4"};

FrameParameters parameters_of(const ArraySpec& spec) {
  FrameParameters parameters;
  parameters.typesize = spec.typesize;
  parameters.chunksize = spec.chunk_bytes();
  parameters.nbytes = static_cast<std::uint64_t>(spec.chunk_count()) * static_cast<std::uint64_t>(spec.chunk_bytes());
  return parameters;
}

Result<ArrayGeometry> geometry_of(const ArraySpec& spec, const FrameParameters& parameters) {
  const auto layer = parse_array_layer(test::array_layer(spec));
  if (!layer) return codec::Failure(layer.error());
  return ArrayGeometry::make(*layer, parameters);
}

TEST(B2ndMeta, ParsesShapesAndDtype) {
  const auto layer = parse_array_layer(test::array_layer(kSpec));
  ASSERT_TRUE(layer) << describe(layer.error());
  EXPECT_EQ(layer->shape, kSpec.shape);
  EXPECT_EQ(layer->chunkshape, kSpec.chunkshape);
  EXPECT_EQ(layer->blockshape, kSpec.blockshape);
  EXPECT_EQ(layer->dtype, "<f4");
}

TEST(B2ndMeta, ParsesTheInvalidListMarkerOfSixteenDimensions) {
  ArraySpec spec{std::vector<std::int64_t>(16, 2), std::vector<std::int32_t>(16, 1), std::vector<std::int32_t>(16, 1),
                 1, "|u1"};
  Bytes bytes = test::array_layer(spec);
  EXPECT_EQ(bytes[3], 0xa0);
  const auto layer = parse_array_layer(bytes);
  ASSERT_TRUE(layer) << describe(layer.error());
  EXPECT_EQ(layer->shape, spec.shape);
  bytes[2] = 17;
  EXPECT_FALSE(parse_array_layer(bytes));
}

TEST(B2ndMeta, BlocksOfTheFirstCatervaGenerationAreItsChunks) {
  ArraySpec spec = kSpec;
  spec.dtype.reset();
  spec.blockshape = {0, 0, 0};
  const auto layer = parse_array_layer(test::array_layer(spec));
  ASSERT_TRUE(layer) << describe(layer.error());
  EXPECT_EQ(layer->blockshape, spec.chunkshape);
  EXPECT_FALSE(layer->dtype);
  spec.dtype = "<f4";  // blocks of 0 items are invalid in a b2nd metalayer
  FrameParameters parameters = parameters_of(kSpec);
  EXPECT_FALSE(geometry_of(spec, parameters));
}

TEST(B2ndMeta, IgnoresADtypeInAnotherNotation) {
  Bytes bytes = test::array_layer(kSpec);
  bytes[bytes.size() - 3 - 4 - 2] = 1;  // the notation, in front of marker, length and text of the dtype
  const auto layer = parse_array_layer(bytes);
  ASSERT_TRUE(layer) << describe(layer.error());
  EXPECT_FALSE(layer->dtype);
}

TEST(B2ndMeta, RefusesEveryTruncation) {
  const Bytes whole = test::array_layer(kSpec);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto layer = parse_array_layer(codec::ByteView(whole).first(length));
    ASSERT_FALSE(layer) << length;
    EXPECT_EQ(layer.error().kind, codec::ErrorKind::corruption);
  }
}

TEST(B2ndMeta, ExtentsThatContradictEachOtherOrTheFrameAreRefused) {
  const FrameParameters parameters = parameters_of(kSpec);
  ASSERT_TRUE(geometry_of(kSpec, parameters));
  using Change = void (*)(ArraySpec&, FrameParameters&);
  const std::vector<Change> changes = {
      [](ArraySpec& s, FrameParameters&) { s.shape[0] = -1; },
      [](ArraySpec& s, FrameParameters&) { s.shape[0] = std::numeric_limits<std::int64_t>::max(); },
      [](ArraySpec& s, FrameParameters&) {
        s.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40, 5};
      },
      [](ArraySpec& s, FrameParameters&) { s.shape[2] = 0; },
      [](ArraySpec& s, FrameParameters&) { s.shape[0] = 13; },
      [](ArraySpec& s, FrameParameters&) { s.shape[0] = 8; },
      [](ArraySpec& s, FrameParameters&) { s.chunkshape[1] = 0; },
      [](ArraySpec& s, FrameParameters&) { s.chunkshape[1] = -3; },
      [](ArraySpec& s, FrameParameters&) { s.chunkshape[1] = std::numeric_limits<std::int32_t>::max(); },
      [](ArraySpec& s, FrameParameters&) { s.blockshape[1] = 0; },
      [](ArraySpec& s, FrameParameters&) {
        s.blockshape = {0, 0, 0};
      },
      [](ArraySpec& s, FrameParameters&) { s.blockshape[1] = std::numeric_limits<std::int32_t>::max(); },
      [](ArraySpec& s, FrameParameters&) {
        s.blockshape = {65536, 65536, 65536};
      },
      [](ArraySpec&, FrameParameters& p) { p.typesize = 8; },
      [](ArraySpec&, FrameParameters& p) { p.typesize = std::numeric_limits<std::int32_t>::max(); },
      [](ArraySpec&, FrameParameters& p) { p.chunksize += 4; },
      [](ArraySpec&, FrameParameters& p) { p.nbytes -= 4; },
      [](ArraySpec&, FrameParameters& p) { p.nbytes = 0; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    ArraySpec spec = kSpec;
    FrameParameters changed = parameters;
    changes[i](spec, changed);
    const auto geometry = geometry_of(spec, changed);
    ASSERT_FALSE(geometry) << i;
    EXPECT_EQ(geometry.error().kind, codec::ErrorKind::corruption) << i;
  }
}

RC_GTEST_PROP(B2ndMeta, AnyBytesAreTakenOrRefused, ()) {
  Bytes bytes = test::array_layer(kSpec);
  const auto changes = *rc::gen::inRange(1, 4);
  for (int i = 0; i < changes; ++i)
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<std::uint8_t>();
  const auto layer = parse_array_layer(bytes);
  if (!layer) return;
  RC_ASSERT(layer->shape.size() == layer->chunkshape.size());
  RC_ASSERT(layer->shape.size() == layer->blockshape.size());
  FrameParameters parameters = parameters_of(kSpec);
  const auto geometry = ArrayGeometry::make(*layer, parameters);
  // An accepted geometry agrees with the frame.
  if (geometry) RC_ASSERT(geometry->chunk_count() * geometry->chunk_bytes() == parameters.nbytes);
}

}  // namespace
}  // namespace cframefs::frame
