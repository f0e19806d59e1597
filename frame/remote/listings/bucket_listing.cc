#include "frame/remote/listings/bucket_listing.h"

#include <cerrno>
#include <string_view>
#include <utility>

#include "frame/remote/listings/listed_directory.h"
#include "frame/remote/listings/listing_text.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

// A server may send pages without entries, but not for ever.
constexpr int kMostPages = 20'000;
constexpr int kMostPagesOfBeginning = 4;

}  // namespace

BucketListing::BucketListing(Requests& requests, std::string list_url, std::string prefix, ObjectUrl object_url)
    : requests_(requests),
      list_url_(std::move(list_url)),
      prefix_(std::move(prefix)),
      object_url_(std::move(object_url)) {}

Result<ObjectsPage> BucketListing::page(const ListObjectsQuery& query) {
  HttpRequest request;
  request.url = list_url_ + "?" + text_of(query);
  request.most_body = kMostListingBytes;
  const auto answer = requests_.send(std::move(request));
  if (!answer) return Failure(answer.error());
  if (answer->status != 200) {
    return codec::unsupported("the server answers a listing with status " + std::to_string(answer->status) +
                              ", not 200");
  }
  return parse_objects_page(answer->body);
}

Result<void> BucketListing::take(ObjectsPage page, const std::string& prefix, Found& found) {
  const auto name_below = [&](const std::string& key) -> Result<std::string> {
    if (!key.starts_with(prefix)) return corrupt("the list of objects has a key outside the directory");
    return key.substr(prefix.size());
  };
  const auto enter = [&](std::string name, bool is_directory, std::optional<ObjectState> state) {
    if (is_entry_name(name)) {
      found.entries.push_back({std::move(name), is_directory, std::move(state)});
    } else {
      left_out_.fetch_add(1, std::memory_order_relaxed);
    }
  };
  found.exists = found.exists || !page.objects.empty() || !page.prefixes.empty();
  for (ObjectsPage::Object& object : page.objects) {
    auto name = name_below(object.key);
    if (!name) return Failure(name.error());
    if (name->empty()) continue;  // stands for the directory itself
    // A server that knows no delimiter tells all keys below.
    const std::size_t slash = name->find('/');
    if (slash != std::string::npos) {
      enter(name->substr(0, slash), true, std::nullopt);
    } else if (object.state.is_identified()) {
      enter(std::move(*name), false, std::move(object.state));
    } else {
      enter(std::move(*name), false, std::nullopt);
    }
  }
  for (const std::string& key : page.prefixes) {
    const auto name = name_below(key);
    if (!name) return Failure(name.error());
    enter(name->substr(0, name->find('/')), true, std::nullopt);
  }
  return {};
}

/// Asks for the entries of the directory at `prefix` whose names begin with `beginning`.
Result<BucketListing::Found> BucketListing::collect(const std::string& prefix, const std::string& beginning,
                                                    int most_pages) {
  ListObjectsQuery query;
  query.prefix = prefix + beginning;
  query.stops_at_slashes = true;
  Found found;
  for (int count = 1;; ++count) {
    auto listed = page(query);
    if (!listed) return Failure(listed.error());
    const bool is_last = !listed->is_truncated;
    std::string continuation = std::move(listed->continuation);
    if (auto taken = take(std::move(*listed), prefix, found); !taken) return Failure(taken.error());
    if (found.entries.size() > kMostEntries) {
      return codec::unsupported("the directory has more than 1000000 entries");
    }
    if (is_last) break;
    if (continuation == query.continuation) return corrupt("the list of objects repeats a continuation token");
    if (count == most_pages) return corrupt("the list of objects has no end after " + std::to_string(count) + " pages");
    query.continuation = std::move(continuation);
  }
  left_out_.fetch_add(merge_names(found.entries), std::memory_order_relaxed);
  return found;
}

Result<std::vector<ListedEntry>> BucketListing::list(const std::string& directory) {
  auto found = collect(directory.empty() ? prefix_ : prefix_ + directory + "/", "", kMostPages);
  if (!found) return Failure(found.error());
  if (!found->exists && !directory.empty()) return codec::io_error(ENOENT, "list of objects");
  return std::move(found->entries);
}

Result<std::vector<ListedEntry>> BucketListing::list_beginning(const std::string& directory,
                                                               const std::string& beginning) {
  auto found = collect(directory.empty() ? prefix_ : prefix_ + directory + "/", beginning, kMostPagesOfBeginning);
  if (!found) return Failure(found.error());
  return std::move(found->entries);
}

}  // namespace cframefs::frame
