// Headers of .npy files and the item types in them, compared with recorded output of NumPy 1.24.
#include "frame/numpy/npy_header.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "frame/numpy/python_literal.h"

namespace cframefs::frame {
namespace {

struct Case {
  const char* text;
  const char* descr;
  std::uint64_t itemsize;
};

TEST(Dtype, DescriptionsAreThoseOfNumpy) {
  const std::vector<Case> cases = {
      {"<f8", "'<f8'", 8},
      {"f4", "'<f4'", 4},
      {"=f4", "'<f4'", 4},
      {">i4", "'>i4'", 4},
      {">u1", "'|u1'", 1},
      {"|b1", "'|b1'", 1},
      {"?", "'|b1'", 1},
      {"<c16", "'<c16'", 16},
      {"|S5", "'|S5'", 5},
      {"<U12", "'<U12'", 48},
      {"<M8[ns]", "'<M8[ns]'", 8},
      {"m8[25s]", "'<m8[25s]'", 8},
      {"<M8[1D]", "'<M8[D]'", 8},
      {"<M8", "'<M8'", 8},
      {"datetime64[us]", "'<M8[us]'", 8},
      {"float32", "'<f4'", 4},
      {"bool", "'|b1'", 1},
      {"i1", "'|i1'", 1},
      {"|V7", "'|V7'", 7},
      {"[('a', '<i4'), ('b', '<f8', (2,))]", "[('a', '<i4'), ('b', '<f8', (2,))]", 20},
      {"[('a', 'u1'), ('b', [('x', '<f4', (2, 3)), ('y', '>i2')])]",
       "[('a', '|u1'), ('b', [('x', '<f4', (2, 3)), ('y', '>i2')])]", 27},
      {"{'names': ['a', 'b'], 'formats': ['u1', '<i4'], 'offsets': [0, 4], 'itemsize': 12, 'aligned': True}",
       "[('a', '|u1'), ('', '|V3'), ('b', '<i4'), ('', '|V4')]", 12},
      {R"({'names': ['a', 'b'], 'formats': ["<f4", ('<f4', (2,))], 'offsets': [4, 8], 'itemsize': 16})",
       "[('', '|V4'), ('a', '<f4'), ('b', '<f4', (2,))]", 16},
      {"[(('title', 'name'), '<i4'), ('q', '<U3')]", "[(('title', 'name'), '<i4'), ('q', '<U3')]", 16},
      {R"([('it\'s', '<i4'), ('say "hi"', '<i2'), ('tab\t', 'S2')])",
       R"([("it's", '<i4'), ('say "hi"', '<i2'), ('tab\t', '|S2')])", 8},
      {"[('\xc3\xa9', '<i2')]", "[('\xc3\xa9', '<i2')]", 2},
      {"[('\xcf\x80', '<i2')]", "[('\xcf\x80', '<i2')]", 2},
      {R"([('\x07\xad\u200b', '<i2')])", R"([('\x07\xad\u200b', '<i2')])", 2},
      {"[('', '<i2'), ('b', '<i2')]", "[('f0', '<i2'), ('b', '<i2')]", 4},
      {"{'names': ['a'], 'formats': ['u1'], 'titles': ['T'], 'offsets': [3], 'itemsize': 4}",
       "[('', '|V3'), (('T', 'a'), '|u1')]", 4},
      {"[('a', '<i4', 1), ('b', '<i4', 2), ('c', '<i4', ())]", "[('a', '<i4'), ('b', '<i4', (2,)), ('c', '<i4')]", 16},
      {"[('e', '<f2', (1,))]", "[('e', '<f2', (1,))]", 2},
      {"[('b', '?', (3,)), ('d', '<M8[D]')]", "[('b', '|b1', (3,)), ('d', '<M8[D]')]", 11},
  };
  for (const Case& c : cases) {
    const auto type = parse_dtype(c.text);
    ASSERT_TRUE(type) << c.text;
    EXPECT_EQ(type->descr, c.descr);
    EXPECT_EQ(type->itemsize, c.itemsize) << c.text;
  }
}

TEST(Dtype, InvalidDescriptionsAreRefused) {
  std::string deep;
  for (int i = 0; i < 100000; ++i)
    deep += "[('a', ";
  const std::vector<std::string> texts = {
      "", "<", "O", "|O", "x4", "<f3", "i16", "<c4", "S", "Sx", "S-1", "S99999999999", "<M8[xs]", "<M8[ns", "<M8[0s]",
      "i4,f8", "<f8 ", "__import__('os')", "[", "[]]", "[('a')]", "[('a', 'O')]", "[('a', '<i4') ('b', '<i4')]",
      "[('a', '<i4'), ('a', '<i4')]", "[('a', '<i4', -1)]", "[('a', '<i4', (99999999999,))]", "[('a', '<i4', 1.5)]",
      "('<i4', (2,))", "{'names': ['a']}", "{'names': ['a'], 'formats': ['<i4'], 'offsets': [0, 4]}",
      // Fields that overlap, are not in order, or do not fit: NumPy cannot save such arrays.
      "{'names': ['a', 'b'], 'formats': ['<i4', '<i4'], 'offsets': [0, 2], 'itemsize': 8}",
      "{'names': ['a', 'b'], 'formats': ['<i4', '<i4'], 'offsets': [4, 0], 'itemsize': 8}",
      "{'names': ['a'], 'formats': ['<i4'], 'offsets': [0], 'itemsize': 2}", "[('\xff', '<i4')]", deep};
  for (const std::string& text : texts)
    EXPECT_FALSE(parse_dtype(text)) << text.substr(0, 100);
}

RC_GTEST_PROP(Dtype, AnyTextIsTakenOrRefused, ()) {
  const std::vector<std::string> parts = {"[",  "]", "(",       ")",   ", ", "'a'", "'<f8'",   "'|S5'",
                                          "{",  "}", "'names'", ": ",  "12", "0",   "'\\",     "x4",
                                          "\"", "'", "True",    "'O'", "<",  "U",   "\xcf\x80"};
  std::string text;
  const int count = *rc::gen::inRange(0, 25);
  for (int i = 0; i < count; ++i)
    text += *rc::gen::elementOf(parts);
  const auto type = parse_dtype(text);
  // The resulting description parses to the same type.
  if (!type) return;
  const auto quoted = parse_literal(type->descr);
  RC_ASSERT(quoted.has_value());
  if (type->descr.starts_with("[") && type->descr.find("''") == std::string::npos) {
    const auto again = parse_dtype(type->descr);
    RC_ASSERT(again.has_value());
    RC_ASSERT(again->descr == type->descr);
  }
}

std::string text_of(const std::vector<std::uint8_t>& header) {
  return {header.begin(), header.end()};
}

TEST(NpyHeader, IsThatOfNumpyByteForByte) {
  // The first extent has room for 21 digits; padding extends the header to a multiple of 64.
  const std::string magic("\x93NUMPY\x01\x00\x76\x00", 10);
  const std::string start = "{'descr': '<f8', 'fortran_order': False, 'shape': ";
  EXPECT_EQ(text_of(npy_header({"'<f8'", 8}, std::vector<std::int64_t>{3, 4})),
            magic + start + "(3, 4), }" + std::string(118 - 59 - 1, ' ') + "\n");
  EXPECT_EQ(text_of(npy_header({"'<f8'", 8}, std::vector<std::int64_t>{5})),
            magic + start + "(5,), }" + std::string(118 - 57 - 1, ' ') + "\n");
  // Without dimensions no room is reserved, and the header fits into 64 bytes.
  const std::string small("\x93NUMPY\x01\x00\x76\x00", 10);
  EXPECT_EQ(text_of(npy_header({"'<f8'", 8}, {})), small + start + "(), }" + std::string(118 - 55 - 1, ' ') + "\n");
}

TEST(NpyHeader, ATextThatEndsAtTheBoundaryGets64MoreBytes) {
  // 10 bytes precede the text; the room for growth is part of the text.
  for (std::size_t length = 0; length < 130; ++length) {
    const std::string descr = "'|S" + std::string(length, '1') + "'";
    const auto header = npy_header({descr, 1}, {});
    const std::size_t text =
        10 + std::string("{'descr': , 'fortran_order': False, 'shape': (), }").size() + descr.size();
    EXPECT_EQ(header.size() % 64, 0U);
    EXPECT_GT(header.size(), text + 1);
    EXPECT_LE(header.size(), text + 1 + 64);
    EXPECT_EQ(header.back(), '\n');
  }
}

TEST(NpyHeader, LongOnesAreOfVersionTwoAndNamesBeyondLatinOneOfVersionThree) {
  const auto version = [](const std::vector<std::uint8_t>& header) { return int{header[6]}; };
  const std::string latin = "[('\xc3\xa9', '<i2')]";
  const auto one = npy_header({latin, 2}, std::vector<std::int64_t>{2});
  EXPECT_EQ(version(one), 1);
  EXPECT_NE(text_of(one).find("('\xe9', '<i2')"), std::string::npos) << "Latin-1, not UTF-8";
  const auto three = npy_header({"[('\xcf\x80', '<i2')]", 2}, std::vector<std::int64_t>{2});
  EXPECT_EQ(version(three), 3);
  EXPECT_NE(text_of(three).find("('\xcf\x80', '<i2')"), std::string::npos);
  EXPECT_EQ(three.size() % 64, 0U);
  EXPECT_EQ(three.size(), 12U + three[8] + three[9] * 256U);
  const auto two = npy_header({"'" + std::string(70000, 'x') + "'", 2}, std::vector<std::int64_t>{2});
  EXPECT_EQ(version(two), 2);
  EXPECT_EQ(two.size(), 12U + two[8] + two[9] * 256U + two[10] * 65536U);
  EXPECT_EQ(two.size() % 64, 0U);
}

}  // namespace
}  // namespace cframefs::frame
