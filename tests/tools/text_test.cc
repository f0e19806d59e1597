// What programs print: sizes, text out of files, metalayers, the progress line.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "frame/base/utf8_sanitize.h"
#include "frame/numpy/python_literal.h"
#include "tests/support/golden.h"
#include "tools/lib/metalayers.h"
#include "tools/lib/progress.h"
#include "tools/lib/sizes.h"

namespace cframefs::test {
namespace {

using nlohmann::json;
using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

TEST(Sizes, AreReadAsTyped) {
  EXPECT_EQ(tools::parse_size("0"), 0U);
  EXPECT_EQ(tools::parse_size("123"), 123U);
  EXPECT_EQ(tools::parse_size("64K"), 65536U);
  EXPECT_EQ(tools::parse_size("64KiB"), 65536U);
  EXPECT_EQ(tools::parse_size("2g"), std::uint64_t{2} << 30);
  EXPECT_EQ(tools::parse_size("3T"), std::uint64_t{3} << 40);
  EXPECT_EQ(tools::parse_size("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", "K", "-1", "+1", "1.5M", "1KB", "1 K", " 1", "1K ", "1KK", "iB", "1iB",
                           "18446744073709551616", "16777216T", "0x10"}) {
    EXPECT_FALSE(tools::parse_size(text)) << text;
  }
}

TEST(Sizes, AreShownSoThatTheyCanBeRead) {
  EXPECT_EQ(tools::human_size(0), "0 bytes");
  EXPECT_EQ(tools::human_size(1023), "1023 bytes");
  EXPECT_EQ(tools::human_size(65536), "64 KiB");
  EXPECT_EQ(tools::human_size(1536), "1.5 KiB");
  EXPECT_EQ(tools::human_size(UINT64_MAX), "16.0 EiB");
  EXPECT_EQ(tools::exact_size(1536), "1.5 KiB (1536 bytes)");
}

TEST(Text, NothingThatSteersATerminalGetsThrough) {
  EXPECT_EQ(frame::printable("plain é 日本"), "plain é 日本");
  EXPECT_EQ(frame::printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(frame::printable("a\nb\t\x7f"), "a\\x0ab\\x09\\x7f");
  EXPECT_EQ(frame::printable("\xc2\x9b"), "\\xc2\\x9b");  // the one-character form of ESC [
  EXPECT_EQ(frame::printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(frame::printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(frame::printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
}

RC_GTEST_PROP(Text, PrintableIsAlwaysPlainText, (const std::string& text)) {
  RC_ASSERT(frame::is_plain_text(bytes_of(frame::printable(text))));
}

TEST(Text, InvalidBytesAreReplacedOneByOne) {
  struct Case {
    std::string text;
    std::string shown;
  };
  const std::string mark = "\xef\xbf\xbd";
  const std::vector<Case> invalid = {
      {"a\x80z", "a" + mark + "z"},                                // a continuation byte alone
      {"\xc3", mark},                                              // cut short
      {"\xe2\x82z", mark + mark + "z"},                            // cut short by another character
      {"\xf0\x9f\x98", mark + mark + mark},                        // cut short at the end
      {"\xc1\xbf", mark + mark},                                   // overlong, 2 bytes
      {"\xe0\x9f\xbf", mark + mark + mark},                        // overlong, 3 bytes
      {"\xf0\x8f\xbf\xbf", mark + mark + mark + mark},             // overlong, 4 bytes
      {"\xed\xbf\xbf", mark + mark + mark},                        // a surrogate
      {"\xf4\x90\x80\x80", mark + mark + mark + mark},             // past U+10FFFF
      {"\xf8\x88\x80\x80\x80", mark + mark + mark + mark + mark},  // no lead byte
      {"\xff\xc3\xa9\xfe", mark + "\xc3\xa9" + mark},              // a valid character between invalid bytes
  };
  for (const auto& [text, shown] : invalid) {
    EXPECT_FALSE(frame::is_utf8(text)) << frame::printable(text);
    EXPECT_FALSE(frame::is_plain_text(bytes_of(text))) << frame::printable(text);
    EXPECT_FALSE(frame::decode_utf8(text)) << frame::printable(text);
    EXPECT_EQ(frame::replace_invalid_utf8(text), shown) << frame::printable(text);
  }
  for (const std::u32string text :
       {U"", U"\u007f\u0080\u07ff\u0800\ud7ff\ue000\ufffe\uffff\U00010000\U0010fffe\U0010ffff"}) {
    std::string encoded;
    for (const char32_t c : text)
      frame::append_utf8(encoded, c);
    EXPECT_TRUE(frame::is_utf8(encoded));
    EXPECT_EQ(frame::decode_utf8(encoded), text);
    EXPECT_EQ(frame::replace_invalid_utf8(encoded), encoded);
  }
}

json shown_metalayer(codec::ByteView content) {
  auto budget = frame::ParseBudget::asked(content.size());
  return tools::metalayer_json(content, budget);
}

TEST(Metalayers, AreDecodedByWhatTheyAre) {
  EXPECT_EQ(shown_metalayer(Bytes{0x82, 0xa1, 'a', 0x01, 0xa1, 'b', 0x93, 0x01, 0xc0, 0xc3})["value"],
            (json{{"a", 1}, {"b", {1, nullptr, true}}}));
  EXPECT_EQ(shown_metalayer(Bytes{0xc4, 0x02, 'h', 'i'})["value"], "hi");
  EXPECT_EQ(shown_metalayer(Bytes{0xc4, 0x02, 0x00, 0xff})["value"], "hex:00ff");
  EXPECT_EQ(shown_metalayer(bytes_of("hello"))["encoding"], "text");
  EXPECT_EQ(shown_metalayer(Bytes{})["encoding"], "text");
  EXPECT_EQ(shown_metalayer(Bytes{0xff, 0xfe, 0x00})["value"], "fffe00");
  EXPECT_EQ(shown_metalayer(Bytes((1 << 20) + 1, 0xc1))["encoding"], "omitted");
}

TEST(Metalayers, NestingAndLyingLengthsDoNoHarm) {
  EXPECT_EQ(shown_metalayer(Bytes(1 << 20, 0x91))["encoding"], "hex");
  EXPECT_EQ(shown_metalayer(Bytes{0xdd, 0xff, 0xff, 0xff, 0xff})["encoding"], "hex");
  EXPECT_EQ(shown_metalayer(Bytes{0xdb, 0xff, 0xff, 0xff, 0xff, 'a'})["encoding"], "hex");
}

RC_GTEST_PROP(Metalayers, AnyContentBecomesJson, (const Bytes& content)) {
  const json shown = shown_metalayer(content);
  RC_ASSERT(shown["bytes"] == content.size());
  RC_ASSERT(json::accept(shown.dump(-1, ' ', false, json::error_handler_t::replace)));
  tools::array_json(content);
}

/// A b2nd metalayer as b2nd.md describes it.
Bytes array_header(const std::vector<std::int64_t>& shape, std::int32_t chunk, std::int32_t block,
                   const std::string& dtype) {
  Bytes bytes = {0x97, 0x00, static_cast<std::uint8_t>(shape.size())};
  const auto list = [&](std::uint8_t marker, auto value_at, std::size_t width) {
    bytes.push_back(static_cast<std::uint8_t>(0x90 + shape.size()));
    for (std::size_t i = 0; i < shape.size(); ++i) {
      bytes.push_back(marker);
      for (std::size_t byte = width; byte-- > 0;) {
        bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value_at(i)) >> (8 * byte)));
      }
    }
  };
  list(
      0xd3, [&](std::size_t i) { return shape[i]; }, 8);
  list(
      0xd2, [&](std::size_t) { return chunk; }, 4);
  list(
      0xd2, [&](std::size_t) { return block; }, 4);
  for (const int byte : {0x00, 0xdb, 0x00, 0x00, 0x00, static_cast<int>(dtype.size())}) {
    bytes.push_back(static_cast<std::uint8_t>(byte));
  }
  bytes.insert(bytes.end(), dtype.begin(), dtype.end());
  return bytes;
}

TEST(Metalayers, ArraysShowTheirShape) {
  const auto array = tools::array_json(array_header({10, 7, 5}, 4, 2, "<f8"));
  ASSERT_TRUE(array);
  EXPECT_EQ((*array)["shape"], (json{10, 7, 5}));
  EXPECT_EQ((*array)["chunkshape"], (json{4, 4, 4}));
  EXPECT_EQ((*array)["blockshape"], (json{2, 2, 2}));
  EXPECT_EQ((*array)["dtype"], "<f8");
  EXPECT_TRUE(tools::array_json(array_header(std::vector<std::int64_t>(16, 1), 1, 1, "|u1")));
  EXPECT_TRUE(tools::array_json(array_header({}, 1, 1, "|u1")));
  EXPECT_FALSE(tools::array_json(array_header(std::vector<std::int64_t>(17, 1), 1, 1, "|u1")));
  auto cut = array_header({10, 7, 5}, 4, 2, "<f8");
  while (!cut.empty()) {
    cut.pop_back();
    EXPECT_FALSE(tools::array_json(cut)) << cut.size();
  }
}

struct Terminal {
  std::atomic<bool> stop = false;
  tools::StringOutput out;
  tools::StringOutput err;
  tools::Io io{out, err, true, stop};
  double now = 100;
  tools::Progress::Clock clock() {
    return [this] { return now; };
  }
};

TEST(Progress, AppearsAfterTwoSecondsAndGoesAway) {
  Terminal terminal;
  {
    tools::Progress progress(terminal.io, "verifying", tools::Progress::Unit::bytes, terminal.clock());
    terminal.now += 1.9;
    progress.update(1 << 20, 8 << 20);
    EXPECT_EQ(terminal.err.text, "");
    terminal.now += 0.1;
    progress.update(2 << 20, 8 << 20);
    EXPECT_NE(terminal.err.text.find("verifying [######..................]  25%  2 MiB of 8 MiB  1 MiB/s  ETA 0:06"),
              std::string::npos)
        << terminal.err.text;
    const auto drawn = terminal.err.text.size();
    terminal.now += 0.1;
    progress.update(3 << 20, 8 << 20);
    EXPECT_EQ(terminal.err.text.size(), drawn) << "drawn too often";
  }
  EXPECT_TRUE(terminal.err.text.ends_with("\r\x1b[K"));
}

TEST(Progress, StaysAwayFromWhatIsNoTerminal) {
  Terminal terminal;
  terminal.io.err_is_terminal = false;
  tools::Progress progress(terminal.io, "verifying", tools::Progress::Unit::items, terminal.clock());
  terminal.now += 60;
  progress.update(1, 2);
  progress.finish();
  EXPECT_EQ(terminal.err.text, "");
}

TEST(Progress, MakesSenseOfOddNumbers) {
  Terminal terminal;
  tools::Progress progress(terminal.io, "x", tools::Progress::Unit::items, terminal.clock());
  terminal.now += 5;
  progress.update(0, 0);
  terminal.now += 5;
  progress.update(10, 5);
  EXPECT_NE(terminal.err.text.find("100%  5 of 5"), std::string::npos) << terminal.err.text;
}

TEST(Progress, WithoutAnEndAndWithANote) {
  Terminal terminal;
  tools::Progress progress(terminal.io, "packing", tools::Progress::Unit::bytes, terminal.clock());
  terminal.now += 4;
  progress.note("ratio 2.50");
  progress.update(8 << 20, tools::Progress::kUnknown);
  EXPECT_NE(terminal.err.text.find("packing  8 MiB  2 MiB/s  ratio 2.50\x1b"), std::string::npos) << terminal.err.text;
  terminal.now += 4;
  progress.update(8 << 20, 16 << 20);
  EXPECT_NE(terminal.err.text.find("8 MiB of 16 MiB  1 MiB/s  ratio 2.50  ETA 0:08"), std::string::npos)
      << terminal.err.text;
}

}  // namespace
}  // namespace cframefs::test
