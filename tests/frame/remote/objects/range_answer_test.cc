#include "frame/remote/objects/range_answer.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace cframefs::frame::range_answer_tests {
namespace {

using Form = CheckedRange::Form;

constexpr const char* kTag = "\"t1\"";
const ObjectState kState{kTag, "", 784111777, 1000};

HttpAnswer part(const std::string& content_range, std::size_t body, std::vector<HttpHeader> more = {}) {
  HttpAnswer answer;
  answer.status = 206;
  answer.headers = {{"Content-Range", content_range}, {"ETag", kTag}};
  answer.headers.insert(answer.headers.end(), more.begin(), more.end());
  for (std::size_t i = 0; i < body; ++i)
    answer.body.push_back(static_cast<std::uint8_t>(i));
  return answer;
}

HttpAnswer whole(std::size_t body) {
  HttpAnswer answer = part("", body);
  answer.status = 200;
  answer.headers = {{"ETag", kTag}, {"Content-Length", std::to_string(body)}};
  return answer;
}

codec::ErrorKind kind_of(const HttpAnswer& answer, const AskedRange& asked, const ObjectState* expected = &kState) {
  const auto checked = check_range_answer(answer, asked, expected);
  EXPECT_FALSE(checked) << "accepted";
  return checked ? codec::ErrorKind::invalid : checked.error().kind;
}

const AskedRange kAsked = AskedRange::of({100, 200});

TEST(RangeAnswer, AcceptsExactlyTheAskedRange) {
  const auto answer = part("bytes 100-199/1000", 100, {{"Content-Length", "100"}});
  const auto checked = check_range_answer(answer, kAsked, &kState);
  ASSERT_TRUE(checked) << checked.error().reason;
  EXPECT_EQ(checked->form, Form::as_asked);
  EXPECT_EQ(checked->range, (ByteRange{100, 200}));
  EXPECT_EQ(checked->bytes.data(), answer.body.data());
  EXPECT_EQ(checked->state.length, 1000U);
}

TEST(RangeAnswer, CutsTheRangeAtTheEndOfTheObject) {
  const auto checked = check_range_answer(part("bytes 0-299/300", 300), AskedRange::of({0, 65536}), nullptr);
  ASSERT_TRUE(checked) << checked.error().reason;
  EXPECT_EQ(checked->range, (ByteRange{0, 300}));
}

TEST(RangeAnswer, AcceptsTheLastBytes) {
  const auto checked = check_range_answer(part("bytes 990-999/1000", 10), AskedRange::last(10), &kState);
  ASSERT_TRUE(checked) << checked.error().reason;
  EXPECT_EQ(checked->range, (ByteRange{990, 1000}));
  const auto shorter = check_range_answer(part("bytes 0-4/5", 5), AskedRange::last(10), nullptr);
  ASSERT_TRUE(shorter) << shorter.error().reason;
  EXPECT_EQ(shorter->form, Form::as_asked);
}

TEST(RangeAnswer, RefusesOtherRangesAndBodies) {
  for (const auto& answer :
       {part("bytes 101-200/1000", 100), part("bytes 100-198/1000", 99), part("bytes 100-200/1000", 101),
        part("bytes 100-199/1000", 99), part("bytes 100-199/1000", 101), part("bytes 0-199/1000", 200),
        part("bytes 100-199/1000", 100, {{"Content-Length", "99"}}),
        part("bytes 100-199/1000", 100, {{"Content-Range", "bytes 0-99/1000"}})}) {
    const auto checked = check_range_answer(answer, kAsked, &kState);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().sys, EIO) << checked.error().reason;
  }
}

TEST(RangeAnswer, RefusesContentRangesThatAreMalformed) {
  for (const char* text :
       {"", "bytes", "bytes ", "bytes 100-199", "bytes */1000", "bytes 100-/1000", "bytes -199/1000",
        "bytes 199-100/1000", "bytes 100-199/-1", "bytes +100-199/1000", "bytes 100 - 199/1000", "octets 100-199/1000",
        "bytes=100-199/1000", "bytes 0x64-199/1000", "bytes 100-199/1000, bytes 0-1/1000",
        "bytes 18446744073709551716-199/1000", "bytes 100-199/18446744073709552616",
        "bytes 100-199/9223372036854775808", "bytes 100-199/00000000000000000001000"}) {
    EXPECT_EQ(kind_of(part(text, 100), kAsked), codec::ErrorKind::io) << text;
  }
}

TEST(RangeAnswer, AcceptsTheUnitInAnyCase) {
  EXPECT_TRUE(check_range_answer(part(" Bytes 100-199/1000 ", 100), kAsked, &kState));
}

TEST(RangeAnswer, AcceptsTheLongestObjectAndNoLongerOne) {
  const AskedRange last = AskedRange::of({kMostObjectBytes - 1, kMostObjectBytes});
  EXPECT_TRUE(
      check_range_answer(part("bytes 9223372036854775806-9223372036854775806/9223372036854775807", 1), last, nullptr));
  EXPECT_EQ(kind_of(part("bytes 0-0/9999999999999999999", 1), AskedRange::of({0, 1}), nullptr), codec::ErrorKind::io);
}

TEST(RangeAnswer, NeedsTheTotalLength) {
  EXPECT_EQ(kind_of(part("bytes 100-199/*", 100), kAsked), codec::ErrorKind::unsupported);
}

