// Variable-length metalayers: located from the end of the frame, decompressed on demand. Their damage never makes the
// data unreadable.
#include "frame/cframe/trailer.h"

#include <gtest/gtest.h>

#include "frame/cframe/frame_encoding.h"
#include "frame/open/layer_attributes.h"
#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

using test::Bytes;
using test::FrameBuilder;

Bytes sequence(std::size_t length) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i)
    bytes[i] = static_cast<std::uint8_t>(i * 7);
  return bytes;
}

FrameBuilder sample_with_trailer() {
  FrameBuilder builder = test::plain_frame(sequence(1000), 300);
  builder.vlmetalayers = {{"one", test::plain_chunk(sequence(50))}, {"two", test::plain_chunk(sequence(3))}};
  return builder;
}

void expect_data_intact(const frame::Container& container) {
  const std::shared_ptr<const frame::Container> alias(std::shared_ptr<void>(), &container);
  const auto bytes = test::read_range(frame::FlatView(alias), 0, 1000);
  ASSERT_TRUE(bytes) << describe(bytes.error());
  EXPECT_EQ(*bytes, sequence(1000));
}

TEST(Trailer, MetalayersAreDecompressedOnDemand) {
  const auto opened = test::open_frame(sample_with_trailer().build());
  ASSERT_TRUE(opened) << describe(opened.error());
  EXPECT_EQ((*opened)->vlmetalayer_names(), (std::vector<std::string>{"one", "two"}));
  const auto one = (*opened)->vlmetalayer("one");
  ASSERT_TRUE(one) << describe(one.error());
  EXPECT_EQ(*one, sequence(50));
  const auto absent = (*opened)->vlmetalayer("three");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().kind, codec::ErrorKind::invalid);
}

TEST(Trailer, AGapBeforeItIsTolerated) {
  FrameBuilder builder = sample_with_trailer();
  builder.gap.assign(10000, 0xab);
  const auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened) << describe(opened.error());
  expect_data_intact(**opened);
  EXPECT_TRUE((*opened)->vlmetalayer("two"));
}

TEST(Trailer, ATrailerLongerThanTheWindowIsFound) {
  FrameBuilder builder = sample_with_trailer();
  builder.vlmetalayers.clear();
  for (int i = 0; i < 500; ++i) {
    builder.vlmetalayers.emplace_back("a metalayer's name " + std::to_string(i),
                                      test::plain_chunk(sequence(static_cast<std::size_t>(i))));
  }
  const auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened) << describe(opened.error());
  ASSERT_EQ((*opened)->vlmetalayer_names().size(), 500U);
  const auto last = (*opened)->vlmetalayer("a metalayer's name 499");
  ASSERT_TRUE(last) << describe(last.error());
  EXPECT_EQ(*last, sequence(499));
}

TEST(Trailer, AWrongLengthIsRefused) {
  const Bytes good = sample_with_trailer().build();
  const std::size_t at = good.size() - 22;
  const auto length = codec::load_be<std::uint32_t>(&good[at]);
  for (const std::uint32_t wrong :
       {std::uint32_t{0}, std::uint32_t{24}, std::uint32_t{34}, static_cast<std::uint32_t>(good.size()), UINT32_MAX}) {
    Bytes bytes = good;
    codec::store_be(&bytes[at], wrong);
    EXPECT_FALSE(test::open_frame(bytes)) << wrong << " for " << length;
  }
  Bytes bytes = good;
  bytes[at - 1] = 0xcf;
  EXPECT_FALSE(test::open_frame(bytes)) << "marker";
}

TEST(Trailer, ADamagedMapLosesOnlyMetalayers) {
  const FrameBuilder builder = sample_with_trailer();
  const Bytes good = builder.build();
  const std::size_t begin = good.size() - builder.trailer().size();
  // Marker of the map, marker of the count, count, marker of the first name.
  for (const std::size_t at : {std::size_t{2}, std::size_t{6}, std::size_t{7}, std::size_t{9}}) {
    Bytes bytes = good;
    bytes[begin + at] ^= 0xff;
    const auto opened = test::open_frame(bytes);
    ASSERT_TRUE(opened) << describe(opened.error());
    EXPECT_TRUE((*opened)->vlmetalayer_damage()) << at;
    const auto one = (*opened)->vlmetalayer("one");
    ASSERT_FALSE(one);
    EXPECT_EQ(one.error().kind, codec::ErrorKind::corruption);
    expect_data_intact(**opened);
  }
}

TEST(Trailer, ContentsOutsideTheTrailerAreRefused) {
  const FrameBuilder builder = sample_with_trailer();
  const Bytes good = builder.build();
  const std::size_t begin = good.size() - builder.trailer().size();
  for (const std::int32_t offset :
       {-1, 0, INT32_MAX, INT32_MAX - 4, static_cast<std::int32_t>(builder.trailer().size())}) {
    Bytes bytes = good;
    codec::store_be(&bytes[begin + 9 + 1 + 3 + 1], offset);
    const auto opened = test::open_frame(bytes);
    ASSERT_TRUE(opened) << describe(opened.error());
    EXPECT_FALSE((*opened)->vlmetalayer("one")) << offset;
    const auto two = (*opened)->vlmetalayer("two");
    ASSERT_TRUE(two) << describe(two.error());
    EXPECT_EQ(*two, sequence(3));
  }
}

