#include "frame/remote/http/http_status.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace cframefs::test::http_status_tests {
namespace {

using codec::ErrorKind;
using frame::HttpAnswer;
using std::chrono::seconds;

HttpAnswer answer_with(int status, const std::string& body = {}, std::vector<frame::HttpHeader> headers = {}) {
  HttpAnswer answer;
  answer.status = status;
  answer.body.assign(body.begin(), body.end());
  answer.headers = std::move(headers);
  return answer;
}

std::string s3_error(const std::string& code, const std::string& message) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" + code + "</Code><Message>" + message +
         "</Message><RequestId>1</RequestId></Error>";
}

codec::Error error_of(const HttpAnswer& answer) {
  return frame::failure_of(answer, "https://host/path/x.b2frame").value();
}

TEST(HttpAnswer, FindsHeadersWithoutCaseAndTakesTheLast) {
  const HttpAnswer answer = answer_with(200, "", {{"ETAG", "\"a\""}, {"Length", "1"}, {"etag", "\"b\""}});
  EXPECT_EQ(answer.header("ETag"), "\"b\"");
  EXPECT_EQ(answer.header("length"), "1");
  EXPECT_EQ(answer.header("Len"), "");
}

TEST(ShownUrl, HasNoUserPasswordQueryOrFragment) {
  EXPECT_EQ(frame::shown_url("https://user:pass@host:8080/a/b.b2frame?X-Amz-Signature=secret#part"),
            "https://host:8080/a/b.b2frame");
  EXPECT_EQ(frame::shown_url("https://token@host"), "https://host");
  EXPECT_EQ(frame::shown_url("https://a@b:c@host/x@y"), "https://host/x@y");
  EXPECT_EQ(frame::shown_url("https://host?user@secret"), "https://host");
  EXPECT_EQ(frame::shown_url("s3://bucket/key"), "s3://bucket/key");
  EXPECT_EQ(frame::shown_url("/relative/path?q"), "/relative/path");
  EXPECT_EQ(frame::shown_url(""), "");
}

TEST(ShownUrl, IsPrintableAndNotLongerThanALine) {
  EXPECT_EQ(frame::shown_url("http://host/\x1b[31m\n"), "http://host/\\x1b[31m\\x0a");
  EXPECT_EQ(frame::shown_url("http://host/" + std::string(5000, 'x')).size(), 1000U);
}

TEST(FailureOf, OnlyNotFoundAndGoneMeanThatNoObjectExists) {
  for (int status = 300; status < 600; ++status) {
    const codec::Error error = error_of(answer_with(status));
    EXPECT_EQ(error.sys == ENOENT, status == 404 || status == 410) << status;
    EXPECT_NE(error.reason.find(std::to_string(status)), std::string::npos) << error.reason;
    EXPECT_NE(error.reason.find("https://host/path/x.b2frame"), std::string::npos) << error.reason;
  }
}

TEST(FailureOf, StatusesHaveTheErrnoThatUsersActOn) {
  EXPECT_EQ(error_of(answer_with(401)).sys, EACCES);
  EXPECT_EQ(error_of(answer_with(403)).sys, EACCES);
  EXPECT_EQ(error_of(answer_with(501)).sys, EOPNOTSUPP);
  EXPECT_EQ(error_of(answer_with(413)).sys, EFBIG);
  EXPECT_EQ(error_of(answer_with(507)).sys, ENOSPC);
  for (const int status : {300, 304, 400, 402, 405, 407, 408, 409, 429, 500, 502, 503, 504, 599})
    EXPECT_EQ(error_of(answer_with(status)).sys, EIO) << status;
}

TEST(FailureOf, ChangedObjectsAreStale) {
  EXPECT_EQ(error_of(answer_with(412)).kind, ErrorKind::stale);
  EXPECT_EQ(error_of(answer_with(416)).kind, ErrorKind::stale);
  EXPECT_EQ(error_of(answer_with(409, s3_error("ConditionalRequestConflict", "retry"))).kind, ErrorKind::stale);
  EXPECT_EQ(error_of(answer_with(409, s3_error("BucketNotEmpty", ""))).kind, ErrorKind::io);
}

TEST(FailureOf, TellsWordsAndWhatS3Says) {
  EXPECT_EQ(error_of(answer_with(403, s3_error("AccessDenied", "Access &lt;Denied&gt;"))).reason,
            "https://host/path/x.b2frame: Permission denied (403 Forbidden, AccessDenied: Access <Denied>)");
  EXPECT_EQ(error_of(answer_with(404)).reason,
            "https://host/path/x.b2frame: No such file or directory (404 Not Found)");
}

TEST(FailureOf, ExpiredTokenIsARefusal) {
  EXPECT_EQ(error_of(answer_with(400, s3_error("ExpiredToken", "The provided token has expired."))).sys, EACCES);
  EXPECT_EQ(error_of(answer_with(400, s3_error("InvalidArgument", ""))).sys, EIO);
}

TEST(FailureOf, TextOfServersIsPrintableAndShort) {
  const std::string reason =
      error_of(answer_with(403, s3_error("AccessDenied", "\x1b[31m\n" + std::string(900, '\xc3') + " end"))).reason;
  EXPECT_EQ(reason.find('\x1b'), std::string::npos);
  EXPECT_EQ(reason.find('\n'), std::string::npos);
  EXPECT_LT(reason.size(), 300U);
  // A code that is none is not shown, nor is a page that is no error of S3.
  EXPECT_EQ(error_of(answer_with(403, s3_error("a\nb", ""))).reason.find("a\nb"), std::string::npos);
  EXPECT_EQ(error_of(answer_with(403, "<html><Message>hello</Message></html>")).reason.find("hello"),
            std::string::npos);
}

