// Asks a server for names that the index of a directory does not tell.
//
// A bucket is asked for the keys that begin as the name does without its suffix, a web server for the page of the
// directory: one request tells all spellings of a name that a mount tries (x, x.b2frame, x.b2nd, ...). The answers are
// remembered as listings are. A server that lists nothing is not asked for a listing again in that time; the object
// itself must be asked for.
//
// Thread safety: internally synchronised. Ownership: `live` must outlive this. Errors: those of the listing, but for
// those that mean that it is not told.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "codec/base/mutex.h"
#include "frame/remote/listings/caching_listing.h"

namespace cframefs::frame {

class NamesBeside {
 public:
  using Clock = CachingListing::Clock;

  NamesBeside(Listing& live, std::chrono::seconds ttl, const Clock& now);

  /// Returns the entry; nullopt if there is none; an entry without a state if the server does not list. `stem`: the
  /// begin of the name.
  Result<std::optional<ListedEntry>> find(const std::string& directory, const std::string& stem,
                                          const std::string& name);

 private:
  /// Tells the entries of a directory whose names have the same begin. The key is both, with a NUL between.
  class Beginnings final : public Listing {
   public:
    explicit Beginnings(Listing& live) : live_(live) {}
    Result<std::vector<ListedEntry>> list(const std::string& key) override;
    std::string url_of(const std::string& path) const override { return live_.url_of(path); }

   private:
    Listing& live_;
  };

  bool is_refused() const;

  Listing& live_;
  const std::chrono::seconds ttl_;
  const Clock now_;
  Beginnings beginnings_;
  CachingListing remembered_;
  mutable codec::Mutex mutex_;
  std::chrono::steady_clock::time_point refused_until_ GUARDED_BY(mutex_){};
};

}  // namespace cframefs::frame
