#include "frame/remote/access/credentials.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/fake_surroundings.h"
#include "tests/support/scripted_transport.h"

namespace cframefs::test {
namespace {

using codec::ErrorKind;
using frame::CredentialChain;
using frame::CredentialChoice;

constexpr const char* kCredentialsFile = "/home/user/.aws/credentials";
constexpr const char* kConfigFile = "/home/user/.aws/config";
constexpr const char* kSts = "https://sts.us-east-1.amazonaws.com/";
constexpr const char* kContainer = "http://169.254.170.2/v2/credentials";
constexpr const char* kTokenUrl = "http://169.254.169.254/latest/api/token";
constexpr const char* kRolesUrl = "http://169.254.169.254/latest/meta-data/iam/security-credentials/";

std::string json_credentials(const std::string& key_id, const std::string& expires) {
  return R"({"Version": 1, "Code": "Success", "AccessKeyId": ")" + key_id +
         R"(", "SecretAccessKey": "hush", "Token": "session", "Expiration": ")" + expires + "\"}";
}

std::string sts_credentials(const std::string& key_id) {
  return "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
         "<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>" +
         key_id +
         "</AccessKeyId><SecretAccessKey>hush</SecretAccessKey><SessionToken>a&amp;b</SessionToken>"
         "<Expiration>2001-09-09T02:46:40Z</Expiration></Credentials><AssumedRoleUser><Arn>arn</Arn></AssumedRoleUser>"
         "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
}

struct CredentialTest : ::testing::Test {
  /// Fetches by a chain of its own.
  frame::Result<frame::Credentials> get(const CredentialChoice& choice = {}) {
    return CredentialChain(surroundings, transport, choice).get();
  }
  std::string key_id(const CredentialChoice& choice = {}) {
    const auto found = get(choice);
    if (found) return found->key_id;
    EXPECT_EQ(found.error().reason.find("hush"), std::string::npos) << found.error().reason;
    return "(" + found.error().reason + ")";
  }
  void expect_refused(const std::string& because, const CredentialChoice& choice = {}) {
    const std::string found = key_id(choice);
    EXPECT_EQ(found.front(), '(') << found;
    EXPECT_NE(found.find(because), std::string::npos) << found;
  }
  void set_environment() {
    surroundings.variables["AWS_ACCESS_KEY_ID"] = "ENVIRONMENT";
    surroundings.variables["AWS_SECRET_ACCESS_KEY"] = "hush";
  }
  void set_web_identity() {
    surroundings.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/token";
    surroundings.variables["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/r";
    surroundings.files["/token"] = "jwt.hush+1\n";
    transport.on("POST", kSts, 200, sts_credentials("STS"));
  }
  void set_profile() {
    surroundings.files[kCredentialsFile] =
        "[default]\naws_access_key_id = PROFILE\naws_secret_access_key = hush\n"
        "[other]\naws_access_key_id = OTHER\naws_secret_access_key = hush\naws_session_token = session\n";
  }
  void set_container(const std::string& expires = "2001-09-09T02:46:40Z") {
    surroundings.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/credentials";
    transport.on("GET", kContainer, 200, json_credentials("CONTAINER", expires));
  }
  void set_instance() {
    transport.on("PUT", kTokenUrl, 200, "instance-token");
    transport.on("GET", kRolesUrl, 200, "my-role+1\n");
    transport.on("GET", std::string(kRolesUrl) + "my-role+1", 200,
                 json_credentials("INSTANCE", "2001-09-09T02:46:40Z"));
  }

  FakeSurroundings surroundings;
  ScriptedTransport transport;
};

TEST_F(CredentialTest, SourcesAreTriedInTheOrderOfTheAwsTools) {
  set_environment();
  set_web_identity();
  set_profile();
  set_container();
  set_instance();
  EXPECT_EQ(key_id(), "ENVIRONMENT");
  surroundings.variables.erase("AWS_ACCESS_KEY_ID");
  EXPECT_EQ(key_id(), "STS");
  surroundings.variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  EXPECT_EQ(key_id(), "PROFILE");
  surroundings.files.erase(kCredentialsFile);
  EXPECT_EQ(key_id(), "CONTAINER");
  surroundings.variables.erase("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  EXPECT_EQ(key_id(), "INSTANCE");
  surroundings.variables["AWS_EC2_METADATA_DISABLED"] = "TRUE";
  expect_refused("AWS_EC2_METADATA_DISABLED");
}

TEST_F(CredentialTest, WithoutAnyTheErrorSaysWhatEachSourceLacks) {
  const auto found = get();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().sys, EACCES);
  for (const char* part : {"AWS_ACCESS_KEY_ID", "profile \"default\"", "container", "instance metadata"})
    EXPECT_NE(found.error().reason.find(part), std::string::npos) << found.error().reason;
}

TEST_F(CredentialTest, TheEnvironmentMayHaveASessionTokenThatExpires) {
  set_environment();
  surroundings.variables["AWS_SESSION_TOKEN"] = "session";
  EXPECT_EQ(get()->session_token, "session");
  EXPECT_FALSE(get()->expires);
  surroundings.variables["AWS_CREDENTIAL_EXPIRATION"] = "2001-09-09T02:46:40Z";
  EXPECT_EQ(get()->expires, 1'000'003'600);
  surroundings.variables["AWS_CREDENTIAL_EXPIRATION"] = "2001-09-09T01:46:40Z";
  expect_refused("expired");
}

TEST_F(CredentialTest, HalfOfAKeyIsAnError) {
  surroundings.variables["AWS_ACCESS_KEY_ID"] = "X";
  expect_refused("AWS_SECRET_ACCESS_KEY");
  surroundings.variables.clear();
  surroundings.files[kCredentialsFile] = "[default]\naws_access_key_id = X\n";
  expect_refused("no aws_secret_access_key");
  surroundings.files[kCredentialsFile] = "[default]\naws_secret_access_key = hush\n";
  expect_refused("no aws_access_key_id");
  surroundings.files[kCredentialsFile].clear();
  surroundings.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/token";
  expect_refused("AWS_ROLE_ARN");
}

TEST_F(CredentialTest, KeysThatCannotStandInAHeaderAreRefused) {
  surroundings.variables["AWS_ACCESS_KEY_ID"] = "X\r\nHost: evil";
  surroundings.variables["AWS_SECRET_ACCESS_KEY"] = "hush";
  expect_refused("visible");
  surroundings.variables["AWS_ACCESS_KEY_ID"] = "X";
  surroundings.variables["AWS_SECRET_ACCESS_KEY"] = "hush\x01";
  expect_refused("visible");
  surroundings.variables["AWS_SECRET_ACCESS_KEY"] = "hush";
  surroundings.variables["AWS_SESSION_TOKEN"] = std::string(16385, 'a');
  expect_refused("16385");
}

TEST_F(CredentialTest, ANamedProfileGoesBeforeTheEnvironment) {
  set_environment();
  set_profile();
  EXPECT_EQ(key_id({"other"}), "OTHER");
  EXPECT_EQ(get({"other"})->session_token, "session");
  surroundings.variables.clear();
  surroundings.variables["AWS_PROFILE"] = "other";
  EXPECT_EQ(key_id(), "OTHER");
}

TEST_F(CredentialTest, ANamedProfileThatIsMissingIsAnErrorThatNamesIt) {
  set_profile();
  set_instance();
  const auto found = get({"wrok"});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::invalid);
  EXPECT_NE(found.error().reason.find("\"wrok\""), std::string::npos);
  EXPECT_NE(found.error().reason.find(kCredentialsFile), std::string::npos);
  surroundings.variables["AWS_PROFILE"] = "wrok";
  expect_refused("\"wrok\"");
}

TEST_F(CredentialTest, OtherFilesCanBeNamed) {
  surroundings.variables = {{"AWS_SHARED_CREDENTIALS_FILE", "/keys"}, {"AWS_CONFIG_FILE", "~/settings"}};
  surroundings.files["/keys"] = "[default]\naws_access_key_id = X\naws_secret_access_key = hush\n";
  surroundings.files["/home/user/settings"] = "[profile p]\naws_access_key_id = P\naws_secret_access_key = hush\n";
  EXPECT_EQ(key_id(), "X");
  EXPECT_EQ(key_id({"p"}), "P");
}

TEST_F(CredentialTest, ADamagedFileIsAnErrorWithItsNameAndLine) {
  surroundings.files[kConfigFile] = "[default]\nregion hush\n";
  const auto found = get();
  ASSERT_FALSE(found);
  EXPECT_EQ(codec::describe(found.error()).find("hush"), std::string::npos);
  EXPECT_NE(codec::describe(found.error()).find(std::string(kConfigFile) + ": line 2"), std::string::npos);
}

TEST_F(CredentialTest, AnUnreadableFileIsPassedOverAndNamed) {
  surroundings.unreadable_files.insert(kCredentialsFile);
  expect_refused("open /home/user/.aws/credentials: Permission denied");
  set_instance();
  EXPECT_EQ(key_id(), "INSTANCE");
}

TEST_F(CredentialTest, AProgramOfTheProfilePrintsCredentials) {
  surroundings.files[kConfigFile] =
      "[profile p]\ncredential_process = /opt/my\\ tool --for \"a 'b' \\\"c\\\"\" 'd \\e' \"\"\n";
  std::vector<std::string> called;
  surroundings.programs["/opt/my tool"] = [&called](const std::vector<std::string>& command) {
    called = command;
    return codec::Result<std::string>(json_credentials("PROGRAM", "2001-09-09T02:46:40Z"));
  };
  const auto found = get({"p"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key_id, "PROGRAM");
  EXPECT_EQ(found->expires, 1'000'003'600);
  EXPECT_EQ(called, (std::vector<std::string>{"/opt/my tool", "--for", "a 'b' \"c\"", "d \\e", ""}));
}

TEST_F(CredentialTest, AProgramThatFailsOrPrintsNonsenseIsAnError) {
  surroundings.files[kConfigFile] = "[default]\ncredential_process = tool\n";
  set_instance();  // not tried: it is another identity
  expect_refused("run tool");
  for (const char* output : {"", "hush", "[]", R"({"AccessKeyId": "hush"})", R"({"AccessKeyId": 1})",
                             R"({"AccessKeyId": "a", "SecretAccessKey": "hush", "Expiration": "soon"})",
                             R"({"AccessKeyId": "a", "SecretAccessKey": "hush", "Expiration": 7})"}) {
    surroundings.programs["tool"] = [output](const auto&) { return codec::Result<std::string>(output); };
    expect_refused("credential_process");
  }
  surroundings.files[kConfigFile] = "[default]\ncredential_process = tool \"hush\n";
  expect_refused("quotation mark");
}

TEST_F(CredentialTest, WaysToSignInThatAreNotSupportedNameTheOneThatIs) {
  surroundings.files[kConfigFile] =
      "[profile sso]\nsso_session = s\n[profile role]\nrole_arn = r\nsource_profile = sso\n"
      "[profile both]\nsso_session = s\naws_access_key_id = BOTH\naws_secret_access_key = hush\n";
  expect_refused("export-credentials --profile sso", {"sso"});
  expect_refused("export-credentials --profile role", {"role"});
  EXPECT_EQ(key_id({"both"}), "BOTH");
}

TEST_F(CredentialTest, AWebIdentityIsSentInTheBodyOnly) {
  set_web_identity();
  surroundings.variables["AWS_ROLE_SESSION_NAME"] = "me@host";
  const auto found = get();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->session_token, "a&b");
  EXPECT_EQ(found->expires, 1'000'003'600);
  const auto requests = transport.requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].url, kSts);
  EXPECT_FALSE(requests[0].follows_redirects);
  EXPECT_EQ(requests[0].body,
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr"
            "&RoleSessionName=me%40host&WebIdentityToken=jwt.hush%2B1");
}

TEST_F(CredentialTest, StsIsThatOfTheRegionOrTheConfiguredEndpoint) {
  set_web_identity();
  transport.on("POST", "https://sts.cn-north-1.amazonaws.com.cn/", 200, sts_credentials("CHINA"));
  transport.on("POST", "http://127.0.0.1:9/", 200, sts_credentials("LOCAL"));
  EXPECT_EQ(key_id({"", "cn-north-1"}), "CHINA");
  surroundings.variables["AWS_ENDPOINT_URL_STS"] = "http://127.0.0.1:9";
  EXPECT_EQ(key_id(), "LOCAL");
  surroundings.variables["AWS_ENDPOINT_URL_STS"] = "http://sts.example.org";
  expect_refused("plain http");
}

TEST_F(CredentialTest, ARefusalOfStsIsAnErrorWithItsCode) {
  set_web_identity();
  surroundings.variables["AWS_ENDPOINT_URL_STS"] = "https://sts.test";
  transport.on(
      "POST", "https://sts.test/", 400,
      "<ErrorResponse><Error><Code>ExpiredTokenException</Code><Message>hush</Message></Error></ErrorResponse>");
  set_instance();  // not tried: it is another identity
  const auto found = get();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().sys, EACCES);
  expect_refused("ExpiredTokenException");
}

TEST_F(CredentialTest, AProfileMayNameAWebIdentity) {
  set_web_identity();
  surroundings.variables.clear();
  surroundings.files[kConfigFile] = "[default]\nrole_arn = arn\nweb_identity_token_file = /token\n";
  EXPECT_EQ(key_id(), "STS");
  surroundings.files.erase("/token");
  expect_refused("/token");
}

TEST_F(CredentialTest, ABusyServiceIsAskedOnceMore) {
  surroundings.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/credentials";
  transport.on("GET", kContainer, 503);
  transport.on("GET", kContainer, 200, json_credentials("CONTAINER", "2001-09-09T02:46:40Z"));
  EXPECT_EQ(key_id(), "CONTAINER");
  EXPECT_EQ(transport.requests().size(), 2U);
}

TEST_F(CredentialTest, TheContainerEndpointGetsItsToken) {
  surroundings.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://localhost:1/c?x=1";
  surroundings.variables["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "Basic direct";
  transport.on("GET", "http://localhost:1/c?x=1", 200, json_credentials("CONTAINER", "2001-09-09T02:46:40Z"));
  EXPECT_EQ(key_id(), "CONTAINER");
  surroundings.variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = "/token";
  surroundings.files["/token"] = "of-file\n";
  EXPECT_EQ(key_id(), "CONTAINER");
  const auto requests = transport.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].headers.back().value, "Basic direct");
  EXPECT_EQ(requests[1].headers.back().value, "of-file");
  surroundings.files["/token"] = "hush\r\nHost: evil";
  expect_refused("/token");
  surroundings.variables.erase("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  surroundings.variables["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "hush\r\nHost: evil";
  expect_refused("control character");
  EXPECT_EQ(transport.requests().size(), 2U);
}

TEST_F(CredentialTest, TheContainerEndpointIsHttpsOrNear) {
  const auto answers = [this](const std::string& url) {
    surroundings.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = url;
    transport.on("GET", url, 200, json_credentials("CONTAINER", "2001-09-09T02:46:40Z"));
    return key_id() == "CONTAINER";
  };
  for (const char* url : {"https://example.org/c", "http://127.0.0.1/c", "http://[::1]/c", "http://169.254.170.23/c",
                          "http://[fe80::1]/c", "http://[fd00:ec2::23]/c"})
    EXPECT_TRUE(answers(url)) << url;
  for (const char* url : {"http://example.org/c", "http://10.0.0.1/c", "http://169.253.0.1/c", "http://[fd00::1]/c",
                          "http://localhost.example.org/c", "http://127.0.0.1@example.org/c", "s3://bucket/c", "x"}) {
    const std::size_t before = transport.requests().size();
    EXPECT_FALSE(answers(url)) << url;
    EXPECT_EQ(transport.requests().size(), before) << url;
  }
  surroundings.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "@example.org/";
  expect_refused("'/'");
}

TEST_F(CredentialTest, AContainerEndpointThatFailsIsAnError) {
  surroundings.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/credentials";
  set_instance();  // not tried: it is another identity
  expect_refused("connect");
  transport.on("GET", kContainer, 403, "hush");
  expect_refused("status 403");
}

TEST_F(CredentialTest, TheInstanceIsAskedByTheSecondVersionOfItsProtocol) {
  set_instance();
  EXPECT_EQ(get()->session_token, "session");
  const auto requests = transport.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].method, "PUT");
  EXPECT_EQ(requests[0].headers.at(0).name, "X-aws-ec2-metadata-token-ttl-seconds");
  EXPECT_EQ(requests[1].headers.at(0).name, "X-aws-ec2-metadata-token");
  EXPECT_EQ(requests[1].headers.at(0).value, "instance-token");
  EXPECT_EQ(requests[2].url, std::string(kRolesUrl) + "my-role+1");
}