TEST(FailureOf, CharactersAreNotCutInHalf) {
  std::string message;
  for (int i = 0; i < 90; ++i)
    message += "€";
  const std::string reason = error_of(answer_with(403, s3_error("A", message))).reason;
  EXPECT_NE(reason.find("€..."), std::string::npos) << reason;
  EXPECT_EQ(reason.find("\\x"), std::string::npos) << reason;
}

TEST(FailureOf, TellsNoKeysThatTheServerRepeats) {
  const std::string reason = error_of(answer_with(403, s3_error("AccessDenied",
                                                                "bad token eyJhbGciOiJIUzI1NiJ9.e30.abc and "
                                                                "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY given")))
                                 .reason;
  EXPECT_NE(reason.find("bad token (...) and (...) given"), std::string::npos) << reason;
}

TEST(FailureOf, UnfinishedErrorsOfS3AreNotRead) {
  for (const std::string body : {"<Error><Code>", "<Error><Code>AccessDenied", "<Error", "<Error><Code></Code>"}) {
    EXPECT_EQ(error_of(answer_with(403, body)).reason, "https://host/path/x.b2frame: Permission denied (403 Forbidden)")
        << body;
  }
}

TEST(FailureOf, TellsTheRegionOfABucketElsewhere) {
  const codec::Error moved = error_of(answer_with(301, "", {{"X-Amz-Bucket-Region", "eu-west-1"}}));
  EXPECT_EQ(moved.sys, EINVAL);
  EXPECT_NE(moved.reason.find("region eu-west-1"), std::string::npos) << moved.reason;
  const codec::Error malformed =
      error_of(answer_with(400, "<Error><Code>AuthorizationHeaderMalformed</Code><Region>us-west-2</Region></Error>"));
  EXPECT_EQ(malformed.sys, EINVAL);
  EXPECT_NE(malformed.reason.find("region us-west-2"), std::string::npos) << malformed.reason;
  // Only a name is believed; and a refusal stays one, although S3 tells the region there, too.
  EXPECT_EQ(error_of(answer_with(301, "", {{"x-amz-bucket-region", "a b\n"}})).sys, EIO);
  EXPECT_EQ(error_of(answer_with(403, "", {{"x-amz-bucket-region", "eu-west-1"}})).sys, EACCES);
}

TEST(FailureOf, RedirectThatIsLeftTellsWhere) {
  const codec::Error error = error_of(answer_with(302, "", {{"Location", "https://other/login?session=secret"}}));
  EXPECT_EQ(error.sys, EIO);
  EXPECT_NE(error.reason.find("https://other/login"), std::string::npos) << error.reason;
  EXPECT_EQ(error.reason.find("secret"), std::string::npos) << error.reason;
}

TEST(IsRetried, OnlyStatusesThatPassByThemselves) {
  for (int status = 200; status < 600; ++status) {
    const bool passes =
        status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
    EXPECT_EQ(frame::is_retried(status), passes) << status;
  }
  EXPECT_TRUE(frame::is_retried(answer_with(503, s3_error("SlowDown", ""))));
  EXPECT_TRUE(frame::is_retried(answer_with(400, s3_error("RequestTimeout", ""))));
  EXPECT_FALSE(frame::is_retried(answer_with(400, s3_error("InvalidArgument", ""))));
}

std::optional<seconds> wait_for(const std::string& value, const std::string& date = {}) {
  std::vector<frame::HttpHeader> headers = {{"Retry-After", value}};
  if (!date.empty()) headers.push_back({"Date", date});
  return frame::retry_after(answer_with(503, "", headers));
}

TEST(RetryAfter, TakesSecondsUpToAMinute) {
  EXPECT_EQ(wait_for("0"), seconds(0));
  EXPECT_EQ(wait_for("7"), seconds(7));
  EXPECT_EQ(wait_for("61"), seconds(60));
  EXPECT_EQ(wait_for("99999999999999999999999999"), seconds(60));
  EXPECT_EQ(wait_for("soon"), std::nullopt);
  EXPECT_EQ(wait_for(""), std::nullopt);
  EXPECT_EQ(frame::retry_after(answer_with(503)), std::nullopt);
}

TEST(RetryAfter, ComparesADateWithTheTimeOfTheServer) {
  const std::string now = "Wed, 21 Oct 2015 07:28:00 GMT";
  EXPECT_EQ(wait_for("Wed, 21 Oct 2015 07:28:09 GMT", now), seconds(9));
  EXPECT_EQ(wait_for("Wed, 21 Oct 2015 09:28:00 GMT", now), seconds(60));
  EXPECT_EQ(wait_for("Wed, 21 Oct 2015 07:27:00 GMT", now), seconds(0));
  EXPECT_EQ(wait_for("Wed, 21 Oct 2015 07:28:09 GMT"), seconds(0));  // long ago by the clock of this machine
  EXPECT_EQ(wait_for("Wed, 21 Oct 2015 07:28:09 GMT", "today"), seconds(0));
}

}  // namespace
}  // namespace cframefs::test::http_status_tests
