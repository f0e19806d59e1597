// A server of objects behind the interface Requests, in memory: it counts requests and round trips, can replace an
// object between any two requests, and can lie.
//
// Round trips are counted by a clock of its own: an answer arrives one tick after its request was started, and a reader
// that waits for it moves the clock there. So requests that are started together cost one tick.
//
// Thread safety: all members may be called at once; the hook is called with the lock held. Errors: as Requests.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/remote/http/http_date.h"
#include "frame/remote/http/requests.h"

namespace cframefs::test {

enum class Lie : std::uint8_t {
  none,
  ignores_ranges,
  ignores_conditions,
  first_bytes_for_suffix,  // as s3rver does
  other_start,
  other_total,
  unknown_total,
  short_body,
  long_body,
  no_content_range,
  several_parts,
  encoding,
  other_tag,
  no_tag,
  weak_tag,
};

class ServedObjects final : public frame::Requests {
 public:
  struct Object {
    std::vector<std::uint8_t> bytes;
    std::string tag;        // with its quotes; empty: none
    std::int64_t date = 0;  // 0: none
    std::string version;    // empty: none
  };

  void put(const std::string& url, Object object) {
    codec::MutexLock lock(mutex_);
    put_locked(url, std::move(object));
  }
  /// The same, for the hook.
  void put_locked(const std::string& url, Object object) NO_THREAD_SAFETY_ANALYSIS {
    if (!object.version.empty()) versions_[url + "?versionId=" + object.version] = object;
    objects_[url] = std::move(object);
  }
  void remove_locked(const std::string& url) NO_THREAD_SAFETY_ANALYSIS { objects_.erase(url); }

  void lie(Lie lie) {
    codec::MutexLock lock(mutex_);
    lie_ = lie;
  }
  /// Requests fail with this errno; 0: they do not.
  void fail_with(int sys) {
    codec::MutexLock lock(mutex_);
    failure_ = sys;
  }
  /// Requests that name a version fail with EACCES.
  void refuse_versions() {
    codec::MutexLock lock(mutex_);
    refuses_versions_ = true;
  }
  /// Called before each request with the number of requests before it.
  void before_each(std::function<void(std::size_t)> hook) {
    codec::MutexLock lock(mutex_);
    hook_ = std::move(hook);
  }
  /// Requests are not answered until release() is called.
  void hold() {
    codec::MutexLock lock(mutex_);
    is_held_ = true;
  }
  void release() {
    codec::MutexLock lock(mutex_);
    is_held_ = false;
    for (auto& [promise, answer] : held_)
      promise.set_value(std::move(answer));
    held_.clear();
  }

  std::future<codec::Result<frame::HttpAnswer>> start(frame::HttpRequest request) override {
    codec::MutexLock lock(mutex_);
    if (hook_) hook_(ranges_.size());
    ranges_.push_back(header_of(request, "Range"));
    auto answer = answer_to(request);
    if (answer) sent_ += answer->body.size();
    if (is_held_) {
      held_.emplace_back(std::promise<codec::Result<frame::HttpAnswer>>(), std::move(answer));
      return held_.back().first.get_future();
    }
    const std::uint64_t arrival = now_ + 1;
    return std::async(std::launch::deferred, [this, arrival, answer = std::move(answer)] {
      codec::MutexLock arrived(mutex_);
      now_ = std::max(now_, arrival);
      return answer;
    });
  }

  /// The headers Range of all requests; empty for a request without.
  std::vector<std::string> ranges() const {
    codec::MutexLock lock(mutex_);
    return ranges_;
  }
  std::size_t requests() const { return ranges().size(); }
  std::uint64_t round_trips() const {
    codec::MutexLock lock(mutex_);
    return now_;
  }
  std::uint64_t bytes_sent() const {
    codec::MutexLock lock(mutex_);
    return sent_;
  }

 private:
  using Answer = codec::Result<frame::HttpAnswer>;

  static std::string header_of(const frame::HttpRequest& request, const std::string& name) {
    for (const auto& header : request.headers) {
      if (header.name == name) return header.value;
    }
    return {};
  }

  /// Returns the first byte and the end of a range of the form "bytes=A-B" or "bytes=-N".
  std::pair<std::size_t, std::size_t> range_of(const std::string& text, std::size_t total) const REQUIRES(mutex_) {
    const std::size_t dash = text.find('-');
    const std::string first = text.substr(6, dash - 6);
    const auto last = static_cast<std::size_t>(std::stoull(text.substr(dash + 1)));
    if (!first.empty()) return {static_cast<std::size_t>(std::stoull(first)), std::min(last + 1, total)};
    if (lie_ == Lie::first_bytes_for_suffix) return {0, std::min(last + 1, total)};
    return {total - std::min(last, total), total};
  }