TEST_F(CredentialTest, TheInstanceEndpointCanBeNamed) {
  surroundings.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"] = "IPv6";
  transport.on("PUT", "http://[fd00:ec2::254]/latest/api/token", 403);
  expect_refused("status 403");
  surroundings.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://127.0.0.1:7/";
  transport.on("PUT", "http://127.0.0.1:7/latest/api/token", 405);
  expect_refused("status 405");
  surroundings.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "127.0.0.1:7";
  expect_refused("AWS_EC2_METADATA_SERVICE_ENDPOINT");
}

TEST_F(CredentialTest, HostileAnswersOfTheInstanceAreRefused) {
  transport.on("PUT", kTokenUrl, 200, "hush\r\nHost: evil");
  transport.on("PUT", kTokenUrl, 200, "token");
  expect_refused("token");
  for (const char* role : {"", "../../user-data", "a?b", "a b", "\x01"}) {
    ScriptedTransport other;
    other.on("PUT", kTokenUrl, 200, "token");
    other.on("GET", kRolesUrl, 200, role);
    EXPECT_FALSE(CredentialChain(surroundings, other, {}).get());
    EXPECT_EQ(other.requests().size(), 2U) << role;
  }
}

TEST_F(CredentialTest, CredentialsAreKept) {
  set_container();
  CredentialChain chain(surroundings, transport, {});
  EXPECT_TRUE(chain.get());
  surroundings.clock += 3299;  // 301 s left
  EXPECT_TRUE(chain.get());
  EXPECT_EQ(transport.requests().size(), 1U);
}

