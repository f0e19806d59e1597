#include "frame/remote/objects/object_state.h"

#include <ctime>

#include <gtest/gtest.h>

#include "frame/remote/objects/object_id.h"

namespace cframefs::frame::object_state_tests {
namespace {

HttpAnswer answer_with(std::vector<HttpHeader> headers) {
  HttpAnswer answer;
  answer.status = 206;
  answer.headers = std::move(headers);
  return answer;
}

std::string value_of(const HttpRequest& request, const std::string& name) {
  for (const HttpHeader& header : request.headers) {
    if (header.name == name) return header.value;
  }
  return {};
}

TEST(ObjectStateTest, KeepsAStrongTagWithItsQuotes) {
  EXPECT_EQ(state_of(answer_with({{"etag", "\"a1-b2\""}})).entity_tag, "\"a1-b2\"");
}

TEST(ObjectStateTest, UsesNoWeakOrMalformedTag) {
  const std::string with_line_end = std::string("\"a\r\nHost: x\"");
  for (const std::string& tag :
       {std::string("W/\"a\""), std::string("a"), std::string("\"a"), std::string("\""), std::string(R"("a"b")"),
        std::string("\"a b\""), with_line_end, '"' + std::string(5000, 'x') + '"'}) {
    EXPECT_EQ(state_of(answer_with({{"ETag", tag}})).entity_tag, "") << tag;
  }
}

TEST(ObjectStateTest, IsIdentifiedByATagOrADate) {
  EXPECT_TRUE(state_of(answer_with({{"ETag", "\"a\""}})).is_identified());
  EXPECT_TRUE(state_of(answer_with({{"Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"}})).is_identified());
  EXPECT_FALSE(state_of(answer_with({{"ETag", "W/\"a\""}, {"Last-Modified", "yesterday"}})).is_identified());
}

TEST(ObjectStateTest, TiesARequestByTheTagElseByTheDate) {
  HttpRequest by_tag;
  tie_to({"\"a\"", "", 784111777, 5}, by_tag);
  EXPECT_EQ(value_of(by_tag, "If-Match"), "\"a\"");
  EXPECT_EQ(by_tag.headers.size(), 1U);
  HttpRequest by_date;
  tie_to({"", "", 784111777, 5}, by_date);
  EXPECT_EQ(value_of(by_date, "If-Unmodified-Since"), "Sun, 06 Nov 1994 08:49:37 GMT");
  HttpRequest by_nothing;
  tie_to({"", "", 0, 5}, by_nothing);
  EXPECT_TRUE(by_nothing.headers.empty());
}

TEST(ObjectStateTest, TiesARequestByTheVersionEncodedInTheAddress) {
  HttpRequest plain{.method = "GET", .url = "https://h/x", .headers = {}, .body = {}};
  tie_to({"\"a\"", "v/1+&", 0, 5}, plain);
  EXPECT_EQ(plain.url, "https://h/x?versionId=v%2F1%2B%26");
  EXPECT_TRUE(plain.headers.empty());
  HttpRequest with_query{.method = "GET", .url = "https://h/x?a=b", .headers = {}, .body = {}};
  tie_to({"", "v", 0, 5}, with_query);
  EXPECT_EQ(with_query.url, "https://h/x?a=b&versionId=v");
}

TEST(ObjectStateTest, TakesTheVersionNullForNone) {
  EXPECT_EQ(state_of(answer_with({{"x-amz-version-id", "null"}})).version_id, "");
  EXPECT_EQ(state_of(answer_with({{"x-amz-version-id", "3HL4"}})).version_id, "3HL4");
}

TEST(ObjectStateTest, GivesOneFileVersionForAListedAndAnOpenedState) {
  const ObjectState listed{"\"a\"", "", 784111777, 5};
  const ObjectState opened{"\"a\"", "v1", 784111778, 5};
  EXPECT_EQ(version_of("https://h/x", listed), version_of("https://h/x", opened));
  EXPECT_TRUE(version_of("https://h/x", listed).still_matches(version_of("https://h/x", opened)));
  EXPECT_EQ(state_text("https://h/x", listed), state_text("https://h/x", opened));
}

TEST(ObjectStateTest, GivesOtherFileVersionsForOtherStatesAndObjects) {
  const FileVersion version = version_of("https://h/x", {"\"a\"", "", 0, 5});
  EXPECT_FALSE(version == version_of("https://h/x", {"\"b\"", "", 0, 5}));
  EXPECT_FALSE(version == version_of("https://h/x", {"\"a\"", "", 0, 6}));
  EXPECT_FALSE(version == version_of("https://h/y", {"\"a\"", "", 0, 5}));
  EXPECT_FALSE(version_of("u", {"", "", 7, 5}) == version_of("u", {"", "", 8, 5}));
}

TEST(ObjectStateTest, ARecentDateIdentifiesNoStateButATagDoes) {
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  EXPECT_TRUE(version_of("u", {"", "", now, 5}).racy);
  EXPECT_FALSE(version_of("u", {"", "", now - 60, 5}).racy);
  EXPECT_FALSE(version_of("u", {"\"a\"", "", now, 5}).racy);
}

TEST(ObjectStateTest, MayHideChangesOnlyIfNothingIdentifiesTheState) {
  EXPECT_FALSE(version_of("u", {"\"a\"", "", 0, 5}).may_hide_changes());
  EXPECT_FALSE(version_of("u", {"", "", 7, 5}).may_hide_changes());
  EXPECT_TRUE(version_of("u", {"", "", 0, 5}).may_hide_changes());
}

}  // namespace
}  // namespace cframefs::frame::object_state_tests
