// Remembers the directories that a listing told, so that a look-up of a name needs no request.
//
// A directory is valid for a time (ttl) from the begin of its request. Threads that need the same directory wait for
// one request. Directories are forgotten, those not used for longest first, when their entries are more than the bound;
// the directory that was listed last stays even if it alone has more. Failures are not remembered.
//
// Thread safety: internally synchronised. Ownership: `listing` must outlive this. Errors: those of the listing.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "codec/base/mutex.h"
#include "frame/base/lru_cache.h"
#include "frame/remote/http/shared_attempt.h"
#include "frame/remote/listings/listed_directory.h"

namespace cframefs::frame {

class CachingListing {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  static constexpr std::size_t kMostEntries = 200'000;  // of all directories
  static constexpr std::size_t kDirectoryCharge = 8;    // entries that a directory counts for beside its own

  /// `ttl`: 0 remembers nothing.
  CachingListing(Listing& listing, std::chrono::seconds ttl, std::size_t most_entries = kMostEntries,
                 Clock now = std::chrono::steady_clock::now);

  /// Returns a directory, as Listing::list().
  Result<std::shared_ptr<const ListedDirectory>> list(const std::string& directory);
  /// Returns a directory that is remembered and valid; nullptr if there is none. Sends nothing.
  std::shared_ptr<const ListedDirectory> remembered(const std::string& directory);
  /// The listing itself, for what is not remembered.
  const Listing& source() const { return listing_; }
  Listing& source() { return listing_; }
  std::string url_of(const std::string& path) const { return listing_.url_of(path); }

 private:
  using Listed = std::shared_ptr<const ListedDirectory>;
  using Attempt = SharedAttempt<Listed>;
  struct Remembered {
    Listed listed;
    std::chrono::steady_clock::time_point until;
  };

  Result<Listed> ask(const std::string& directory);
  std::shared_ptr<Attempt> attempt_of(const std::string& directory);
  void drop(std::shared_ptr<Attempt> attempt, const std::string& directory);

  Listing& listing_;
  const std::chrono::seconds ttl_;
  const Clock now_;
  LruCache<std::string, Remembered> remembered_;
  codec::Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Attempt>> attempts_ GUARDED_BY(mutex_);  // that threads wait for
};

}  // namespace cframefs::frame
