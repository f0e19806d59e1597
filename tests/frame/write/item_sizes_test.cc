// Item sizes that headers declare, and the distances at which bytes repeat.
#include "frame/write/item_sizes.h"

#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace cframefs::test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Sizes = std::vector<std::int32_t>;

void append_number(Bytes& to, std::uint32_t value, int bytes) {
  for (int byte = 0; byte < bytes; ++byte)
    to.push_back(static_cast<std::uint8_t>(value >> (8 * byte)));
}

void append_text(Bytes& to, const std::string& text) {
  to.insert(to.end(), text.begin(), text.end());
}

struct Wav {
  std::uint16_t encoding = 1;
  std::uint16_t channels = 2;
  std::uint16_t all = 4;
  std::string before = {};  // chunks before "fmt "
  std::uint32_t format_length = 16;

  Bytes bytes() const {
    Bytes file;
    append_text(file, "RIFF");
    append_number(file, 1'000'000, 4);
    append_text(file, "WAVE" + before + "fmt ");
    append_number(file, format_length, 4);
    append_number(file, encoding, 2);
    append_number(file, channels, 2);
    append_number(file, 44'100, 4);
    append_number(file, 176'400, 4);
    append_number(file, all, 2);
    append_number(file, 16, 2);
    append_text(file, "data");
    append_number(file, 900'000, 4);
    return file;
  }
};

TEST(ItemSizes, OfAWavHeader) {
  EXPECT_EQ(frame::declared_item_sizes(Wav{}.bytes()), (Sizes{2, 4}));
  EXPECT_EQ(frame::declared_item_sizes((Wav{.channels = 1, .all = 3}).bytes()), (Sizes{3}));
  EXPECT_EQ(frame::declared_item_sizes((Wav{.encoding = 3, .channels = 6, .all = 24}).bytes()), (Sizes{4, 24}));
  EXPECT_EQ(frame::declared_item_sizes((Wav{.encoding = 0xFFFE}).bytes()), (Sizes{2, 4}));
  using std::string_literals::operator""s;
  EXPECT_EQ(frame::declared_item_sizes((Wav{.before = "LIST\3\0\0\0abc\0"s}).bytes()), (Sizes{2, 4}));
}

TEST(ItemSizes, OfAWavHeaderThatMakesNoSense) {
  EXPECT_EQ(frame::declared_item_sizes((Wav{.encoding = 2}).bytes()), Sizes{}) << "ADPCM has no samples of one size";
  EXPECT_EQ(frame::declared_item_sizes((Wav{.channels = 0}).bytes()), Sizes{});
  EXPECT_EQ(frame::declared_item_sizes((Wav{.all = 0}).bytes()), Sizes{});
  EXPECT_EQ(frame::declared_item_sizes((Wav{.channels = 3, .all = 4}).bytes()), Sizes{});
  EXPECT_EQ(frame::declared_item_sizes((Wav{.channels = 255, .all = 510}).bytes()), (Sizes{2}));
  EXPECT_EQ(frame::declared_item_sizes((Wav{.format_length = 15}).bytes()), Sizes{});
  using std::string_literals::operator""s;
  EXPECT_EQ(frame::declared_item_sizes((Wav{.before = "LIST\xff\xff\xff\xff"s}).bytes()), Sizes{});
  const Bytes whole = Wav{}.bytes();
  for (std::size_t length = 0; length < 36; ++length) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(frame::declared_item_sizes(cut), Sizes{}) << length;
  }
}

TEST(ItemSizes, OfManyEmptyRiffChunks) {
  std::string empty;
  for (int i = 0; i < 8000; ++i)
    empty += std::string("LIST\0\0\0\0", 8);
  EXPECT_EQ(frame::declared_item_sizes((Wav{.before = empty}).bytes()), (Sizes{2, 4}));
}

std::int32_t distance_in(std::size_t record, int constant_bytes) {
  std::mt19937 random(static_cast<unsigned>(record));
  Bytes bytes;
  while (bytes.size() < 60'000) {
    for (std::size_t at = 0; at < record; ++at) {
      const bool is_constant = at < static_cast<std::size_t>(constant_bytes);
      bytes.push_back(static_cast<std::uint8_t>(is_constant ? at * 37 : random()));
    }
  }
  std::vector<frame::Sample> slices;
  for (std::size_t at = 0; at < bytes.size(); at += 10'001) {
    const std::size_t end = std::min(bytes.size(), at + 8000);
    slices.push_back(
        {at, Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(end))});
  }
  return frame::repeating_distance(slices);
}

TEST(ItemSizes, OfRecordsAreTheDistanceOfEqualBytes) {
  for (const std::size_t record : {5U, 19U, 20U, 40U, 100U, 251U})
    EXPECT_EQ(distance_in(record, 3), record);
  EXPECT_EQ(distance_in(400, 3), 0) << "more than a chunk header can hold";
  EXPECT_EQ(distance_in(20, 0), 0) << "noise";
  EXPECT_EQ(frame::repeating_distance({}), 0);
  EXPECT_EQ(frame::repeating_distance({{0, {1, 2}}}), 0);
}

}  // namespace
}  // namespace cframefs::test
