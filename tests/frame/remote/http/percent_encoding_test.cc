#include "frame/remote/http/percent_encoding.h"

#include <gtest/gtest.h>

namespace cframefs::test {
namespace {

using frame::percent_decode;
using frame::percent_encode;
using frame::Slash;

TEST(PercentEncoding, KeepsUnreservedCharactersAndEncodesAllOthersInUpperCase) {
  EXPECT_EQ(percent_encode("azAZ09-._~"), "azAZ09-._~");
  EXPECT_EQ(percent_encode(" +/?#[]@!$&'()*,;=:%\"\x7f"),
            "%20%2B%2F%3F%23%5B%5D%40%21%24%26%27%28%29%2A%2C%3B%3D%3A%25%22%7F");
  EXPECT_EQ(percent_encode("\xc3\xbc"), "%C3%BC");
  EXPECT_EQ(percent_encode(std::string_view("\0\xff", 2)), "%00%FF");
  EXPECT_EQ(percent_encode(""), "");
}

TEST(PercentEncoding, KeepsSlashesOfPathsIfAsked) {
  EXPECT_EQ(percent_encode("/a b/c", Slash::kept), "/a%20b/c");
  EXPECT_EQ(percent_encode("/a b/c", Slash::encoded), "%2Fa%20b%2Fc");
}

TEST(PercentEncoding, DecodesWhatItEncoded) {
  std::string all;
  for (int byte = 1; byte < 256; ++byte)
    all += static_cast<char>(byte);
  EXPECT_EQ(percent_decode(percent_encode(all)).value(), all);
}

TEST(PercentEncoding, DecodesBothCasesAndLeavesAPlusAlone) {
  EXPECT_EQ(percent_decode("%c3%BC+%2b").value(), "\xc3\xbc++");
}

TEST(PercentEncoding, RefusesPercentSignsWithoutTwoDigits) {
  for (const char* malformed : {"%", "a%", "%4", "%4g", "%g4", "%%41", "%-1", "% 1", "abc%2"}) {
    const auto decoded = percent_decode(malformed);
    ASSERT_FALSE(decoded) << malformed;
    EXPECT_EQ(decoded.error().kind, codec::ErrorKind::invalid);
  }
  EXPECT_NE(percent_decode("abc%2").error().reason.find("byte 3"), std::string::npos);
}

TEST(PercentEncoding, RefusesNulInEitherForm) {
  EXPECT_FALSE(percent_decode("a%00b"));
  EXPECT_FALSE(percent_decode(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace cframefs::test
