#include "frame/remote/listings/directory_page.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "frame/remote/http/http_date.h"
#include "frame/remote/listings/html_links.h"
#include "frame/remote/listings/list_objects.h"
#include "frame/remote/listings/listing_text.h"

namespace cframefs::frame {

namespace {

using codec::unsupported;
using nlohmann::json;

// ---- JSON --------------------------------------------------------------------------------------------------------

/// Takes the events of the JSON parser: an array of objects, each an entry. What is deeper is ignored.
class JsonPageReader final : public nlohmann::json_sax<json> {
 public:
  DirectoryPage take() { return std::move(page_); }

  bool null() override { return is_entry_part(); }
  bool boolean(bool value) override {
    if (depth_ == 2 && key_ == "is_dir") fields_.is_directory = value;
    return is_entry_part();
  }
  bool number_integer(number_integer_t /*value*/) override { return is_entry_part(); }
  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ == 2 && key_ == "size") fields_.size = value;
    return is_entry_part();
  }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return is_entry_part(); }
  bool string(string_t& value) override {
    if (depth_ != 2) return is_entry_part();
    if (key_ == "name") {
      fields_.name = std::move(value);
    } else if (key_ == "type") {
      fields_.type = std::move(value);
    } else if (key_ == "mtime") {
      fields_.modified = std::move(value);
    }
    return true;
  }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*elements*/) override {
    if (depth_ == 0) return false;
    if (depth_ == 1) fields_ = {};
    return ++depth_ <= kMostDepthOfJson;
  }
  bool key(string_t& value) override {
    if (depth_ == 2) key_ = std::move(value);
    return true;
  }
  bool end_object() override {
    if (--depth_ == 1) enter();
    return true;
  }
  bool start_array(std::size_t /*elements*/) override {
    if (depth_ == 1) return false;
    return ++depth_ <= kMostDepthOfJson;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const json::exception& /*what*/) override {
    return false;
  }

 private:
  static constexpr int kMostDepthOfJson = 16;
  struct Fields {
    std::string name;
    std::string type;      // of nginx
    std::string modified;  // of nginx
    std::optional<std::uint64_t> size;
    bool is_directory = false;  // of Caddy
  };

  bool is_entry_part() const { return depth_ >= 2; }
  void enter();

  DirectoryPage page_;
  int depth_ = 0;
  std::string key_;
  Fields fields_;
};

void JsonPageReader::enter() {
  DirectoryPage::Entry entry;
  entry.is_directory = fields_.is_directory || fields_.type == "directory";
  entry.name = std::move(fields_.name);
  if (entry.is_directory && entry.name.ends_with('/')) entry.name.pop_back();
  if (!is_entry_name(entry.name) || fields_.type == "other") {
    ++page_.left_out;
    return;
  }
  constexpr auto kMostBytes = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (fields_.type == "file" && fields_.size && *fields_.size <= kMostBytes) {
    ObjectState state;
    state.last_modified = parse_http_date(fields_.modified).value_or(0);
    state.length = *fields_.size;
    if (state.is_identified()) entry.state = std::move(state);
  }
  page_.entries.push_back(std::move(entry));
}

Result<DirectoryPage> parse_json_page(std::string_view text) {
  JsonPageReader reader;
  if (!json::sax_parse(text.begin(), text.end(), &reader)) {
    return unsupported("the server answers JSON that lists no directory");
  }
  return reader.take();
}

// ---- HTML --------------------------------------------------------------------------------------------------------

using Segments = std::vector<std::string>;