TEST_F(CredentialTest, CredentialsAreRenewedFiveMinutesBeforeTheyExpire) {
  set_container();
  transport.on("GET", kContainer, 200, json_credentials("RENEWED", "2001-09-09T03:46:40Z"));
  CredentialChain chain(surroundings, transport, {});
  EXPECT_EQ(chain.get()->key_id, "CONTAINER");
  surroundings.clock += 3300;
  EXPECT_EQ(chain.get()->key_id, "RENEWED");
  EXPECT_EQ(chain.get()->key_id, "RENEWED");
  EXPECT_EQ(transport.requests().size(), 2U);
}

TEST_F(CredentialTest, OldCredentialsAreUsedUntilTheyExpireIfRenewalFails) {
  set_container();
  transport.fail("GET", kContainer, EHOSTUNREACH);
  CredentialChain chain(surroundings, transport, {});
  EXPECT_TRUE(chain.get());
  surroundings.clock += 3300;
  EXPECT_EQ(chain.get()->key_id, "CONTAINER");
  EXPECT_EQ(chain.get()->key_id, "CONTAINER");
  EXPECT_EQ(transport.requests().size(), 2U);  // not tried by each request
  surroundings.clock += 60;
  EXPECT_EQ(chain.get()->key_id, "CONTAINER");
  EXPECT_EQ(transport.requests().size(), 3U);
  surroundings.clock += 240;
  const auto expired = chain.get();
  ASSERT_FALSE(expired);
  EXPECT_EQ(expired.error().sys, EHOSTUNREACH);
}

