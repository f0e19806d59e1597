// ObjectUpload against a bucket in memory: what requests it sends, and what becomes of each failure.
#include "frame/remote/publishing/object_upload.h"

#include <atomic>
#include <cerrno>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "frame/remote/http/http_status.h"
#include "tests/support/fake_requests.h"

namespace cframefs::test {
namespace {

using codec::ErrorKind;
using frame::FileOffset;
using frame::HttpAnswer;
using frame::HttpRequest;
using frame::ObjectUpload;
using BucketAnswer = FakeRequests::Answer;

const std::string kUploaded = "http://host/bucket/key";
constexpr std::uint64_t kSentPart = frame::UploadParts::kLeastPart;

std::string sent_header(const HttpRequest& request, const std::string& name) {
  for (const auto& header : request.headers) {
    if (header.name == name) return header.value;
  }
  return {};
}

/// A bucket with one object and one upload at a time.
class FakeBucket {
 public:
  BucketAnswer answer(const HttpRequest& request) {
    const std::string query = request.url.substr(std::min(request.url.size(), kUploaded.size()));
    const std::string what = request.method + (query.substr(0, query.find('=')));
    if (const auto failing = failures.find(what); failing != failures.end() && failing->second.count-- > 0) {
      if (failing->second.does_work) static_cast<void>(do_work(request, what));
      return failing->second.answer;
    }
    return do_work(request, what);
  }
  BucketAnswer fail(int status, const std::string& code) const {
    HttpAnswer failed = answer_of("<Error><Code>" + code + "</Code></Error>");
    failed.status = status;
    return frame::failure_of(failed, kUploaded);
  }

  struct Failing {
    BucketAnswer answer;
    int count = 1 << 30;
    bool does_work = false;
  };
  std::map<std::string, Failing> failures;  // by method and first parameter
  std::string object;
  std::string mark;
  std::string mark_of_others;                // of an upload that replaces each object that is made; empty: none does
  std::map<std::string, std::string> parts;  // of the upload, by the query
  bool has_upload = false;
  int uploads = 0;

 private:
  BucketAnswer do_work(const HttpRequest& request, const std::string& what) {
    const bool is_refused = sent_header(request, "If-None-Match") == "*" && !object.empty();
    if (what == "HEAD") return object.empty() ? fail(404, "") : answer_with_tag();
    if (what == "GET") return range(request);
    if (what == "PUT")
      return is_refused ? fail(412, "PreconditionFailed") : store(std::string(request.body.view()), request);
    if (what == "POST?uploads") {
      has_upload = true;
      ++uploads;
      mark_of_upload_ = request;
      return answer_of("<InitiateMultipartUploadResult><UploadId>id+1</UploadId></InitiateMultipartUploadResult>");
    }
    if (!has_upload || request.url.find("uploadId=id%2B1") == std::string::npos) return fail(404, "NoSuchUpload");
    if (what == "PUT?partNumber") {
      parts[request.url] = request.body.view();
      return answer_of("", {{"ETag", "\"tag" + std::to_string(parts.size()) + "\""}});
    }
    if (what == "GET?max-parts") return answer_of("<ListPartsResult/>");
    if (what == "DELETE?uploadId") {
      has_upload = false;
      return answer_of("");
    }
    if (is_refused) return fail(412, "PreconditionFailed");
    has_upload = false;
    std::string whole;
    for (int number = 1; number <= static_cast<int>(parts.size()); ++number)
      whole += parts[kUploaded + "?partNumber=" + std::to_string(number) + "&uploadId=id%2B1"];
    const auto stored = store(whole, mark_of_upload_);
    return answer_of("<CompleteMultipartUploadResult><ETag>\"whole\"</ETag></CompleteMultipartUploadResult>");
  }
  BucketAnswer store(std::string bytes, const HttpRequest& request) {
    object = std::move(bytes);
    mark = mark_of_others.empty() ? sent_header(request, frame::kUploadMark) : mark_of_others;
    return answer_with_tag();
  }
  BucketAnswer answer_with_tag() const {
    return answer_of(
        "", {{"ETag", "\"whole\""}, {"Content-Length", std::to_string(object.size())}, {frame::kUploadMark, mark}});
  }
  BucketAnswer range(const HttpRequest& request) const {
    const std::string text = sent_header(request, "Range");
    const auto last = static_cast<std::size_t>(std::stoull(text.substr(text.find('-') + 1)));
    HttpAnswer answer = answer_of(object.substr(0, last + 1), {{"ETag", "\"whole\""}, {frame::kUploadMark, mark}});
    answer.status = 206;
    answer.headers.push_back(
        {"Content-Range", "bytes 0-" + std::to_string(last) + "/" + std::to_string(object.size())});
    return answer;
  }

