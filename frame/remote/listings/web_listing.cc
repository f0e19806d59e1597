#include "frame/remote/listings/web_listing.h"

#include <utility>

#include "frame/remote/http/percent_encoding.h"
#include "frame/remote/listings/directory_page.h"
#include "frame/remote/listings/list_objects.h"
#include "frame/remote/listings/listed_directory.h"

namespace cframefs::frame {

WebListing::WebListing(Requests& requests, std::string root_url, std::string query)
    : requests_(requests), root_url_(std::move(root_url)), query_(std::move(query)) {}

std::string WebListing::url_of(const std::string& path) const {
  return root_url_ + percent_encode(path, Slash::kept) + query_;
}

Result<std::vector<ListedEntry>> WebListing::list(const std::string& directory) {
  const std::string url = root_url_ + percent_encode(directory, Slash::kept) + (directory.empty() ? "" : "/");
  HttpRequest request;
  request.url = url + query_;
  request.most_body = kMostListingBytes;
  const auto answer = requests_.send(std::move(request));
  if (!answer) return codec::Failure(answer.error());
  if (answer->status != 200) {
    return codec::unsupported("the server answers a directory with status " + std::to_string(answer->status) +
                              ", not 200");
  }
  auto page = parse_directory_page(answer->body, url);
  if (!page) return codec::Failure(page.error());
  left_out_.fetch_add(page->left_out, std::memory_order_relaxed);

  std::vector<ListedEntry> entries;
  entries.reserve(page->entries.size());
  for (DirectoryPage::Entry& entry : page->entries)
    entries.push_back({std::move(entry.name), entry.is_directory, std::move(entry.state)});
  left_out_.fetch_add(merge_names(entries), std::memory_order_relaxed);
  return entries;
}

}  // namespace cframefs::frame