TEST_F(CredentialTest, ShortLivedCredentialsAreNotRenewedByEachRequest) {
  set_container("2001-09-09T01:48:20Z");  // 100 s
  CredentialChain chain(surroundings, transport, {});
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(chain.get());
  EXPECT_EQ(transport.requests().size(), 1U);
  surroundings.clock += 50;
  EXPECT_TRUE(chain.get());
  EXPECT_EQ(transport.requests().size(), 2U);
}

TEST_F(CredentialTest, AFailureIsNotRepeatedByEachRequestAndHeals) {
  surroundings.variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/credentials";
  transport.fail("GET", kContainer, ETIMEDOUT);
  transport.on("GET", kContainer, 200, json_credentials("CONTAINER", "2001-09-09T02:46:40Z"));
  CredentialChain chain(surroundings, transport, {});
  EXPECT_FALSE(chain.get());
  EXPECT_FALSE(chain.get());
  EXPECT_EQ(transport.requests().size(), 1U);
  surroundings.clock += 5;
  EXPECT_TRUE(chain.get());
}

TEST_F(CredentialTest, RefusedCredentialsAreReadAgain) {
  set_profile();
  CredentialChain chain(surroundings, transport, {});
  EXPECT_EQ(chain.get()->key_id, "PROFILE");
  surroundings.files[kCredentialsFile] = "[default]\naws_access_key_id = NEW\naws_secret_access_key = hush\n";
  EXPECT_EQ(chain.get()->key_id, "PROFILE");
  surroundings.clock += 10;
  chain.drop_refused();
  EXPECT_EQ(chain.get()->key_id, "NEW");
}