  HttpRequest mark_of_upload_;
};

class ObjectUploadTest : public testing::Test {
 protected:
  /// Passes requests on, as if over connections of its own.
  class Parts final : public frame::Requests {
   public:
    explicit Parts(frame::Requests& to) : to_(to) {}
    std::future<BucketAnswer> start(HttpRequest request) override { return to_.start(std::move(request)); }

   private:
    frame::Requests& to_;
  };

  codec::Result<std::unique_ptr<ObjectUpload>> begin(bool replace = false) {
    frame::UploadOptions options;
    options.replace = replace;
    options.remedy = "; REMEDY";
    options.stop = &stop_;
    options.left_behind = [this](const codec::Error& error) { left_ = error.reason; };
    return ObjectUpload::begin(
        requests_, [this] { return std::make_unique<Parts>(part_requests_); }, kUploaded, "MARK", options);
  }
  /// Uploads `length` bytes, as a frame is written: the first bytes last.
  codec::Result<void> upload(std::uint64_t length, bool replace = false) {
    auto begun = begin(replace);
    if (!begun) return codec::Failure(begun.error());
    const std::vector<std::uint8_t> piece(1 << 20, 'x');
    for (std::uint64_t at = 100; at < length; at += piece.size()) {
      const auto part = codec::ByteView(piece).first(std::min<std::uint64_t>(piece.size(), length - at));
      if (auto put = (*begun)->write(part, FileOffset{at}); !put) return put;
    }
    if (auto put = (*begun)->write(std::vector<std::uint8_t>(100, 'h'), FileOffset{0}); !put) return put;
    auto published = (*begun)->publish();
    if (published) tag_ = (*begun)->entity_tag();
    return published;
  }
  static std::string expected(std::uint64_t length) { return std::string(100, 'h') + std::string(length - 100, 'x'); }
  void expect_uploaded(std::uint64_t length) {
    EXPECT_TRUE(bucket_.object == expected(length));
    EXPECT_EQ(tag_, "\"whole\"");
    EXPECT_FALSE(bucket_.has_upload);
    EXPECT_EQ(left_, "");
  }

  FakeBucket bucket_;
  codec::Mutex mutex_;
  FakeRequests requests_{[this](const HttpRequest& request) { return locked_answer(request); }};
  FakeRequests part_requests_{[this](const HttpRequest& request) { return locked_answer(request); }};
  std::atomic<bool> stop_{false};
  std::string tag_;
  std::string left_;

 private:
  BucketAnswer locked_answer(const HttpRequest& request) {
    const codec::MutexLock lock(mutex_);
    return bucket_.answer(request);
  }
};

TEST_F(ObjectUploadTest, AShortObjectIsOneRequest) {
  const auto done = upload(kSentPart);
  ASSERT_TRUE(done) << done.error().reason;
  expect_uploaded(kSentPart);
  EXPECT_EQ(bucket_.uploads, 0);
  EXPECT_EQ(bucket_.mark, "MARK");
}

TEST_F(ObjectUploadTest, ALongObjectIsOfParts) {
  const auto done = upload(3 * kSentPart + 1);
  ASSERT_TRUE(done) << done.error().reason;
  expect_uploaded(3 * kSentPart + 1);
  EXPECT_EQ(bucket_.uploads, 1);
  EXPECT_EQ(part_requests_.count(), 4U);
}

TEST_F(ObjectUploadTest, AnObjectThatExistsIsRefusedBeforeAnythingIsSent) {
  bucket_.object = "before";
  const auto refused = begin();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys, EEXIST);
  EXPECT_EQ(requests_.count(), 1U);
  const auto replaced = upload(200, true);
  ASSERT_TRUE(replaced) << replaced.error().reason;
  expect_uploaded(200);
}

TEST_F(ObjectUploadTest, ALostAnswerIsResolvedByTheMark) {
  for (const bool replace : {false, true}) {
    bucket_.object.clear();
    // The service has done the work, and refuses the second attempt.
    bucket_.failures["POST?uploadId"] = {bucket_.fail(404, "NoSuchUpload"), 1, true};
    auto done = upload(2 * kSentPart, replace);
    ASSERT_TRUE(done) << done.error().reason;
    expect_uploaded(2 * kSentPart);
    bucket_.object.clear();
    bucket_.failures["PUT"] = {bucket_.fail(412, "PreconditionFailed"), 1, true};
    done = upload(1000, replace);
    ASSERT_TRUE(done) << done.error().reason;
    expect_uploaded(1000);
  }
}

TEST_F(ObjectUploadTest, AnObjectOfAnotherProgramIsNotTakenForTheNewOne) {
  for (const std::uint64_t length : {std::uint64_t{1000}, 2 * kSentPart}) {
    bucket_.object.clear();
    auto begun = begin();
    ASSERT_TRUE(begun);
    ASSERT_TRUE((*begun)->write(std::vector<std::uint8_t>(length, 'x'), FileOffset{0}));
    bucket_.failures["HEAD"] = {bucket_.fail(404, ""), 1, false};  // it comes after the last look
    bucket_.object = std::string(length, 'x');
    bucket_.mark = "OTHER";
    const auto refused = (*begun)->publish();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().sys, EEXIST);
    EXPECT_EQ(bucket_.mark, "OTHER");
    begun->reset();
    EXPECT_FALSE(bucket_.has_upload);
    bucket_.failures.clear();
  }
}

