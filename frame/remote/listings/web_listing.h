// The directories of a web server, from its own pages (directory_page.h).
//
// Left out and counted are entries with names that a POSIX tree cannot hold, and a file with the name of a directory.
//
// Thread safety: internally synchronised. Ownership: `requests` must outlive this. Errors: as listing.h; unsupported if
// the server lists no directories.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "frame/remote/http/requests.h"
#include "frame/remote/listings/listing.h"

namespace cframefs::frame {

class WebListing final : public Listing {
 public:
  /// `root_url`: of the root directory, percent-encoded, with a '/' at its end. `query`: appended to each address,
  /// empty or with its '?'.
  WebListing(Requests& requests, std::string root_url, std::string query = {});

  Result<std::vector<ListedEntry>> list(const std::string& directory) override;
  std::string url_of(const std::string& path) const override;

  /// Returns the number of names that the listings so far left out.
  std::uint64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }

 private:
  Requests& requests_;
  const std::string root_url_;
  const std::string query_;
  std::atomic<std::uint64_t> left_out_{0};
};

}  // namespace cframefs::frame
