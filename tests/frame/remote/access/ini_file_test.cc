#include "frame/remote/access/ini_file.h"

#include <gtest/gtest.h>

namespace cframefs::test {
namespace {

using frame::IniFile;

/// A value of a section; "(none)" if either does not exist.
std::string value_in(const std::string& text, const std::string& section, const std::string& name) {
  const auto file = IniFile::parse(text);
  if (!file) return "(refused)";
  const IniFile::Section* found = file->section(section);
  if (found == nullptr) return "(none)";
  const auto value = found->find(name);
  return value == found->end() ? "(none)" : value->second;
}

TEST(IniFile, ReadsSectionsAndValuesOfTheAwsTools) {
  const std::string text =
      "# written by aws configure\n"
      "[default]\n"
      "region = eu-central-1\n"
      "\n"
      "[profile work]\r\n"
      "region=us-west-2\r\n"
      "output = json\r\n";
  EXPECT_EQ(value_in(text, "default", "region"), "eu-central-1");
  EXPECT_EQ(value_in(text, "profile work", "region"), "us-west-2");
  EXPECT_EQ(value_in(text, "profile work", "output"), "json");
  EXPECT_EQ(value_in(text, "work", "region"), "(none)");
}

TEST(IniFile, HeadersMayHaveSpacesQuotationMarksAndComments) {
  EXPECT_EQ(value_in("[ profile   a ]\nx=1", "profile a", "x"), "1");
  EXPECT_EQ(value_in("[profile \"my own\"] # mine\nx=1", "profile my own", "x"), "1");
  EXPECT_EQ(value_in("[profile\ta]; mine\nx=1", "profile a", "x"), "1");
}

TEST(IniFile, CommentsBeginALineOrFollowWhiteSpace) {
  EXPECT_EQ(value_in("[a]\n#x=1\n;x=2\n", "a", "x"), "(none)");
  EXPECT_EQ(value_in("[a]\nx = 1 # one\ny = 2\t; two\n", "a", "x"), "1");
  EXPECT_EQ(value_in("[a]\nx = 1 # one\ny = 2\t; two\n", "a", "y"), "2");
  EXPECT_EQ(value_in("[a]\nx = ab#c;d\n", "a", "x"), "ab#c;d");
  EXPECT_EQ(value_in("[a]\nx = # nothing\n", "a", "x"), "");
}

TEST(IniFile, NestedAndContinuedLinesAreLeftOut) {
  const std::string text = "[a]\ns3 =\n  endpoint_url = http://nested\n\tregion = nested\nregion = own\n  more\n";
  EXPECT_EQ(value_in(text, "a", "region"), "own");
  EXPECT_EQ(value_in(text, "a", "endpoint_url"), "(none)");
  EXPECT_EQ(value_in(text, "a", "s3"), "");
}

TEST(IniFile, NamesOfValuesHaveNoCaseThoseOfSectionsDo) {
  EXPECT_EQ(value_in("[a]\nAWS_Access_Key_ID = X\n", "a", "aws_access_key_id"), "X");
  EXPECT_EQ(value_in("[a]\nx = 1\n", "A", "x"), "(none)");
}

TEST(IniFile, EqualSectionsAreJoinedAndTheLastValueCounts) {
  const std::string text = "[a]\nx=1\ny=2\n[b]\n[a]\nx=3\n";
  EXPECT_EQ(value_in(text, "a", "x"), "3");
  EXPECT_EQ(value_in(text, "a", "y"), "2");
}

TEST(IniFile, ValuesMayHaveEqualsSignsAndSpacesInThem) {
  EXPECT_EQ(value_in("[a]\nx = b=c d==  \n", "a", "x"), "b=c d==");
}

TEST(IniFile, LinesBeforeTheFirstSectionAndAByteOrderMarkAreSkipped) {
  EXPECT_EQ(value_in("\xef\xbb\xbf[a]\nx=1", "a", "x"), "1");
  EXPECT_EQ(value_in("x=0\n[a]\ny=1", "a", "x"), "(none)");
  EXPECT_TRUE(IniFile::parse(""));
  EXPECT_TRUE(IniFile::parse("\n \n\t\n"));
}

TEST(IniFile, RefusesBrokenLinesWithTheirNumberAndWithoutTheirText) {
  const auto header = IniFile::parse("[a]\nx=1\n[work\naws_secret_access_key = hush\n");
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().kind, codec::ErrorKind::corruption);
  EXPECT_NE(header.error().reason.find("line 3"), std::string::npos);

  const auto line = IniFile::parse("[a]\naws_secret_access_key hush\n");
  ASSERT_FALSE(line);
  EXPECT_NE(line.error().reason.find("line 2"), std::string::npos);
  EXPECT_EQ(line.error().reason.find("hush"), std::string::npos);
}

}  // namespace
}  // namespace cframefs::test
