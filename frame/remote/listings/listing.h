// The interface of what tells the entries of a directory on a server: a bucket, or a web server's pages.
//
// Thread safety: internally synchronised. Errors: io ENOENT if there is no such directory; io; unsupported if the
// server answers something that is no listing; corruption if the answer contradicts its format.
#pragma once

#include <optional>
#include <string>
#include <vector>

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
  /// Returns the address of an object.
  virtual std::string url_of(const std::string& path) const = 0;
};

}  // namespace cframefs::frame