TEST_F(ObjectUploadTest, AUserWhoMayNotReadCanUpload) {
  for (const std::uint64_t length : {std::uint64_t{1000}, 2 * kSentPart}) {
    bucket_.object.clear();
    for (const char* what : {"GET", "HEAD"})
      bucket_.failures[what] = {bucket_.fail(403, "AccessDenied")};
    const auto done = upload(length);
    ASSERT_TRUE(done) << done.error().reason;
    EXPECT_EQ(bucket_.object.size(), length);
  }
}

TEST_F(ObjectUploadTest, AnotherUploadThatReplacedTheObjectIsTold) {
  auto begun = begin();
  ASSERT_TRUE(begun);
  ASSERT_TRUE((*begun)->write(std::vector<std::uint8_t>(1000, 'x'), FileOffset{0}));
  bucket_.mark_of_others = "OTHER";  // the service ignores the condition, and gives equal bytes one tag
  const auto done = (*begun)->publish();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, codec::ErrorKind::stale);
}

TEST_F(ObjectUploadTest, AnErrorWithStatus200IsTriedAgain) {
  bucket_.failures["POST?uploadId"] = {answer_of("<Error><Code>InternalError</Code></Error>"), 2, false};
  const auto done = upload(2 * kSentPart);
  ASSERT_TRUE(done) << done.error().reason;
  expect_uploaded(2 * kSentPart);
}

TEST_F(ObjectUploadTest, AFailureAbortsTheUpload) {
  for (const char* what : {"PUT?partNumber", "POST?uploadId", "GET?max-parts"}) {
    bucket_.failures.clear();
    bucket_.failures[what] = {bucket_.fail(403, "AccessDenied"), 1 << 30, false};
    bucket_.failures["POST?uploadId"] = {bucket_.fail(403, "AccessDenied"), 1 << 30, false};
    const auto failed = upload(2 * kSentPart);
    ASSERT_FALSE(failed) << what;
    EXPECT_EQ(failed.error().sys, EACCES);
    EXPECT_EQ(bucket_.object, "");
    EXPECT_FALSE(bucket_.has_upload);
    EXPECT_EQ(left_, "");
  }
  bucket_.failures["DELETE?uploadId"] = {bucket_.fail(503, "SlowDown"), 1 << 30, false};
  EXPECT_FALSE(upload(2 * kSentPart));
  EXPECT_NE(left_.find("parts of an upload stay"), std::string::npos) << left_;
}

TEST_F(ObjectUploadTest, AServiceWithoutConditionsIsExplained) {
  bucket_.failures["PUT"] = {bucket_.fail(501, "NotImplemented"), 1 << 30, false};
  const auto failed = upload(1000);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::unsupported);
  EXPECT_NE(failed.error().reason.find("; REMEDY"), std::string::npos) << failed.error().reason;
}

TEST_F(ObjectUploadTest, ThePartsInFlightHaveABound) {
  part_requests_.hold();
  constexpr std::uint64_t kLength = 30 * kSentPart;
  auto done = std::async(std::launch::async, [this] { return upload(kLength); });
  while (part_requests_.in_flight() < 4)
    std::this_thread::yield();
  EXPECT_EQ(done.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  // With the first part and the one that grows.
  EXPECT_LE((part_requests_.in_flight() + 2) * kSentPart, ObjectUpload::kMostMemory);
  part_requests_.release();
  const auto uploaded = done.get();
  ASSERT_TRUE(uploaded) << uploaded.error().reason;
  expect_uploaded(kLength);
}

TEST_F(ObjectUploadTest, AStopEndsAWaitAndAbortsTheUpload) {
  part_requests_.hold();
  auto done = std::async(std::launch::async, [this] { return upload(30 * kSentPart); });
  while (part_requests_.in_flight() < 4)
    std::this_thread::yield();
  stop_ = true;
  const auto stopped = done.get();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().sys, EINTR);
  EXPECT_FALSE(bucket_.has_upload);
  EXPECT_EQ(bucket_.object, "");
  part_requests_.release();
}

TEST_F(ObjectUploadTest, WhatIsReadBackIsCompared) {
  bucket_.failures["GET"] = {bucket_.fail(412, "PreconditionFailed"), 1, false};
  const auto failed = upload(1000);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::stale);
  EXPECT_NE(failed.error().reason.find("read back"), std::string::npos) << failed.error().reason;
}

}  // namespace
}  // namespace cframefs::test
