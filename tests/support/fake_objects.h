// Objects of a server in memory, with the answers of a correct server: ranges, suffixes, If-Match, 404, 412, 416. And
// their listing, with or without states.
//
// Thread safety: internally synchronised. Errors: as requests.h.
#pragma once

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/remote/http/http_date.h"
#include "frame/remote/http/requests.h"
#include "frame/remote/listings/listed_directory.h"
#include "frame/remote/listings/listing.h"

namespace cframefs::test {

struct FakeObject {
  std::vector<std::uint8_t> content;
  std::string tag;                    // with its quotes; empty: none
  std::int64_t modified = 784111777;  // seconds since 1970; 0: not told
};

class FakeObjects final : public frame::Listing {
 public:
  static inline const std::string kRoot = "http://server/data/";

  /// `tells_states`: whether the listing tells lengths, tags and dates.
  explicit FakeObjects(bool tells_states) : tells_states_(tells_states) {}

  /// `path`: below the root, of characters that need no encoding.
  void put(const std::string& path, std::vector<std::uint8_t> content, const std::string& tag) {
    const codec::MutexLock lock(mutex_);
    objects_[path] = FakeObject{std::move(content), tag};
  }
  void remove(const std::string& path) {
    const codec::MutexLock lock(mutex_);
    objects_.erase(path);
  }
  std::size_t listings() const {
    const codec::MutexLock lock(mutex_);
    return listings_;
  }
  /// Listings tell what there is now, until freeze(false).
  void freeze(bool is_frozen) {
    const codec::MutexLock lock(mutex_);
    listed_ = is_frozen ? std::optional(objects_) : std::nullopt;
  }

  codec::Result<std::vector<frame::ListedEntry>> list(const std::string& directory) override {
    const codec::MutexLock lock(mutex_);
    ++listings_;
    const std::string prefix = directory.empty() ? "" : directory + "/";
    std::vector<frame::ListedEntry> entries;
    for (const auto& [path, object] : listed_ ? *listed_ : objects_) {
      if (!path.starts_with(prefix)) continue;
      const std::string below = path.substr(prefix.size());
      const std::size_t slash = below.find('/');
      if (slash != std::string::npos) {
        entries.push_back({below.substr(0, slash), true, std::nullopt});
        continue;
      }
      frame::ObjectState state{object.tag, "", object.modified, object.content.size()};
      entries.push_back({below, false, tells_states_ ? std::optional(std::move(state)) : std::nullopt});
    }
    if (entries.empty() && !directory.empty()) return codec::io_error(ENOENT, "list");
    frame::merge_names(entries);
    return entries;
  }
  std::string url_of(const std::string& path) const override { return kRoot + path; }

  codec::Result<frame::HttpAnswer> answer(const frame::HttpRequest& request) const {
    const codec::MutexLock lock(mutex_);
    const auto found = objects_.find(request.url.substr(std::min(kRoot.size(), request.url.size())));
    if (found == objects_.end()) return codec::io_error(ENOENT, "GET");
    const FakeObject& object = found->second;
    const std::string_view condition = header(request, "If-Match");
    if (!condition.empty() && condition != object.tag) return codec::stale("the object has another tag");
    frame::HttpAnswer answer;
    const std::string_view known = header(request, "If-None-Match");
    const std::string_view since = header(request, "If-Modified-Since");
    if ((!known.empty() && known == object.tag) || (!since.empty() && since == frame::http_date(object.modified))) {
      answer.status = 304;
      return answer;
    }
    if (!object.tag.empty()) answer.headers.push_back({"ETag", object.tag});
    if (object.modified != 0) answer.headers.push_back({"Last-Modified", frame::http_date(object.modified)});
    const std::string_view asked = header(request, "Range");
    std::size_t begin = 0;
    std::size_t end = object.content.size();
    if (!asked.empty()) {
      if (object.content.empty()) return codec::stale("the object has no such range");
      cut(asked, begin, end);
      answer.headers.push_back({"Content-Range", "bytes " + std::to_string(begin) + "-" + std::to_string(end - 1) +
                                                     "/" + std::to_string(object.content.size())});
    }
    if (begin >= end && !asked.empty()) return codec::stale("the object has no such range");
    if (end - begin > request.most_body) return codec::unsupported("the body is too long");
    answer.status = asked.empty() ? 200 : 206;
    answer.headers.push_back({"Content-Length", std::to_string(end - begin)});
    answer.body.assign(object.content.begin() + static_cast<std::ptrdiff_t>(begin),
                       object.content.begin() + static_cast<std::ptrdiff_t>(end));
    return answer;
  }

 private:
  static std::string_view header(const frame::HttpRequest& request, std::string_view name) {
    for (const frame::HttpHeader& one : request.headers) {
      if (one.name == name) return one.value;
    }
    return {};
  }
  /// Applies "bytes=A-B", "bytes=A-" or "bytes=-N".
  static void cut(std::string_view asked, std::size_t& begin, std::size_t& end) {
    asked.remove_prefix(std::string_view("bytes=").size());
    const std::size_t dash = asked.find('-');
    const auto number = [](std::string_view text) {
      std::size_t value = 0;
      std::from_chars(text.data(), text.data() + text.size(), value);
      return value;
    };
    const std::string_view last = asked.substr(dash + 1);
    if (dash == 0) {
      begin = end - std::min(end, number(last));
      return;
    }
    begin = number(asked.substr(0, dash));
    if (!last.empty()) end = std::min(end, number(last) + 1);
  }

  const bool tells_states_;
  mutable codec::Mutex mutex_;
  std::map<std::string, FakeObject> objects_ GUARDED_BY(mutex_);
  std::optional<std::map<std::string, FakeObject>> listed_ GUARDED_BY(mutex_);
  std::size_t listings_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::test
