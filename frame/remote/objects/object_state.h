// What identifies one state of an object on a server, and the conditions that tie a request to it.
//
// Thread safety: values and pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "frame/io/file_version.h"
#include "frame/remote/http/http.h"

namespace cframefs::frame {

struct ObjectState {
  std::string entity_tag;          // strong, with its quotes; empty if the server gave none or a weak one
  std::string version_id;          // of a bucket with versions: that version can be read after it was replaced
  std::int64_t last_modified = 0;  // seconds since 1970; 0: not known
  std::uint64_t length = 0;        // bytes

  bool operator==(const ObjectState&) const = default;
  /// Returns false if neither a tag nor a date identifies the state: a replacement of the same length is not noticed.
  bool is_identified() const { return !entity_tag.empty() || last_modified != 0; }
};

/// Returns whether the text is a strong tag, with its quotes, that may go into the header of a request.
bool is_strong_tag(std::string_view text);

/// Returns the state that an answer tells, length not counted.
ObjectState state_of(const HttpAnswer& answer);

/// Ties a request for a part of the object at `url` to the state: by its version, If-Match, or If-Unmodified-Since.
void tie_to(const ObjectState& state, HttpRequest& request);

/// Returns the version of a file with this state, of the object at `url`.
FileVersion version_of(const std::string& url, const ObjectState& state);

}  // namespace cframefs::frame