/// Returns the decoded segments of a path without its first '/'. "a/" has two: "a" and "".
Segments segments_of(std::string_view path) {
  Segments segments;
  while (true) {
    const std::size_t slash = path.find('/');
    segments.push_back(decoded_name(path.substr(0, slash)));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

/// The address of the page that links are resolved against.
class PageAddress {
 public:
  explicit PageAddress(std::string_view url) {
    const std::size_t colon = url.find("://");
    if (colon == std::string_view::npos) return;
    scheme_ = url.substr(0, colon);
    url.remove_prefix(colon + 3);
    const std::size_t slash = std::min(url.find('/'), url.size());
    authority_ = url.substr(0, slash);
    const std::string_view path = url.substr(std::min(slash + 1, url.size()));
    segments_ = segments_of(path.substr(0, path.find_first_of("?#")));
    segments_.pop_back();  // the empty one after the last '/'
  }

  /// Returns the segments below the page that a link leads to: {"name"} or {"name", ""}. `is_parent` becomes true for
  /// the link to the directory above the page.
  std::optional<Segments> below(std::string_view target, bool& is_parent) const;

 private:
  std::optional<Segments> below_root(std::string_view path, bool& is_parent) const;

  std::string scheme_;
  std::string authority_;
  Segments segments_;
};

/// Returns the length of "scheme:" at the begin of an address, 0 if there is none.
std::size_t length_of_scheme(std::string_view address) {
  const std::size_t end = address.find_first_of(":/?#");
  return end == std::string_view::npos || address[end] != ':' ? 0 : end + 1;
}

std::optional<Segments> PageAddress::below_root(std::string_view path, bool& is_parent) const {
  Segments segments = segments_of(path);
  const auto common = std::mismatch(segments_.begin(), segments_.end(), segments.begin(), segments.end());
  const auto own_left = segments_.end() - common.first;
  is_parent = own_left == 1 &&
              (common.second == segments.end() || (segments.end() - common.second == 1 && common.second->empty()));
  // The page's own address without its '/' is no link into it, either.
  if (own_left != 0 || common.second == segments.end()) return std::nullopt;
  segments.erase(segments.begin(), common.second);
  return segments;
}

std::optional<Segments> PageAddress::below(std::string_view target, bool& is_parent) const {
  is_parent = false;
  target = target.substr(0, target.find('#'));
  if (target.find('?') != std::string_view::npos) return std::nullopt;
  if (const std::size_t length = length_of_scheme(target); length != 0) {
    if (target.substr(0, length - 1) != scheme_) return std::nullopt;
    target.remove_prefix(length);
    if (!target.starts_with("//")) return std::nullopt;
  }
  if (target.starts_with("//")) {
    target.remove_prefix(2);
    if (!target.starts_with(authority_) || target.substr(authority_.size(), 1) != "/") return std::nullopt;
    target.remove_prefix(authority_.size());
  }
  if (target.starts_with('/')) return below_root(target.substr(1), is_parent);
  while (target.starts_with("./"))
    target.remove_prefix(2);
  is_parent = target == ".." || target == "../";
  return segments_of(target);
}

std::string_view trimmed_target(std::string_view text) {
  const auto is_blank = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  while (!text.empty() && is_blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back()))
    text.remove_suffix(1);
  return text;
}

Result<DirectoryPage> parse_html_page(std::string_view text, const std::string& url) {
  const HtmlLinks links = links_of_html(text);
  const PageAddress address(url);
  DirectoryPage page;
  bool is_listing =
      links.title.find("Index of") != std::string::npos || links.title.find("Directory listing") != std::string::npos;
  for (const std::string& target : links.targets) {
    bool is_parent = false;
    auto segments = address.below(trimmed_target(target), is_parent);
    is_listing = is_listing || is_parent;
    if (!segments || segments->size() > 2) continue;
    std::string& name = segments->front();
    const bool is_directory = segments->size() == 2;
    if (name == "." || name == ".." || (name.empty() && !is_directory)) continue;
    if (is_directory && !segments->back().empty()) continue;
    if (!is_entry_name(name)) {
      ++page.left_out;
      continue;
    }
    page.entries.push_back({std::move(name), is_directory, std::nullopt});
  }
  if (!is_listing && page.entries.empty()) {
    return unsupported(
        "the server answers a page that lists no files; it must list directories, as nginx does with "
        "\"autoindex on\"");
  }
  return page;
}

}  // namespace

Result<DirectoryPage> parse_directory_page(codec::ByteView page, const std::string& url) {
  if (page.size() > kMostListingBytes) return unsupported("the page of the directory is longer than 8 MiB");
  const std::string_view text(reinterpret_cast<const char*>(page.data()), page.size());
  const std::size_t begin = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (begin != std::string_view::npos && text[begin] == '[') return parse_json_page(text.substr(begin));
  if (begin != std::string_view::npos && text[begin] == '<') return parse_html_page(text.substr(begin), url);
  return unsupported("the server answers something that is neither a page of HTML nor JSON");
}

}  // namespace cframefs::frame
