// The answers of a bucket to the begin and the end of an upload, right and wrong.
#include "frame/remote/publishing/upload_answers.h"

#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/fake_requests.h"

namespace cframefs::test {
namespace {

using codec::ErrorKind;

const std::string kCompletedUrl = "http://host/bucket/key";

std::string begun_text(const std::string& inner) {
  return "<?xml version=\"1.0\"?><InitiateMultipartUploadResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" +
         inner + "</InitiateMultipartUploadResult>";
}
std::string completed_text(const std::string& inner) {
  return "\n  \n<CompleteMultipartUploadResult>" + inner + "</CompleteMultipartUploadResult>";
}

TEST(UploadAnswers, TheIdentifierOfAnUpload) {
  const auto id = frame::upload_id_of(answer_of(begun_text("<Key>k</Key><UploadId>a&amp;b=/+</UploadId>")));
  ASSERT_TRUE(id) << id.error().reason;
  EXPECT_EQ(*id, "a&b=/+");
}

TEST(UploadAnswers, TheTagOfAnObject) {
  for (const char* text : {"&quot;abc-2&quot;", "abc-2", "\"abc-2\""}) {
    const auto tag =
        frame::completed_tag_of(answer_of(completed_text("<ETag>" + std::string(text) + "</ETag>")), kCompletedUrl);
    ASSERT_TRUE(tag) << tag.error().reason;
    EXPECT_EQ(*tag, "\"abc-2\"");
  }
  for (const char* inner : {"", "<ETag></ETag>", "<ETag>a&#10;b</ETag>", "<Deeper><ETag>x</ETag></Deeper>"}) {
    const auto tag = frame::completed_tag_of(answer_of(completed_text(inner)), kCompletedUrl);
    ASSERT_TRUE(tag) << tag.error().reason;
    EXPECT_EQ(*tag, "") << inner;
  }
}

TEST(UploadAnswers, AnErrorWithStatus200IsAnError) {
  const auto tag = frame::completed_tag_of(
      answer_of("<?xml version=\"1.0\"?>\n\n<Error><Code>InternalError</Code><Message>Try again</Message></Error>"),
      kCompletedUrl);
  ASSERT_FALSE(tag);
  EXPECT_EQ(tag.error().sys, EIO);
  EXPECT_NE(tag.error().reason.find("InternalError: Try again"), std::string::npos) << tag.error().reason;
}

TEST(UploadAnswers, OtherAnswersAreRefused) {
  std::string nested;
  for (int depth = 0; depth < 100'000; ++depth)
    nested += "<a>";
  const std::string entities = "<!DOCTYPE a [<!ENTITY b \"c\">]>" + begun_text("<UploadId>&b;</UploadId>");
  const std::string too_long = begun_text("<UploadId>" + std::string(3000, 'x') + "</UploadId>");
  for (const std::string& body :
       {std::string(), std::string("<html></html>"), begun_text(""), begun_text("<UploadId></UploadId>"),
        begun_text("<UploadId>x"), nested, nested.substr(0, 30'000), entities, too_long}) {
    const auto id = frame::upload_id_of(answer_of(body));
    ASSERT_FALSE(id) << body.substr(0, 100);
    EXPECT_EQ(id.error().kind, ErrorKind::unsupported);
    EXPECT_FALSE(frame::completed_tag_of(answer_of(body), kCompletedUrl)) << body.substr(0, 100);
  }
}

}  // namespace
}  // namespace cframefs::test
