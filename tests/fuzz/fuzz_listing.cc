// Listings of servers: an answer of ListObjectsV2, or a page of a web server, whichever the input is.
#include <algorithm>
#include <string>
#include <string_view>

#include "frame/remote/listings/directory_page.h"
#include "frame/remote/listings/html_links.h"
#include "frame/remote/listings/list_objects.h"
#include "frame/remote/listings/listed_directory.h"
#include "frame/remote/listings/listing_text.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace cframefs;

void check_tag(const std::string& tag) {
  // It goes into a header.
  FUZZ_CHECK(tag.find_first_of("\r\n") == std::string::npos);
  FUZZ_CHECK(tag.empty() || (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"'));
}

void read_objects(codec::ByteView bytes) {
  const auto page = frame::parse_objects_page(bytes);
  if (!page) {
    FUZZ_CHECK(page.error().kind != codec::ErrorKind::io);
    return;
  }
  FUZZ_CHECK(!page->is_truncated || !page->continuation.empty());
  for (const frame::ObjectsPage::Object& object : page->objects) {
    FUZZ_CHECK(object.state.length <= INT64_MAX);
    check_tag(object.state.entity_tag);
  }
}

void read_page(codec::ByteView bytes) {
  const auto page = frame::parse_directory_page(bytes, "http://host/a%20b/");
  if (!page) {
    FUZZ_CHECK(page.error().kind == codec::ErrorKind::unsupported);
    return;
  }
  std::vector<frame::ListedEntry> entries;
  for (const frame::DirectoryPage::Entry& entry : page->entries) {
    FUZZ_CHECK(frame::is_entry_name(entry.name));
    FUZZ_CHECK(!entry.state || (entry.state->is_identified() && entry.state->length <= INT64_MAX));
    entries.push_back({entry.name, entry.is_directory, entry.state});
  }
  const std::size_t before = entries.size();
  FUZZ_CHECK(frame::merge_names(entries) + entries.size() <= before);
  const auto equal =
      std::adjacent_find(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name >= b.name; });
  FUZZ_CHECK(equal == entries.end());
}

}  // namespace

FUZZ_TARGET(listing)(const std::uint8_t* data, std::size_t size) {
  read_objects({data, size});
  read_page({data, size});
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::size_t length = 0;
  for (const std::string& target : frame::links_of_html(text).targets)
    length += target.size();
  FUZZ_CHECK(length <= size);
  FUZZ_CHECK(frame::decoded_name(text).size() <= size);
  FUZZ_CHECK(frame::without_references(text).size() <= size);
  static_cast<void>(frame::seconds_of_iso_date(text));
  return 0;
}
