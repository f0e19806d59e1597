#include "frame/remote/access/signature_v4.h"

#include <gtest/gtest.h>

#include "frame/remote/http/request_headers.h"

namespace cframefs::test {
namespace {

using frame::Credentials;
using frame::HttpRequest;
using frame::PayloadHash;
using frame::SigningScope;

constexpr std::int64_t kExampleTime = 1369353600;  // 2013-05-24T00:00:00Z, of the S3 API reference
constexpr std::int64_t kOwnTime = 1795719605;      // 2026-11-26T19:00:05Z

Credentials example_credentials() {
  return {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "", std::nullopt};
}

Credentials suite_credentials() {
  return {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "", std::nullopt};
}

std::string header_of(const HttpRequest& request, std::string_view name) {
  for (const auto& header : request.headers) {
    if (frame::equal_without_case(header.name, name)) return header.value;
  }
  return "(none)";
}

std::string part_after(const std::string& text, const std::string& mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return "(none)";
  const std::string rest = text.substr(at + mark.size());
  return rest.substr(0, rest.find(','));
}

std::string signature_in(const HttpRequest& request) {
  return part_after(header_of(request, "Authorization"), "Signature=");
}

std::string signed_headers_in(const HttpRequest& request) {
  return part_after(header_of(request, "Authorization"), "SignedHeaders=");
}

/// Signs as the examples of the S3 API reference do.
HttpRequest signed_example(HttpRequest request) {
  EXPECT_TRUE(frame::sign_request(request, example_credentials(), {"us-east-1"}, PayloadHash::of_body, kExampleTime));
  return request;
}

HttpRequest example(const std::string& method, const std::string& rest) {
  HttpRequest request;
  request.method = method;
  request.url = "https://examplebucket.s3.amazonaws.com" + rest;
  return request;
}

TEST(SignatureV4, SignsTheGetObjectExampleOfTheS3Reference) {
  HttpRequest request = example("GET", "/test.txt");
  request.headers = {{"Range", "bytes=0-9"}};
  request = signed_example(std::move(request));
  EXPECT_EQ(header_of(request, "Authorization"),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(header_of(request, "x-amz-date"), "20130524T000000Z");
  EXPECT_EQ(header_of(request, "x-amz-content-sha256"),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(header_of(request, "x-amz-security-token"), "(none)");
}

TEST(SignatureV4, SignsThePutObjectExampleOfTheS3Reference) {
  HttpRequest request = example("PUT", "/test$file.text");
  request.headers = {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
  request.body = "Welcome to Amazon S3.";
  request = signed_example(std::move(request));
  EXPECT_EQ(signature_in(request), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  EXPECT_EQ(header_of(request, "x-amz-content-sha256"),
            "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
}

TEST(SignatureV4, SignsTheLifecycleExampleOfTheS3Reference) {
  EXPECT_EQ(signature_in(signed_example(example("GET", "/?lifecycle"))),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(SignatureV4, SignsTheListObjectsExampleOfTheS3Reference) {
  const std::string expected = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
  EXPECT_EQ(signature_in(signed_example(example("GET", "/?max-keys=2&prefix=J"))), expected);
  EXPECT_EQ(signature_in(signed_example(example("GET", "/?prefix=J&max-keys=2"))), expected);    // sorted
  EXPECT_EQ(signature_in(signed_example(example("GET", "?prefix=%4a&&max-keys=2"))), expected);  // normalised
}

TEST(SignatureV4, SignsTheAwsTestSuite) {
  const SigningScope scope{"us-east-1", "service"};
  const std::int64_t time = 1440938160;  // 20150830T123600Z
  HttpRequest vanilla;
  vanilla.url = "https://example.amazonaws.com/";
  ASSERT_TRUE(frame::sign_request(vanilla, suite_credentials(), scope, PayloadHash::of_body, time));
  EXPECT_EQ(signature_in(vanilla), "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  EXPECT_EQ(header_of(vanilla, "x-amz-content-sha256"), "(none)");

  HttpRequest ordered;  // get-vanilla-query-order-key-case
  ordered.url = "https://example.amazonaws.com/?Param2=value2&Param1=value1";
  ASSERT_TRUE(frame::sign_request(ordered, suite_credentials(), scope, PayloadHash::of_body, time));
  EXPECT_EQ(signature_in(ordered), "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}

// The signatures of the next three were computed by botocore 1.43.
TEST(SignatureV4, SignsSessionTokensAndKeysOfAllCharacters) {
  Credentials credentials = suite_credentials();
  credentials.session_token = "IQoJ+tok/en==";
  HttpRequest request;
  request.url = "https://bucket.s3.eu-central-1.amazonaws.com/a%20b/%C3%BC%2B%28x%29%3D~.b2frame";
  request.headers = {{"Range", "bytes=0-65535"}, {"If-Match", "\"abc\""}};
  ASSERT_TRUE(frame::sign_request(request, credentials, {"eu-central-1"}, PayloadHash::of_body, kOwnTime));
  EXPECT_EQ(signed_headers_in(request), "host;if-match;range;x-amz-content-sha256;x-amz-date;x-amz-security-token");
  EXPECT_EQ(signature_in(request), "b31ac4e87ca6c5a427e7287c53473c08b406049dc68903139d55da8da7ca3dff");
  EXPECT_EQ(header_of(request, "X-Amz-Security-Token"), "IQoJ+tok/en==");

  // The same path, encoded less: the service sees the same key.
  request.url = "https://bucket.s3.eu-central-1.amazonaws.com/a%20b/%c3%bc+(x)=~.b2frame";
  ASSERT_TRUE(frame::sign_request(request, credentials, {"eu-central-1"}, PayloadHash::of_body, kOwnTime));
  EXPECT_EQ(signature_in(request), "b31ac4e87ca6c5a427e7287c53473c08b406049dc68903139d55da8da7ca3dff");
}

TEST(SignatureV4, SortsAndEncodesQueries) {
  HttpRequest request;
  request.url =
      "https://bucket.s3.eu-central-1.amazonaws.com/"
      "?list-type=2&prefix=a%20b%2F&delimiter=%2F&continuation-token=1%2B%2F%3D%3D&uploads";
  ASSERT_TRUE(frame::sign_request(request, suite_credentials(), {"eu-central-1"}, PayloadHash::of_body, kOwnTime));
  EXPECT_EQ(signature_in(request), "e65d264b22143cc8686d1cf32c480e86b1b8c021c2d684b9204e076389cd442f");
}

TEST(SignatureV4, SignsThePortOfTheHostAndTheBody) {
  HttpRequest request;
  request.method = "PUT";
  request.url = "http://127.0.0.1:9000/my.bucket/key?partNumber=2&uploadId=x~y";
  request.headers = {{"Content-Type", "application/octet-stream"}};
  request.body = "hello";
  ASSERT_TRUE(frame::sign_request(request, suite_credentials(), {"eu-central-1"}, PayloadHash::of_body, kOwnTime));
  EXPECT_EQ(signature_in(request), "f294405ab29ed7a4b065a5271853bb9020762ea9bcaf4c3e74939d5511aaacb5");
}

TEST(SignatureV4, TheUsualPortIsNoPartOfTheHost) {
  for (const char* url : {"https://h:443/x", "https://h/x", "http://h:80/x", "http://h/x"}) {
    HttpRequest request;
    request.url = url;
    const auto canonical = frame::canonical_request(request, "HASH", {"us-east-1"});
    EXPECT_EQ(canonical.value(), "GET\n/x\n\nhost:h\n\nhost\nHASH") << url;
  }
  HttpRequest request;
  request.url = "http://h:443/x";
  EXPECT_NE(frame::canonical_request(request, "HASH", {"us-east-1"}).value().find("host:h:443\n"), std::string::npos);
}

TEST(SignatureV4, PathsOfOtherServicesAreEncodedTwice) {
  HttpRequest request;
  request.url = "https://h/a%20b";
  EXPECT_EQ(frame::canonical_request(request, "HASH", {"r", "s3"}).value().substr(0, 12), "GET\n/a%20b\n\n");
  EXPECT_EQ(frame::canonical_request(request, "HASH", {"r", "other"}).value().substr(0, 14), "GET\n/a%2520b\n\n");
}

TEST(SignatureV4, HeaderValuesAreSignedWithoutSuperfluousSpaces) {
  HttpRequest request;
  request.url = "https://h/";
  request.headers = {{"X-B", "  a   b \t"}, {"x-a", "1"}, {"X-A", "2"}, {"User-Agent", "me"}, {"Expect", ""}};
  EXPECT_EQ(frame::canonical_request(request, "HASH", {"r"}).value(),
            "GET\n/\n\nhost:h\nx-a:1,2\nx-b:a b\n\nhost;x-a;x-b\nHASH");
}

TEST(SignatureV4, ABodyMayBeLeftUnsigned) {
  HttpRequest request = example("PUT", "/x");
  request.body = "large";
  ASSERT_TRUE(frame::sign_request(request, example_credentials(), {"us-east-1"}, PayloadHash::none, kExampleTime));
  EXPECT_EQ(header_of(request, "x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
  const std::string with_large = signature_in(request);
  request.body = "other";
  ASSERT_TRUE(frame::sign_request(request, example_credentials(), {"us-east-1"}, PayloadHash::none, kExampleTime));
  EXPECT_EQ(signature_in(request), with_large);
}

TEST(SignatureV4, SigningAgainReplacesTheSignatureBefore) {
  Credentials old = example_credentials();
  old.session_token = "old";
  HttpRequest request = example("GET", "/test.txt");
  request.headers = {{"Range", "bytes=0-9"}, {"authorization", "Basic x"}};
  ASSERT_TRUE(frame::sign_request(request, old, {"us-east-1"}, PayloadHash::none, kExampleTime - 1000));
  request = signed_example(std::move(request));
  EXPECT_EQ(signature_in(request), "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(request.headers.size(), 4U);
}

TEST(SignatureV4, TimesAreWrittenInUtc) {
  EXPECT_EQ(frame::signing_time(0), "19700101T000000Z");
  EXPECT_EQ(frame::signing_time(kExampleTime), "20130524T000000Z");
  EXPECT_EQ(frame::signing_time(1709251199), "20240229T235959Z");
}

TEST(SignatureV4, RefusesUrlsThatAreNotEncoded) {
  for (const char* url : {"no-scheme/x", "https://h/%zz", "https://h/x?a=%", "https://h/x?%00=1"}) {
    HttpRequest request;
    request.url = url;
    const auto done = frame::sign_request(request, example_credentials(), {"r"}, PayloadHash::of_body, 0);
    ASSERT_FALSE(done) << url;
    EXPECT_EQ(done.error().kind, codec::ErrorKind::invalid);
  }
}

}  // namespace
}  // namespace cframefs::test
