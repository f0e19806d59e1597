// Pages by which web servers list a directory: JSON (autoindex_format json of nginx, browse of Caddy) and HTML.
//
// Of HTML the parser takes the links (<a href>) that lead exactly one level below the page's own address; links with a
// query, to the parent and to elsewhere are ignored. So each page that links to its own files serves as a listing. A
// page without such a link is a listing only if it says so: by its title, or by a link to its parent.
//
// Thread safety: functions only. Ownership: values. Errors: unsupported for a page that is no listing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "codec/base/bytes.h"
#include "frame/remote/objects/object_state.h"

namespace cframefs::frame {

struct DirectoryPage {
  struct Entry {
    std::string name;  // a name of a POSIX tree
    bool is_directory = false;
    // Of JSON with size and date of modification. Both are exact, as nginx has them from stat(2) for its headers, too.
    std::optional<ObjectState> state;
  };
  std::vector<Entry> entries;  // in order of the page; a name may occur twice
  std::size_t left_out = 0;    // entries with names that a POSIX tree cannot hold
};

/// `url`: address of the page, percent-encoded, with a '/' at its end.
Result<DirectoryPage> parse_directory_page(codec::ByteView page, const std::string& url);

}  // namespace cframefs::frame