TEST_F(CredentialTest, ManyRefusalsFetchOnce) {
  set_container();
  CredentialChain chain(surroundings, transport, {});
  EXPECT_TRUE(chain.get());
  surroundings.clock += 60;
  for (int i = 0; i < 100; ++i) {
    chain.drop_refused();
    EXPECT_TRUE(chain.get());
  }
  EXPECT_EQ(transport.requests().size(), 2U);
}

TEST_F(CredentialTest, ThreadsWithoutCredentialsWaitForOneFetch) {
  set_container();
  transport.hold();
  CredentialChain chain(surroundings, transport, {});
  std::atomic<int> found{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { found += chain.get() ? 1 : 0; });
  transport.wait_until_held();
  EXPECT_EQ(found, 0);
  transport.release();
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(found, 8);
  EXPECT_EQ(transport.requests().size(), 1U);
}

TEST_F(CredentialTest, ThreadsWithValidCredentialsDoNotWaitForARenewal) {
  set_container();
  CredentialChain chain(surroundings, transport, {});
  EXPECT_TRUE(chain.get());
  surroundings.clock += 3400;
  transport.hold();
  std::thread renewing([&chain] { EXPECT_TRUE(chain.get()); });
  transport.wait_until_held();
  EXPECT_TRUE(chain.get());
  transport.release();
  renewing.join();
  EXPECT_EQ(transport.requests().size(), 2U);
}

TEST_F(CredentialTest, AStoppedTransportEndsTheSearch) {
  transport.stop();
  const auto found = get();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().sys, ECANCELED);
}

}  // namespace
}  // namespace cframefs::test