  Answer answer_to(const frame::HttpRequest& request) REQUIRES(mutex_) {
    if (failure_ != 0) return codec::io_error(failure_, "request");
    const bool names_version = request.url.find("?versionId=") != std::string::npos;
    if (names_version && refuses_versions_) return codec::io_error(EACCES, "request");
    const auto& all = names_version ? versions_ : objects_;
    const auto found = all.find(request.url);
    if (found == all.end()) return codec::io_error(ENOENT, "request");
    const Object& object = found->second;
    if (lie_ != Lie::ignores_conditions) {
      const std::string tag = header_of(request, "If-Match");
      if (!tag.empty() && tag != object.tag) return codec::stale("412");
      const auto date = frame::parse_http_date(header_of(request, "If-Unmodified-Since"));
      if (date && object.date > *date) return codec::stale("412");
    }
    frame::HttpAnswer answer;
    answer.status = 200;
    if (!object.tag.empty()) answer.headers.push_back({"ETag", object.tag});
    if (object.date != 0) answer.headers.push_back({"Last-Modified", frame::http_date(object.date)});
    if (!object.version.empty()) answer.headers.push_back({"x-amz-version-id", object.version});
    const std::string range = header_of(request, "Range");
    std::pair<std::size_t, std::size_t> part{0, object.bytes.size()};
    if (!range.empty() && lie_ != Lie::ignores_ranges) {
      part = range_of(range, object.bytes.size());
      if (part.first >= part.second) return codec::stale("416");
      answer.status = 206;
      answer.headers.push_back({"Content-Range", "bytes " + std::to_string(part.first) + '-' +
                                                     std::to_string(part.second - 1) + '/' +
                                                     std::to_string(object.bytes.size())});
    }
    answer.body.assign(object.bytes.begin() + static_cast<std::ptrdiff_t>(part.first),
                       object.bytes.begin() + static_cast<std::ptrdiff_t>(part.second));
    distort(answer);
    answer.headers.push_back({"Content-Length", std::to_string(answer.body.size())});
    if (answer.body.size() > request.most_body) return codec::unsupported("the body is longer than asked for");
    return answer;
  }

  static std::string* find_header(frame::HttpAnswer& answer, const std::string& name) {
    for (auto& header : answer.headers) {
      if (header.name == name) return &header.value;
    }
    return nullptr;
  }

  void distort(frame::HttpAnswer& answer) const REQUIRES(mutex_) {
    std::string* range = find_header(answer, "Content-Range");
    std::string* tag = find_header(answer, "ETag");
    switch (lie_) {
      case Lie::other_start:
        if (range != nullptr) range->insert(range->find('-'), "1");
        break;
      case Lie::other_total:
        if (range != nullptr) *range += '1';
        break;
      case Lie::unknown_total:
        if (range != nullptr) *range = range->substr(0, range->find('/')) + "/*";
        break;
      case Lie::short_body:
        if (!answer.body.empty()) answer.body.pop_back();
        break;
      case Lie::long_body:
        answer.body.push_back(0);
        break;
      case Lie::no_content_range:
        if (range != nullptr) range->clear();
        break;
      case Lie::several_parts:
        answer.headers.push_back({"Content-Type", "multipart/byteranges; boundary=x"});
        break;
      case Lie::encoding:
        answer.headers.push_back({"Content-Encoding", "gzip"});
        break;
      case Lie::other_tag:
        if (tag != nullptr) *tag = "\"other\"";
        break;
      case Lie::no_tag:
        if (tag != nullptr) tag->clear();
        break;
      case Lie::weak_tag:
        if (tag != nullptr) tag->insert(0, "W/");
        break;
      case Lie::none:
      case Lie::ignores_ranges:
      case Lie::ignores_conditions:
      case Lie::first_bytes_for_suffix:
        break;
    }
  }

  mutable codec::Mutex mutex_;
  std::map<std::string, Object> objects_ GUARDED_BY(mutex_);
  std::map<std::string, Object> versions_ GUARDED_BY(mutex_);  // by address with ?versionId=
  Lie lie_ GUARDED_BY(mutex_) = Lie::none;
  int failure_ GUARDED_BY(mutex_) = 0;
  bool refuses_versions_ GUARDED_BY(mutex_) = false;
  bool is_held_ GUARDED_BY(mutex_) = false;
  std::function<void(std::size_t)> hook_ GUARDED_BY(mutex_);
  std::deque<std::pair<std::promise<Answer>, Answer>> held_ GUARDED_BY(mutex_);
  std::vector<std::string> ranges_ GUARDED_BY(mutex_);
  std::uint64_t now_ GUARDED_BY(mutex_) = 0;
  std::uint64_t sent_ GUARDED_BY(mutex_) = 0;
};

/// Bytes that differ at each place and for each seed.
inline std::vector<std::uint8_t> object_bytes(std::size_t size, std::uint64_t seed = 1) {
  std::vector<std::uint8_t> bytes(size);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (std::size_t at = 0; at < size; at += sizeof state) {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    std::memcpy(bytes.data() + at, &state, std::min(sizeof state, size - at));
  }
  return bytes;
}

}  // namespace cframefs::test
