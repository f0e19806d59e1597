// The entries of a directory that a listing told.
//
// Thread safety: values. Ownership: values. Errors: none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "frame/remote/listings/listing.h"

namespace cframefs::frame {

struct ListedDirectory {
  std::vector<ListedEntry> entries;  // in order of names, each name once

  /// Returns the entry, nullptr if there is none.
  const ListedEntry* find(const std::string& name) const;
};

/// Puts the entries in order of names and removes all but one with a name: a directory stays rather than an object, and
/// of equal kinds the first. Returns the number of objects that a directory hides.
std::size_t merge_names(std::vector<ListedEntry>& entries);

}  // namespace cframefs::frame
