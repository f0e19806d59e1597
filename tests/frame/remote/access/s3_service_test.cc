#include "frame/remote/access/s3_service.h"

#include <gtest/gtest.h>

#include "tests/support/fake_surroundings.h"

namespace cframefs::test {
namespace {

using frame::S3Choice;
using frame::S3ListRequest;
using frame::S3Service;

std::string object_url(const std::string& bucket, const std::string& region, const std::string& endpoint,
                       const std::string& key) {
  FakeSurroundings surroundings;
  S3Choice choice;
  choice.region = region;
  choice.endpoint = endpoint;
  const auto service = S3Service::find(bucket, choice, surroundings);
  return service ? service->object_url(key) : service.error().reason;
}

TEST(S3Service, TheBucketIsAPartOfTheHostNameAtAws) {
  EXPECT_EQ(object_url("bucket", "eu-central-1", "", "a/b.b2frame"),
            "https://bucket.s3.eu-central-1.amazonaws.com/a/b.b2frame");
  EXPECT_EQ(object_url("bucket", "", "", "x"), "https://bucket.s3.us-east-1.amazonaws.com/x");
}

TEST(S3Service, ChinaHasADomainOfItsOwn) {
  EXPECT_EQ(object_url("bucket", "cn-north-1", "", "x"), "https://bucket.s3.cn-north-1.amazonaws.com.cn/x");
}

TEST(S3Service, ABucketWithADotIsInThePathOverTlsOnly) {
  EXPECT_EQ(object_url("my.bucket", "us-west-2", "", "x"), "https://s3.us-west-2.amazonaws.com/my.bucket/x");
  EXPECT_EQ(object_url("my.bucket", "us-west-2", "http://store.example.org", "x"),
            "http://my.bucket.store.example.org/x");
}

TEST(S3Service, TheBucketIsInThePathWhereTheHostCannotHaveIt) {
  EXPECT_EQ(object_url("bucket", "", "http://localhost:9000", "x"), "http://localhost:9000/bucket/x");
  EXPECT_EQ(object_url("bucket", "", "http://127.0.0.1:9000/", "x"), "http://127.0.0.1:9000/bucket/x");
  EXPECT_EQ(object_url("bucket", "", "https://[::1]:9000", "x"), "https://[::1]:9000/bucket/x");
  EXPECT_EQ(object_url("bucket", "", "https://store.example.org:8443", "x"), "https://bucket.store.example.org:8443/x");
}

TEST(S3Service, AnEndpointMayHaveAPath) {
  EXPECT_EQ(object_url("bucket", "", "http://localhost/s3", "x"), "http://localhost/s3/bucket/x");
  EXPECT_EQ(object_url("bucket", "", "https://store.example.org/s3/", "x"), "https://bucket.store.example.org/s3/x");
}

TEST(S3Service, KeysAreEncodedWithTheirSlashesKept) {
  EXPECT_EQ(object_url("bucket", "", "http://localhost", "a b/\xc3\xbc+100%?#.b2frame"),
            "http://localhost/bucket/a%20b/%C3%BC%2B100%25%3F%23.b2frame");
  EXPECT_EQ(object_url("bucket", "", "http://localhost", "/x"), "http://localhost/bucket//x");
}

TEST(S3Service, AListRequestHasItsParametersEncoded) {
  const auto service = S3Service::at("bucket", "us-east-1", std::nullopt);
  ASSERT_TRUE(service);
  S3ListRequest request;
  EXPECT_EQ(service->list_url(request), "https://bucket.s3.us-east-1.amazonaws.com/?list-type=2&encoding-type=url");
  request.prefix = "a b/";
  request.delimiter = "/";
  request.continuation_token = "1+/==";
  request.start_after = "a b/c";
  request.most_keys = 100;
  request.encodes_keys = false;
  EXPECT_EQ(service->list_url(request),
            "https://bucket.s3.us-east-1.amazonaws.com/?list-type=2&continuation-token=1%2B%2F%3D%3D&delimiter=%2F&"
            "max-keys=100&prefix=a%20b%2F&start-after=a%20b%2Fc");
}

TEST(S3Service, ListsInThePathOfItsBucket) {
  FakeSurroundings surroundings;
  S3Choice choice;
  choice.endpoint = "http://localhost:1";
  const auto service = S3Service::find("bucket", choice, surroundings);
  ASSERT_TRUE(service);
  EXPECT_EQ(service->list_url({}), "http://localhost:1/bucket/?list-type=2&encoding-type=url");
  EXPECT_EQ(service->origin(), "http://localhost:1");
}

/// The origin and region that the surroundings give.
std::string found_in(const FakeSurroundings& surroundings, const S3Choice& choice = {}) {
  const auto service = S3Service::find("bucket", choice, surroundings);
  return service ? service->origin() + " " + service->region() : service.error().reason;
}

TEST(S3Service, EndpointAndRegionAreSoughtInTheOrderOfTheAwsTools) {
  FakeSurroundings surroundings;
  surroundings.files["/home/user/.aws/config"] =
      "[default]\nregion = eu-west-1\nendpoint_url = http://profile.example.org\n"
      "[profile other]\nregion = eu-west-2\n";
  EXPECT_EQ(found_in(surroundings), "http://bucket.profile.example.org eu-west-1");
  surroundings.variables["AWS_DEFAULT_REGION"] = "eu-west-3";
  surroundings.variables["AWS_ENDPOINT_URL"] = "http://all.example.org";
  EXPECT_EQ(found_in(surroundings), "http://bucket.all.example.org eu-west-3");
  surroundings.variables["AWS_REGION"] = "eu-north-1";
  surroundings.variables["AWS_ENDPOINT_URL_S3"] = "http://s3.example.org";
  EXPECT_EQ(found_in(surroundings), "http://bucket.s3.example.org eu-north-1");
  S3Choice choice;
  choice.endpoint = "http://asked.example.org";
  choice.region = "eu-south-1";
  EXPECT_EQ(found_in(surroundings, choice), "http://bucket.asked.example.org eu-south-1");
}

TEST(S3Service, EmptyVariablesAreNotSet) {
  FakeSurroundings surroundings;
  surroundings.variables = {{"AWS_REGION", ""}, {"AWS_DEFAULT_REGION", ""}, {"AWS_ENDPOINT_URL", ""}};
  EXPECT_EQ(found_in(surroundings), "https://bucket.s3.us-east-1.amazonaws.com us-east-1");
}

TEST(S3Service, ConfiguredEndpointsCanBeIgnored) {
  FakeSurroundings surroundings;
  surroundings.files["/home/user/.aws/config"] = "[default]\nendpoint_url = http://profile.example.org\n";
  surroundings.variables = {{"AWS_ENDPOINT_URL", "http://all.example.org"},
                            {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "True"}};
  EXPECT_EQ(found_in(surroundings), "https://bucket.s3.us-east-1.amazonaws.com us-east-1");
}

TEST(S3Service, TheNamedProfileGivesRegionAndEndpoint) {
  FakeSurroundings surroundings;
  surroundings.files["/home/user/.aws/config"] = "[default]\nregion = eu-west-1\n[profile other]\nregion = eu-west-2\n";
  surroundings.variables["AWS_PROFILE"] = "other";
  EXPECT_NE(found_in(surroundings).find(" eu-west-2"), std::string::npos);
  S3Choice choice;
  choice.profile = "missing";
  EXPECT_NE(found_in(surroundings, choice).find("\"missing\""), std::string::npos);
}

TEST(S3Service, AnUnreadableFileMattersOnlyIfAProfileIsNamed) {
  FakeSurroundings surroundings;
  surroundings.unreadable_files = {"/home/user/.aws/config", "/home/user/.aws/credentials"};
  EXPECT_EQ(found_in(surroundings), "https://bucket.s3.us-east-1.amazonaws.com us-east-1");
  S3Choice choice;
  choice.profile = "x";
  const auto refused = S3Service::find("bucket", choice, surroundings);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys, EACCES);
}

TEST(S3Service, RefusesWhatIsNoEndpointOrRegion) {
  for (const char* endpoint :
       {"store.example.org", "s3://bucket", "https://user:sesame@host", "https://host/?sesame"}) {
    const std::string reason = object_url("bucket", "", endpoint, "x");
    EXPECT_NE(reason.find("the endpoint"), std::string::npos) << reason;
    EXPECT_EQ(reason.find("sesame"), std::string::npos) << reason;
  }
  for (const char* region : {"us east", "us/east", "a.example.org", "-a", "us-east-1\n"})
    EXPECT_NE(object_url("bucket", region, "", "x").find("region"), std::string::npos) << region;
  EXPECT_NE(object_url("bucket", std::string(64, 'a'), "", "x").find("1 to 63"), std::string::npos);
  EXPECT_NE(object_url("Bucket", "", "", "x").find("lower-case"), std::string::npos);
}

}  // namespace
}  // namespace cframefs::test