TEST(RangeAnswer, RefusesSeveralPartsAndEncodings) {
  EXPECT_EQ(kind_of(part("bytes 100-199/1000", 100, {{"Content-Type", "Multipart/Byteranges; boundary=x"}}), kAsked),
            codec::ErrorKind::unsupported);
  EXPECT_EQ(kind_of(part("bytes 100-199/1000", 100, {{"Content-Encoding", "gzip"}}), kAsked),
            codec::ErrorKind::unsupported);
  EXPECT_TRUE(check_range_answer(part("bytes 100-199/1000", 100, {{"Content-Encoding", "identity"}}), kAsked, &kState));
}

TEST(RangeAnswer, IsStaleForAnotherTagOrLength) {
  auto other = part("bytes 100-199/1000", 100);
  other.headers[1].value = "\"t2\"";
  EXPECT_EQ(kind_of(other, kAsked), codec::ErrorKind::stale);
  other.headers[1].value = "W/\"t1\"";
  EXPECT_EQ(kind_of(other, kAsked), codec::ErrorKind::stale);
  EXPECT_EQ(kind_of(part("bytes 100-199/1001", 100), kAsked), codec::ErrorKind::stale);
  EXPECT_EQ(kind_of(whole(1001), kAsked), codec::ErrorKind::stale);
}

TEST(RangeAnswer, ComparesTheDateOnlyWithoutATag) {
  const ObjectState dated{"", "", 784111777, 1000};
  EXPECT_TRUE(check_range_answer(part("bytes 100-199/1000", 100, {{"Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"}}),
                                 kAsked, &dated));
  EXPECT_EQ(
      kind_of(part("bytes 100-199/1000", 100, {{"Last-Modified", "Sun, 06 Nov 1994 08:49:38 GMT"}}), kAsked, &dated),
      codec::ErrorKind::stale);
  EXPECT_EQ(kind_of(part("bytes 100-199/1000", 100), kAsked, &dated), codec::ErrorKind::stale);
  EXPECT_TRUE(check_range_answer(part("bytes 100-199/1000", 100, {{"Last-Modified", "Sun, 06 Nov 1994 08:49:38 GMT"}}),
                                 kAsked, &kState));
}

TEST(RangeAnswer, CutsTheRangeOutOfAShortWholeObject) {
  const auto answer = whole(1000);
  const auto checked = check_range_answer(answer, kAsked, &kState);
  ASSERT_TRUE(checked) << checked.error().reason;
  EXPECT_EQ(checked->form, Form::whole);
  EXPECT_EQ(checked->bytes.data(), answer.body.data() + 100);
  EXPECT_EQ(checked->bytes.size(), 100U);
  EXPECT_EQ(checked->whole.size(), 1000U);
  const auto tail = check_range_answer(answer, AskedRange::last(10), nullptr);
  ASSERT_TRUE(tail);
  EXPECT_EQ(tail->range, (ByteRange{990, 1000}));
}

TEST(RangeAnswer, RefusesAWholeObjectThatIsLongOrOfUnknownLength) {
  EXPECT_TRUE(check_range_answer(whole(kMostWholeAnswer), kAsked, nullptr));
  EXPECT_EQ(kind_of(whole(kMostWholeAnswer + 1), kAsked, nullptr), codec::ErrorKind::unsupported);
  auto chunked = whole(1000);
  chunked.headers.pop_back();
  EXPECT_EQ(kind_of(chunked, kAsked), codec::ErrorKind::unsupported);
  EXPECT_EQ(kind_of(whole(50), kAsked, nullptr), codec::ErrorKind::io);
}

TEST(RangeAnswer, RecognisesAWrongSuffix) {
  // s3rver sends the first N + 1 bytes.
  const auto first = check_range_answer(part("bytes 0-10/1000", 11), AskedRange::last(10), nullptr);
  ASSERT_TRUE(first) << first.error().reason;
  EXPECT_EQ(first->form, Form::wrong_suffix);
  EXPECT_TRUE(first->bytes.empty());
  const auto beyond = check_range_answer(part("bytes 0-10/8", 8), AskedRange::last(10), nullptr);
  ASSERT_TRUE(beyond) << beyond.error().reason;
  EXPECT_EQ(beyond->form, Form::wrong_suffix);
}

TEST(RangeAnswer, KnowsAnEmptyObject) {
  HttpAnswer refused;
  refused.status = 416;
  refused.headers = {{"Content-Range", "bytes */0"}};
  for (const auto& answer : {refused, whole(0)}) {
    const auto checked = check_range_answer(answer, AskedRange::of({0, 65536}), nullptr);
    ASSERT_TRUE(checked) << checked.error().reason;
    EXPECT_EQ(checked->form, Form::empty_object);
    EXPECT_EQ(checked->state.length, 0U);
  }
  EXPECT_EQ(kind_of(refused, kAsked), codec::ErrorKind::stale);
  EXPECT_EQ(kind_of(whole(0), kAsked), codec::ErrorKind::stale);
  refused.headers[0].value = "bytes */7";
  EXPECT_EQ(kind_of(refused, AskedRange::of({0, 65536}), nullptr), codec::ErrorKind::io);
}

TEST(RangeAnswer, RefusesOtherStatuses) {
  for (const int status : {201, 204, 304}) {
    auto answer = part("bytes 100-199/1000", 100);
    answer.status = status;
    EXPECT_EQ(kind_of(answer, kAsked), codec::ErrorKind::unsupported) << status;
  }
}

TEST(RangeAnswer, AsksForOneRangeWithoutEncoding) {
  HttpRequest request;
  ask_for(AskedRange::of({100, 200}), request);
  ASSERT_EQ(request.headers.size(), 2U);
  EXPECT_EQ(request.headers[0].value, "bytes=100-199");
  EXPECT_EQ(request.headers[1].value, "identity");
  EXPECT_EQ(range_header(AskedRange::last(65536)), "bytes=-65536");
}

}  // namespace
}  // namespace cframefs::frame::range_answer_tests
