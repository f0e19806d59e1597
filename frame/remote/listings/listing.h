// The interface of what tells the entries of a directory on a server: a bucket, a web server's pages, or an index.
//
// A listing that is dated (IndexedListing) tells what its index told when it was written. What a dated listing tells of
// an object must be confirmed before a program reads it, and names that it does not tell may exist.
//
// Thread safety: internally synchronised. Errors: io ENOENT if there is no such directory; io; unsupported if the
// server answers something that is no listing; corruption if the answer contradicts its format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codec/base/bytes.h"
#include "frame/base/coordinates.h"
#include "frame/remote/objects/object_state.h"

namespace cframefs::frame {

struct ListedEntry {
  std::string name;  // of one component, decoded; never "", ".", "..", none with '/' or NUL
  bool is_directory = false;
  std::optional<ObjectState> state;  // of an object, if the listing tells its exact length and a tag or date
};

class Listing {
 public:
  virtual ~Listing() = default;
  /// Returns all entries, in order of names, each name once. `directory`: path below the root of the mount, "" for the
  /// root, no '/' at either end.
  virtual Result<std::vector<ListedEntry>> list(const std::string& directory) = 0;
  /// As list(), at least the entries whose names begin with `beginning`.
  virtual Result<std::vector<ListedEntry>> list_beginning(const std::string& directory,
                                                          const std::string& /*beginning*/) {
    return list(directory);
  }
  /// Returns whether list_beginning() costs less than list().
  virtual bool lists_beginnings() const { return false; }
  /// Asks the server for an entry that list() did not tell; nullopt if there is none, or if the listing tells all. An
  /// entry without a state need not exist: its object must be asked for.
  virtual Result<std::optional<ListedEntry>> find_unlisted(const std::string& /*directory*/,
                                                           const std::string& /*name*/) {
    return std::optional<ListedEntry>();
  }
  /// Returns whether list() may tell states that are older than the time for which it is remembered.
  virtual bool is_dated() const { return false; }
  /// Fills `into` with bytes of this state of an object; false if that needs a request.
  virtual bool copy_known(const std::string& /*path*/, const ObjectState& /*state*/, FileOffset /*at*/,
                          codec::ByteSpan /*into*/) const {
    return false;
  }
  /// Returns the address of an object.
  virtual std::string url_of(const std::string& path) const = 0;
};

}  // namespace cframefs::frame
