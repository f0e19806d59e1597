#include "frame/remote/listings/web_listing.h"

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/fake_requests.h"

namespace cframefs::test {
namespace {

using codec::ErrorKind;
using frame::HttpRequest;
using frame::WebListing;

TEST(WebListingTest, ADirectoryIsAskedByItsEncodedAddress) {
  FakeRequests requests([](const HttpRequest&) {
    return answer_of("<a href=\"../\">..</a><a href=b>b</a><a href=a/>a</a><a href=b>icon</a>");
  });
  WebListing listing(requests, "http://host/data/");
  const auto listed = listing.list("my files/\xc3\xbc");
  ASSERT_TRUE(listed) << codec::describe(listed.error());
  ASSERT_EQ(listed->size(), 2U);
  EXPECT_EQ((*listed)[0].name, "a");
  EXPECT_TRUE((*listed)[0].is_directory);
  EXPECT_EQ((*listed)[1].name, "b");
  EXPECT_FALSE((*listed)[1].state) << "the sizes of HTML are rounded";
  EXPECT_EQ(requests.requests()[0].url, "http://host/data/my%20files/%C3%BC/");
  EXPECT_EQ(listing.url_of("my files/a?b"), "http://host/data/my%20files/a%3Fb");
  ASSERT_TRUE(listing.list(""));
  EXPECT_EQ(requests.requests()[1].url, "http://host/data/");
}

TEST(WebListingTest, AQueryStaysWithEachAddress) {
  FakeRequests requests([](const HttpRequest&) { return answer_of("<a href=\"/d/s/x\">x</a>"); });
  WebListing listing(requests, "http://host/d/", "?token=1");
  const auto listed = listing.list("s");
  ASSERT_TRUE(listed) << codec::describe(listed.error());
  EXPECT_EQ(listed->size(), 1U);
  EXPECT_EQ(requests.requests()[0].url, "http://host/d/s/?token=1");
  EXPECT_EQ(listing.url_of("s/x"), "http://host/d/s/x?token=1");
}

TEST(WebListingTest, ADirectoryHidesAFileOfItsName) {
  FakeRequests requests([](const HttpRequest&) { return answer_of("<a href=x>x</a><a href=x/>x</a>"); });
  WebListing listing(requests, "http://host/");
  const auto listed = listing.list("");
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_TRUE((*listed)[0].is_directory);
  EXPECT_EQ(listing.left_out(), 1U);
}

TEST(WebListingTest, WhatIsNoListingIsUnsupported) {
  FakeRequests requests([](const HttpRequest& request) -> FakeRequests::Answer {
    if (request.url.ends_with("/missing/")) return codec::io_error(ENOENT, "GET");
    if (request.url.ends_with("/partial/")) {
      auto answer = answer_of("<a href=x>");
      answer.status = 206;
      return answer;
    }
    return answer_of("welcome");
  });
  WebListing listing(requests, "http://host/");
  const auto page = listing.list("");
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().kind, ErrorKind::unsupported);
  const auto missing = listing.list("missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().sys, ENOENT);
  const auto partial = listing.list("partial");
  ASSERT_FALSE(partial);
  EXPECT_EQ(partial.error().kind, ErrorKind::unsupported);
}

}  // namespace
}  // namespace cframefs::test
