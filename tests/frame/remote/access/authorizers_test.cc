#include "frame/remote/access/authorizers.h"

#include <gtest/gtest.h>

#include "frame/remote/access/netrc.h"
#include "frame/remote/http/request_headers.h"
#include "tests/support/fake_surroundings.h"
#include "tests/support/scripted_transport.h"

namespace cframefs::test::authorizers_tests {
namespace {

using frame::Authorizer;
using frame::HttpRequest;

constexpr const char* kNetrc = "/home/user/.netrc";

std::string header_of(const HttpRequest& request, std::string_view name) {
  for (const auto& header : request.headers) {
    if (frame::equal_without_case(header.name, name)) return header.value;
  }
  return "(none)";
}

/// The header Authorization of a request for the URL.
std::string sent(Authorizer& authorizer, const std::string& url) {
  HttpRequest request;
  request.url = url;
  const auto done = authorizer.authorize(request);
  return done ? header_of(request, "Authorization") : "(" + done.error().reason + ")";
}

frame::HttpAnswer answer_of(int status, const std::string& code = {}) {
  frame::HttpAnswer answer;
  answer.status = status;
  const std::string body = "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code></Error>";
  answer.body.assign(body.begin(), body.end());
  return answer;
}

struct WebAuthorizer : ::testing::Test {
  /// Makes the authorizer of the address; `refusal` has the reason if there is none.
  bool make(const std::string& address, const std::string& token_file = {}) {
    auto made = frame::web_authorizer(*frame::parse_address(address), token_file, surroundings);
    refusal.clear();
    if (!made) {
      refusal = codec::describe(made.error());
      EXPECT_EQ(refusal.find("sesame"), std::string::npos) << refusal;
      error = made.error();
      return false;
    }
    authorizer = std::move(*made);
    return true;
  }
  std::string sent_to(const std::string& url) const { return authorizer ? sent(*authorizer, url) : "(none)"; }

