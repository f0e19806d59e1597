// A directory of a server as its index tells it; without an index as the server lists it.
//
// Directories that the index does not know are listed by the server. Names that it does not know are asked for
// (names_beside.h), except those of which it knows another spelling: "x" or "x.b2nd" beside an "x.b2frame".
// The object `.cframefs-index` is in no directory.
//
// Thread safety: internally synchronised. Ownership: owns the listing and the index. Errors: as listing.h; those of
// IndexSource.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frame/remote/listings/index_source.h"
#include "frame/remote/listings/names_beside.h"

namespace cframefs::frame {

class IndexedListing final : public Listing {
 public:
  using Clock = IndexSource::Clock;

  /// `index`: nullptr if none is to be used.
  IndexedListing(std::unique_ptr<Listing> live, std::unique_ptr<IndexSource> index, std::chrono::seconds ttl,
                 const Clock& now = std::chrono::steady_clock::now);

  Result<std::vector<ListedEntry>> list(const std::string& directory) override;
  Result<std::optional<ListedEntry>> find_unlisted(const std::string& directory, const std::string& name) override;
  bool is_dated() const override { return index_ && index_->last(); }
  bool copy_known(const std::string& path, const ObjectState& state, FileOffset at,
                  codec::ByteSpan into) const override;
  std::string url_of(const std::string& path) const override { return live_->url_of(path); }

 private:
  const std::unique_ptr<Listing> live_;
  const std::unique_ptr<IndexSource> index_;
  NamesBeside beside_;
};

}  // namespace cframefs::frame
