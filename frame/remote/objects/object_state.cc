#include "frame/remote/objects/object_state.h"

#include <algorithm>
#include <vector>

#include "frame/base/elapsed.h"
#include "frame/base/xxh3.h"
#include "frame/remote/http/http_date.h"
#include "frame/remote/http/percent_encoding.h"

namespace cframefs::frame {
namespace {

constexpr std::size_t kMostTag = 1024;  // bytes of a tag or version

/// Returns the tag if it is strong and well-formed: it goes into headers of later requests.
std::string strong_tag(std::string_view text) {
  return is_strong_tag(text) ? std::string(text) : std::string();
}

/// "null" names the state of an object without a version, which can be replaced.
std::string fixed_version(std::string_view text) {
  if (text.size() > kMostTag || text == "null") return {};
  const bool is_version =
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) > ' ' && c != '\x7f'; });
  return is_version ? std::string(text) : std::string();
}

/// Returns whether an object of this date, in seconds, may be replaced by another one of the same date; 0: not known.
bool is_recent(std::int64_t last_modified) {
  constexpr std::int64_t kSteps = 2'000'000'000;
  struct timespec date {};
  date.tv_sec = static_cast<time_t>(last_modified);
  const std::int64_t age = age_ns(date);
  return last_modified == 0 || (age <= kSteps && age >= -kSteps);
}

}  // namespace

bool is_strong_tag(std::string_view text) {
  if (text.size() < 2 || text.size() > kMostTag || text.front() != '"' || text.back() != '"') return false;
  const std::string_view inside = text.substr(1, text.size() - 2);
  return std::all_of(inside.begin(), inside.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != '"' && byte != 0x7f;
  });
}

ObjectState state_of(const HttpAnswer& answer) {
  ObjectState state;
  state.entity_tag = strong_tag(answer.header("ETag"));
  state.version_id = fixed_version(answer.header("x-amz-version-id"));
  state.last_modified = parse_http_date(answer.header("Last-Modified")).value_or(0);
  return state;
}

void tie_to(const ObjectState& state, HttpRequest& request) {
  if (!state.version_id.empty()) {
    const char separator = request.url.find('?') == std::string::npos ? '?' : '&';
    request.url += separator + ("versionId=" + percent_encode(state.version_id));
  } else if (!state.entity_tag.empty()) {
    request.headers.push_back({"If-Match", state.entity_tag});
  } else if (state.last_modified != 0) {
    request.headers.push_back({"If-Unmodified-Since", http_date(state.last_modified)});
  }
}

FileVersion version_of(const std::string& url, const ObjectState& state) {
  // A tag identifies the content alone. Version and date may differ between a listing and an answer, or be missing.
  std::string text = url + '\n' + state.entity_tag;
  if (state.entity_tag.empty()) text += state.version_id + '\n' + std::to_string(state.last_modified);
  FileVersion version;
  version.size = state.length;
  version.modified.tv_sec = state.last_modified;
  if (state.entity_tag.empty()) {
    version.mtime_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(state.last_modified) * 1'000'000'000U);
  }
  version.tag = xxh3(std::vector<std::uint8_t>(text.begin(), text.end()));
  version.racy = state.entity_tag.empty() && is_recent(state.last_modified);
  return version;
}

}  // namespace cframefs::frame
