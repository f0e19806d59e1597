#include "frame/remote/listings/bucket_listing.h"

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/fake_requests.h"

namespace cframefs::test {
namespace {

using codec::ErrorKind;
using frame::BucketListing;
using frame::HttpRequest;

std::string page_of(const std::vector<std::string>& keys, const std::vector<std::string>& prefixes,
                    const std::string& next = {}) {
  std::string text = "<ListBucketResult>";
  for (const std::string& key : keys) {
    text += "<Contents><Key>" + key + "</Key><LastModified>2024-01-01T00:00:00Z</LastModified><ETag>\"e\"</ETag>" +
            "<Size>5</Size></Contents>";
  }
  for (const std::string& prefix : prefixes)
    text += "<CommonPrefixes><Prefix>" + prefix + "</Prefix></CommonPrefixes>";
  if (!next.empty())
    text += "<IsTruncated>true</IsTruncated><NextContinuationToken>" + next + "</NextContinuationToken>";
  return text + "</ListBucketResult>";
}

class BucketListingTest : public testing::Test {
 protected:
  using Entries = std::vector<std::pair<std::string, bool>>;  // name, is a directory

  Entries entries(const std::string& directory) {
    const auto listed = listing_.list(directory);
    EXPECT_TRUE(listed) << codec::describe(listed.error());
    Entries found;
    if (listed) {
      for (const frame::ListedEntry& entry : *listed)
        found.emplace_back(entry.name, entry.is_directory);
    }
    return found;
  }
  codec::Error failure(const std::string& directory) {
    const auto listed = listing_.list(directory);
    EXPECT_FALSE(listed);
    return listed ? codec::Error{} : listed.error();
  }

  std::function<codec::Result<frame::HttpAnswer>(const HttpRequest&)> server_ = [](const HttpRequest&) {
    return answer_of(page_of({}, {}));
  };
  FakeRequests requests_{[this](const HttpRequest& request) { return server_(request); }};
  BucketListing listing_{requests_, "https://bucket.host/", "top/",
                         [](const std::string& key) { return "https://bucket.host/" + key; }};
};

TEST_F(BucketListingTest, ADirectoryHasItsObjectsAndDirectoriesInOrder) {
  server_ = [](const HttpRequest&) { return answer_of(page_of({"top/d/b", "top/d/z"}, {"top/d/a/", "top/d/y/"})); };
  EXPECT_EQ(entries("d"), (Entries{{"a", true}, {"b", false}, {"y", true}, {"z", false}}));
  EXPECT_EQ(requests_.requests()[0].url,
            "https://bucket.host/?delimiter=%2F&encoding-type=url&list-type=2&prefix=top%2Fd%2F");
  EXPECT_EQ(listing_.url_of("d/b"), "https://bucket.host/top/d/b");
  const auto listed = listing_.list("d");
  ASSERT_TRUE(listed && (*listed)[1].state);
  EXPECT_EQ((*listed)[1].state->length, 5U);
  EXPECT_EQ((*listed)[1].state->entity_tag, "\"e\"");
}

TEST_F(BucketListingTest, PagesAreReadToTheLast) {
  server_ = [](const HttpRequest& request) {
    if (request.url.find("continuation-token=2%2F&") != std::string::npos) return answer_of(page_of({"top/c"}, {}));
    if (request.url.find("continuation-token=1&") != std::string::npos) return answer_of(page_of({}, {}, "2/"));
    return answer_of(page_of({"top/a", "top/b"}, {}, "1"));
  };
  EXPECT_EQ(entries(""), (Entries{{"a", false}, {"b", false}, {"c", false}}));
  EXPECT_EQ(requests_.count(), 3U);
}

TEST_F(BucketListingTest, APrefixWithoutKeysIsNoDirectory) {
  EXPECT_EQ(failure("d").sys, ENOENT);
  EXPECT_EQ(entries(""), Entries()) << "the root may be empty";
  server_ = [](const HttpRequest&) { return answer_of(page_of({"top/d/"}, {})); };
  EXPECT_EQ(entries("d"), Entries()) << "an object stands for the empty directory";
}

TEST_F(BucketListingTest, NamesThatATreeCannotHoldAreLeftOut) {
  const std::string longest(255, 'n');
  server_ = [&](const HttpRequest&) {
    return answer_of(
        page_of({"top/.", "top/..", "top/" + longest, "top/" + longest + "n", "top/good"}, {"top//", "top/../"}));
  };
  EXPECT_EQ(entries(""), (Entries{{"good", false}, {longest, false}}));
  EXPECT_EQ(listing_.left_out(), 5U);
}

TEST_F(BucketListingTest, ANameOfObjectAndDirectoryIsTheDirectory) {
  server_ = [](const HttpRequest&) { return answer_of(page_of({"top/x", "top/x-y"}, {"top/x/"})); };
  EXPECT_EQ(entries(""), (Entries{{"x", true}, {"x-y", false}}));
  EXPECT_EQ(listing_.left_out(), 1U);
}

TEST_F(BucketListingTest, AServerWithoutDelimitersListsDirectories) {
  server_ = [](const HttpRequest&) { return answer_of(page_of({"top/a/1", "top/a/2/3", "top/b"}, {})); };
  EXPECT_EQ(entries(""), (Entries{{"a", true}, {"b", false}}));
}

TEST_F(BucketListingTest, WhatAListHasNoPlaceForIsDamage) {
  server_ = [](const HttpRequest&) { return answer_of(page_of({"elsewhere/x"}, {})); };
  EXPECT_EQ(failure("").kind, ErrorKind::corruption);
  server_ = [](const HttpRequest&) { return answer_of(page_of({}, {"elsewhere/"})); };
  EXPECT_EQ(failure("").kind, ErrorKind::corruption);
}

TEST_F(BucketListingTest, AServerThatNeverEndsIsStopped) {
  server_ = [](const HttpRequest&) { return answer_of(page_of({}, {}, "same")); };
  EXPECT_EQ(failure("").kind, ErrorKind::corruption);
  int number = 0;
  server_ = [&](const HttpRequest&) { return answer_of(page_of({}, {}, std::to_string(++number))); };
  EXPECT_EQ(failure("").kind, ErrorKind::corruption);
  std::vector<std::string> many(100'000);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = "top/" + std::to_string(i);
  server_ = [&](const HttpRequest&) { return answer_of(page_of(many, {}, std::to_string(++number))); };
  EXPECT_EQ(failure("").kind, ErrorKind::unsupported);
}

TEST_F(BucketListingTest, ErrorsPassThrough) {
  server_ = [](const HttpRequest&) { return codec::io_error(EACCES, "GET"); };
  EXPECT_EQ(failure("d").sys, EACCES);
  server_ = [](const HttpRequest&) { return answer_of("<html>"); };
  EXPECT_EQ(failure("d").kind, ErrorKind::unsupported);
}

}  // namespace
}  // namespace cframefs::test
