// The directories of a bucket: keys below a prefix, where a '/' ends the name of a directory.
//
// A listing asks for page after page, for at most 1,000,000 entries. Left out and counted are keys with names that a
// POSIX tree cannot hold ("", so "a//b", ".", "..", with NUL, longer than 255 bytes), and an object with the name of a
// directory: what lies below it is reachable only through the directory. A key that ends in '/' stands for its
// directory, which may be empty.
//
// Thread safety: internally synchronised. Ownership: `requests` must outlive this. Errors: as listing.h; unsupported
// for more entries than the limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frame/remote/http/requests.h"
#include "frame/remote/listings/list_objects.h"
#include "frame/remote/listings/listing.h"

namespace cframefs::frame {

class BucketListing final : public Listing {
 public:
  static constexpr std::size_t kMostEntries = 1'000'000;  // of a directory

  /// Returns the address of the object with a key.
  using ObjectUrl = std::function<std::string(const std::string& key)>;

  /// `list_url`: address of the bucket, without a query. `prefix`: of the root, "" or with a '/' at its end.
  BucketListing(Requests& requests, std::string list_url, std::string prefix, ObjectUrl object_url);

  Result<std::vector<ListedEntry>> list(const std::string& directory) override;
  Result<std::vector<ListedEntry>> list_beginning(const std::string& directory, const std::string& beginning) override;
  bool lists_beginnings() const override { return true; }
  std::string url_of(const std::string& path) const override { return object_url_(prefix_ + path); }

  /// Returns the number of names that the listings so far left out.
  std::uint64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }

 private:
  struct Found {
    std::vector<ListedEntry> entries;  // with names that occur twice
    bool exists = false;               // some key begins with the prefix
  };
  Result<ObjectsPage> page(const ListObjectsQuery& query);
  Result<void> take(ObjectsPage page, const std::string& prefix, Found& found);
  Result<Found> collect(const std::string& prefix, const std::string& beginning, int most_pages);

  Requests& requests_;
  const std::string list_url_;
  const std::string prefix_;
  const ObjectUrl object_url_;
  std::atomic<std::uint64_t> left_out_{0};
};

}  // namespace cframefs::frame
