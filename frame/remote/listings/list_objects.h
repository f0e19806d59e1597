// The request ListObjectsV2 of S3: its query, and its answer, which is XML.
//
// An answer is refused if it is longer than 8 MiB, declares a document type (and so could declare entities), or nests
// elements deeper than a listing does. Names are those of the bucket, decoded.
//
// Thread safety: functions only. Ownership: values. Errors: unsupported for an answer that is no list of objects;
// corruption for a list that contradicts its format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/base/bytes.h"
#include "frame/remote/objects/object_state.h"

namespace cframefs::frame {

constexpr std::uint64_t kMostListingBytes = std::uint64_t{8} << 20;  // of one answer

struct ListObjectsQuery {
  std::string prefix;             // that keys begin with
  std::string continuation;       // of the page before; empty: the first page
  bool stops_at_slashes = false;  // keys with a '/' after the prefix are told as prefixes
};

/// Returns the query string, in order of names and percent-encoded, without the '?'.
std::string text_of(const ListObjectsQuery& query);

struct ObjectsPage {
  struct Object {
    std::string key;
    ObjectState state;  // without a version; not identified if the server gives neither tag nor date
  };
  std::vector<Object> objects;
  std::vector<std::string> prefixes;
  bool is_truncated = false;
  std::string continuation;  // of the next page, if truncated
};

Result<ObjectsPage> parse_objects_page(codec::ByteView answer);

}  // namespace cframefs::frame