  FakeSurroundings surroundings;
  std::unique_ptr<Authorizer> authorizer;
  std::string refusal;
  codec::Error error;
};

TEST_F(WebAuthorizer, AddsNothingWithoutUserTokenAndNetrc) {
  ASSERT_TRUE(make("https://host/x"));
  EXPECT_EQ(sent_to("https://host/x"), "(none)");
  EXPECT_EQ(authorizer, nullptr);
}

TEST_F(WebAuthorizer, SendsTheUserOfTheAddress) {
  ASSERT_TRUE(make("https://Aladdin:open%20sesame@host/x"));
  EXPECT_EQ(sent_to("https://host/x"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  EXPECT_FALSE(authorizer->may_renew(answer_of(401)));
  ASSERT_TRUE(make("https://user@host/x"));
  EXPECT_EQ(sent_to("https://host/x"), "Basic dXNlcjo=");
}

TEST_F(WebAuthorizer, ReplacesTheHeaderWhenARequestIsAuthorizedAgain) {
  ASSERT_TRUE(make("https://user:sesame@host/x"));
  HttpRequest request;
  request.url = "https://host/x";
  request.headers = {{"authorization", "old"}};
  EXPECT_TRUE(authorizer->authorize(request));
  EXPECT_TRUE(authorizer->authorize(request));
  EXPECT_EQ(request.headers.size(), 1U);
}

TEST_F(WebAuthorizer, SendsNothingToOtherOrigins) {
  ASSERT_TRUE(make("https://user:sesame@host:8443/x"));
  EXPECT_NE(sent_to("https://host:8443"), "(none)");
  EXPECT_NE(sent_to("https://host:8443?q"), "(none)");
  for (const char* url :
       {"https://host/x", "http://host:8443/x", "https://host:84430/x", "https://host:8443.evil.org/x",
        "https://host:8443@evil.org/x", "https://evil.org/https://host:8443/"})
    EXPECT_EQ(sent_to(url), "(none)") << url;
}

TEST_F(WebAuthorizer, ShowsPasswordsAndTokensToNoOtherHostByPlainHttp) {
  surroundings.files["/token"] = "sesame";
  EXPECT_FALSE(make("http://user:sesame@host/x"));
  EXPECT_EQ(error.sys, EACCES);
  EXPECT_NE(refusal.find("plain http would show the password"), std::string::npos) << refusal;
  EXPECT_FALSE(make("http://host/x", "/token"));
  EXPECT_NE(refusal.find("plain http would show the token"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("http://host"), std::string::npos) << refusal;
  EXPECT_TRUE(make("http://user:sesame@127.0.0.1:8080/x"));
  EXPECT_TRUE(make("http://localhost/x", "/token"));
  EXPECT_TRUE(make("http://[::1]/x", "/token"));
}

TEST_F(WebAuthorizer, FindsTheUserInNetrcByHost) {
  surroundings.files[kNetrc] =
      "# hosts\n"
      "machine other login x password sesame1\n"
      "machine host\n  login user\n  password sesame\n";
  ASSERT_TRUE(make("https://Host/x"));
  EXPECT_EQ(sent_to("https://host/x"), "Basic dXNlcjpzZXNhbWU=");
  ASSERT_TRUE(make("https://third/x"));
  EXPECT_EQ(sent_to("https://third/x"), "(none)");
  EXPECT_FALSE(make("http://host/x"));
  EXPECT_NE(refusal.find("plain http"), std::string::npos) << refusal;
}

TEST_F(WebAuthorizer, TheAddressAndTheTokenFileGoBeforeNetrc) {
  surroundings.files[kNetrc] = "machine host login user password sesame\n";
  surroundings.files["/token"] = "abc";
  ASSERT_TRUE(make("https://user:other@host/x"));
  EXPECT_EQ(sent_to("https://host/x"), "Basic dXNlcjpvdGhlcg==");
  ASSERT_TRUE(make("https://user@host/x"));
  EXPECT_EQ(sent_to("https://host/x"), "Basic dXNlcjpzZXNhbWU=");
  ASSERT_TRUE(make("https://someone@host/x"));
  EXPECT_EQ(sent_to("https://host/x"), "Basic c29tZW9uZTo=");
  ASSERT_TRUE(make("https://host/x", "/token"));
  EXPECT_EQ(sent_to("https://host/x"), "Bearer abc");
}

TEST_F(WebAuthorizer, AnEntryForAllHostsDoesNotForbidPlainHttp) {
  surroundings.files[kNetrc] = "default login anonymous password sesame\n";
  ASSERT_TRUE(make("http://host/x")) << refusal;
  EXPECT_EQ(sent_to("http://host/x"), "(none)");
  ASSERT_TRUE(make("https://host/x"));
  EXPECT_NE(sent_to("https://host/x"), "(none)");
}

TEST_F(WebAuthorizer, NetrcCanBeNamedAndMustThenExist) {
  surroundings.variables["NETRC"] = "/etc/my.netrc";
  EXPECT_FALSE(make("https://host/x"));
  EXPECT_EQ(error.sys, ENOENT);
  surroundings.files["/etc/my.netrc"] = "machine ::1 login user password sesame";
  ASSERT_TRUE(make("http://[::1]/x"));
  EXPECT_EQ(sent_to("http://[::1]/x"), "Basic dXNlcjpzZXNhbWU=");
  surroundings.variables.clear();
  surroundings.unreadable_files.insert(kNetrc);
  EXPECT_TRUE(make("https://host/x"));
}

TEST_F(WebAuthorizer, ATokenFileThatOthersMayReadIsRefused) {
  surroundings.files["/token"] = "sesame";
  surroundings.shared_files.insert("/token");
  EXPECT_FALSE(make("https://host/x", "/token"));
  EXPECT_EQ(error.sys, EACCES);
  EXPECT_NE(refusal.find("chmod 600 /token"), std::string::npos) << refusal;
}

TEST_F(WebAuthorizer, ATokenFileHoldsOneToken) {
  EXPECT_FALSE(make("https://host/x", "/token"));
  EXPECT_EQ(error.sys, ENOENT);
  for (const char* text : {"", " \n", "Bearer sesame", "sesame\r\nHost: x", "sesame\x01"}) {
    surroundings.files["/token"] = text;
    EXPECT_FALSE(make("https://host/x", "/token")) << text;
    EXPECT_NE(refusal.find("/token"), std::string::npos) << refusal;
  }
  surroundings.files["/token"] = std::string(16385, 'a');
  EXPECT_FALSE(make("https://host/x", "/token"));
  surroundings.files["/token"] = " abc\r\n";
  ASSERT_TRUE(make("https://host/x", "/token"));
  EXPECT_EQ(sent_to("https://host/x"), "Bearer abc");
}

TEST_F(WebAuthorizer, ARefusedTokenIsReadAgain) {
  surroundings.files["/token"] = "old";
  ASSERT_TRUE(make("https://host/x", "/token"));
  EXPECT_FALSE(authorizer->may_renew(answer_of(401)));  // the file has not changed
  surroundings.files["/token"] = "new";
  EXPECT_FALSE(authorizer->may_renew(answer_of(404)));
  EXPECT_EQ(sent_to("https://host/x"), "Bearer old");
  EXPECT_TRUE(authorizer->may_renew(answer_of(401)));
  EXPECT_EQ(sent_to("https://host/x"), "Bearer new");
  EXPECT_TRUE(authorizer->may_renew(answer_of(403)));  // of a request that was sent with the old one
  surroundings.clock += 10;
  EXPECT_FALSE(authorizer->may_renew(answer_of(401)));
}

TEST_F(WebAuthorizer, ATokenFileThatIsGoneOrShownLeavesTheOldToken) {
  surroundings.files["/token"] = "old";
  ASSERT_TRUE(make("https://host/x", "/token"));
  surroundings.files["/token"] = "sesame";
  surroundings.shared_files.insert("/token");
  EXPECT_FALSE(authorizer->may_renew(answer_of(401)));
  surroundings.files.clear();
  EXPECT_FALSE(authorizer->may_renew(answer_of(401)));
  EXPECT_EQ(sent_to("https://host/x"), "Bearer old");
}

/// The login and password that a netrc file has for a host.
std::string netrc_entry(const std::string& text, const std::string& host, const std::string& login = {}) {
  const auto entry = frame::find_netrc_entry(text, host, login);
  if (!entry) {
    EXPECT_EQ(entry.error().reason.find("sesame"), std::string::npos);
    return "(" + entry.error().reason + ")";
  }
  return *entry ? (*entry)->login + ":" + (*entry)->password : "(none)";
}

TEST(Netrc, TheFirstEntryOfTheHostAndLoginCounts) {
  const std::string text =
      "machine h login a password 1\nmachine h login b password 2\nmachine i password 3 login c account x\n"
      "default login d password 4\n";
  EXPECT_EQ(netrc_entry(text, "h"), "a:1");
  EXPECT_EQ(netrc_entry(text, "H"), "a:1");
  EXPECT_EQ(netrc_entry(text, "h", "b"), "b:2");
  EXPECT_EQ(netrc_entry(text, "i"), "c:3");
  EXPECT_EQ(netrc_entry(text, "j"), "d:4");
  EXPECT_EQ(netrc_entry(text, "h", "e"), "(none)");
  EXPECT_EQ(netrc_entry("", "h"), "(none)");
}

TEST(Netrc, MacrosCommentsAndQuotationMarksAreUnderstood) {
  EXPECT_EQ(netrc_entry("macdef init\ncd /\nmachine h login x password y\n\nmachine h login a password 1", "h"), "a:1");
  EXPECT_EQ(netrc_entry("# machine h login x\n  # more\nmachine h login a password #1", "h"), "a:#1");
  EXPECT_EQ(netrc_entry("machine h login \"a b\" password \"1\\\"\\\\\"", "h"), "a b:1\"\\");
  EXPECT_EQ(netrc_entry("machine h login machine password default", "h"), "machine:default");
}

TEST(Netrc, DamageIsAnErrorWithItsLine) {
  EXPECT_NE(netrc_entry("machine i\n login\n", "h").find("line 3"), std::string::npos);
  EXPECT_NE(netrc_entry("machine i login a\npassword \"sesame\n", "h").find("line 2"), std::string::npos);
  EXPECT_NE(netrc_entry("machine i login a password b\nsesame x\n", "h").find("line 2"), std::string::npos);
}

struct S3AuthorizerTest : ::testing::Test {
  S3AuthorizerTest() {
    surroundings.variables["AWS_ACCESS_KEY_ID"] = "AKID";
    surroundings.variables["AWS_SECRET_ACCESS_KEY"] = "sesame";
  }
  FakeSurroundings surroundings;
  ScriptedTransport transport;
};

TEST_F(S3AuthorizerTest, SignsForTheRegionWithTheTimeOfEachCall) {
  frame::S3Authorizer authorizer(surroundings, transport, "https://bucket.example.org", {"", "eu-west-1"});
  HttpRequest request;
  request.url = "https://bucket.example.org/x";
  ASSERT_TRUE(authorizer.authorize(request));
  EXPECT_EQ(header_of(request, "x-amz-date"), "20010909T014640Z");
  EXPECT_NE(header_of(request, "authorization").find("AKID/20010909/eu-west-1/s3/aws4_request"), std::string::npos);
  EXPECT_FALSE(request.follows_redirects);
  const std::string first = header_of(request, "authorization");
  surroundings.clock += 1;
  ASSERT_TRUE(authorizer.authorize(request));
  EXPECT_EQ(header_of(request, "x-amz-date"), "20010909T014641Z");
  EXPECT_NE(header_of(request, "authorization"), first);
}

TEST_F(S3AuthorizerTest, SignsForItsServiceOnlyWhichMayBePlainHttp) {
  frame::S3Authorizer authorizer(surroundings, transport, "http://minio:9000", {});
  EXPECT_NE(sent(authorizer, "http://minio:9000/bucket/x"), "(none)");
  EXPECT_EQ(sent(authorizer, "http://minio:90001/bucket/x"), "(none)");
  EXPECT_EQ(sent(authorizer, "https://other/bucket/x"), "(none)");
}

TEST_F(S3AuthorizerTest, WithoutCredentialsTheReasonIsTold) {
  surroundings.variables.clear();
  frame::S3Authorizer authorizer(surroundings, transport, "https://h", {});
  HttpRequest request;
  request.url = "https://h/x";
  const auto refused = authorizer.authorize(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys, EACCES);
}

TEST_F(S3AuthorizerTest, RenewsForExpiredKeysOnly) {
  frame::S3Authorizer authorizer(surroundings, transport, "https://h", {});
  EXPECT_NE(sent(authorizer, "https://h/x").find("AKID/"), std::string::npos);
  surroundings.variables["AWS_ACCESS_KEY_ID"] = "NEWID";
  surroundings.clock += 60;
  EXPECT_FALSE(authorizer.may_renew(answer_of(403, "AccessDenied")));
  EXPECT_FALSE(authorizer.may_renew(answer_of(403)));
  EXPECT_FALSE(authorizer.may_renew(answer_of(404, "ExpiredToken")));
  EXPECT_FALSE(authorizer.may_renew(answer_of(503, "ExpiredToken")));
  EXPECT_NE(sent(authorizer, "https://h/x").find("AKID/"), std::string::npos);
  EXPECT_TRUE(authorizer.may_renew(answer_of(400, "ExpiredToken")));
  EXPECT_NE(sent(authorizer, "https://h/x").find("NEWID/"), std::string::npos);
  surroundings.clock += 60;
  EXPECT_TRUE(authorizer.may_renew(answer_of(403, "InvalidAccessKeyId")));
}

}  // namespace
}  // namespace cframefs::test::authorizers_tests
