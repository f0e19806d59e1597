#include "frame/remote/access/credential_answers.h"

#include <gtest/gtest.h>

namespace cframefs::test {
namespace {

TEST(CredentialAnswers, TimesAreThoseOfIso8601) {
  EXPECT_EQ(frame::parse_time("2001-09-09T01:46:40Z"), 1'000'000'000);
  EXPECT_EQ(frame::parse_time("2001-09-09T01:46:40.999Z"), 1'000'000'000);
  EXPECT_EQ(frame::parse_time("2001-09-09T03:46:40+02:00"), 1'000'000'000);
  EXPECT_EQ(frame::parse_time("2001-09-08T20:16:40-0530"), 1'000'000'000);
  for (const char* text : {"", "1000000000", "2001-09-09", "2001-09-09T01:46:40", "2001-13-09T01:46:40Z",
                           "2001-09-09T24:46:40Z", "2001-09-09T01:46:40Zx", "2001-09-09T01:46:40+2",
                           "x001-09-09T01:46:40Z", "2001-00-09T01:46:40Z", "-001-09-09T01:46:40Z"})
    EXPECT_FALSE(frame::parse_time(text)) << text;
}

TEST(CredentialAnswers, XmlWithADocumentTypeIsRefused) {
  const std::string bomb =
      "<!DOCTYPE r [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><r><AccessKeyId>&b;</AccessKeyId>"
      "<SecretAccessKey>&b;</SecretAccessKey></r>";
  const auto parsed = frame::credentials_of_sts(bomb, "test");
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().reason.find("no XML"), std::string::npos);
  EXPECT_FALSE(frame::credentials_of_sts("<r><AccessKeyId>", "test"));
  EXPECT_FALSE(frame::credentials_of_sts("", "test"));
  EXPECT_EQ(frame::error_code_of_sts("<r><Code>a b</Code></r>"), "");
}

TEST(CredentialAnswers, DeepAnswersAreRefusedWithoutRecursion) {
  std::string xml;
  for (int i = 0; i < 16000; ++i)
    xml += "<a>";
  EXPECT_FALSE(frame::credentials_of_sts(xml, "test"));
  EXPECT_FALSE(frame::credentials_of_json(std::string(60000, '['), "test"));
  EXPECT_FALSE(frame::credentials_of_json(std::string(30000, '[') + std::string(30000, ']'), "test"));
}

}  // namespace
}  // namespace cframefs::test