TEST(Trailer, AContentThatClaimsGigabytesIsRefused) {
  FrameBuilder builder = sample_with_trailer();
  const Bytes value = {1};
  builder.vlmetalayers = {{"bomb", test::repeated_chunk(value, INT32_MAX - 64, 1)},
                          {"fine", test::repeated_chunk(value, 1 << 20, 1)}};
  const auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened) << describe(opened.error());
  EXPECT_FALSE((*opened)->vlmetalayer("bomb"));
  const auto fine = (*opened)->vlmetalayer("fine");
  ASSERT_TRUE(fine) << describe(fine.error());
  EXPECT_EQ(*fine, Bytes(1 << 20, 1));
  // A program that copies all attributes of a file reads each that is listed, and gives up at the first error.
  for (const std::string& name : frame::vlmetalayer_attributes(**opened)) {
    EXPECT_TRUE(frame::vlmetalayer_attribute(**opened, name)) << name;
  }
}

TEST(Trailer, DamagedContentsReturnTheirBudget) {
  // A block of 1 MiB with an invalid stream.
  Bytes damaged = test::plain_chunk(Bytes(16, 0xff));
  damaged[2] = 0x15 | 1 << 5;
  codec::store_le<std::int32_t>(&damaged[4], 1 << 20);
  codec::store_le<std::int32_t>(&damaged[8], 1 << 20);
  codec::store_le<std::int32_t>(&damaged[32], 36);
  codec::store_le<std::int32_t>(&damaged[36], 8);
  FrameBuilder builder = sample_with_trailer();
  builder.vlmetalayers.clear();
  for (int i = 0; i < 100; ++i)
    builder.vlmetalayers.emplace_back(std::to_string(i), damaged);
  builder.vlmetalayers.emplace_back("fine", test::raw_block_chunk(Bytes(1 << 20, 7), 1 << 20));
  const auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened) << describe(opened.error());
  auto budget = frame::ParseBudget::asked((*opened)->stored_bytes());
  const std::uint64_t memory = budget.memory_left();
  for (const std::string& name : (*opened)->vlmetalayer_names()) {
    const auto checked = (*opened)->check_vlmetalayer(name, budget);
    if (name == "fine") {
      EXPECT_TRUE(checked) << describe(checked.error());
    } else {
      ASSERT_FALSE(checked);
      EXPECT_EQ(checked.error().kind, codec::ErrorKind::corruption) << describe(checked.error());
    }
    EXPECT_EQ(budget.memory_left(), memory) << name;
  }
}

// semantics: Z1
TEST(Trailer, AValidContentOfAnyRatioIsReadAndChecked) {
  FrameBuilder builder = sample_with_trailer();
  // 5,000,000 bytes in a chunk of 33 bytes, the longest content that is read, and one byte more.
  builder.vlmetalayers = {{"letters", test::repeated_chunk(Bytes{'A'}, 5'000'000, 1)},
                          {"most", test::repeated_chunk(Bytes{'A'}, 256 << 20, 1)},
                          {"more", test::repeated_chunk(Bytes{'A'}, (256 << 20) + 1, 1)}};
  const auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened) << describe(opened.error());
  const auto letters = (*opened)->vlmetalayer("letters");
  ASSERT_TRUE(letters) << describe(letters.error());
  EXPECT_EQ(*letters, Bytes(5'000'000, 'A'));
  auto budget = frame::ParseBudget::asked((*opened)->stored_bytes());
  for (const char* name : {"letters", "most"})
    EXPECT_TRUE((*opened)->check_vlmetalayer(name, budget)) << name;
  EXPECT_EQ((*opened)->vlmetalayer_length("most").value(), std::uint64_t{256} << 20);
  EXPECT_EQ((*opened)->vlmetalayer("more").error().kind, codec::ErrorKind::unsupported);
}

TEST(Trailer, ContentsBeyondTheRangeOfOffsetsAreRefused) {
  constexpr std::uint64_t kQuarter = std::uint64_t{250} << 20;
  const auto of = [](std::size_t count, std::uint64_t length) {
    return frame::check_metalayer_room(std::vector<std::uint64_t>(count, length));
  };
  EXPECT_TRUE(of(8, kQuarter));
  EXPECT_EQ(of(9, kQuarter).error().kind, codec::ErrorKind::invalid);
  EXPECT_TRUE(of(1, INT32_MAX - 200));
  EXPECT_FALSE(of(1, INT32_MAX - 100)) << "header and map need room, too";
  EXPECT_FALSE(of(2, std::uint64_t{1} << 63)) << "the sum overflows";
  EXPECT_TRUE(frame::check_metalayer_room(std::vector<frame::Metalayer>(16, {"name", Bytes(1000)})));
}

TEST(Trailer, InAnEmptyFrameItMustFollowTheHeader) {
  FrameBuilder builder;
  builder.chunksize = -1;
  builder.cbytes = 12345;
  EXPECT_TRUE(test::open_frame(builder.build()));
  builder.gap.assign(10, 0);
  EXPECT_FALSE(test::open_frame(builder.build()));
}

}  // namespace
}  // namespace cframefs
