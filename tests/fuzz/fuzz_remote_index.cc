// The index of a directory on a server. The input is a stored index; if it is none, it is taken as a body, for which a
// header is made, so that the fuzzer need not find digests.
#include <algorithm>
#include <string>
#include <vector>

#include <zstd.h>

#include "frame/base/xxh3.h"
#include "frame/remote/listings/listed_directory.h"
#include "frame/remote/listings/listing_text.h"
#include "frame/remote/listings/remote_index.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace cframefs;

void check_directory(const frame::RemoteIndex& index, const std::string& directory, int depth) {
  const auto entries = index.list(directory);
  FUZZ_CHECK(entries.has_value() || !directory.empty());
  if (!entries) return;
  std::string before;
  for (const frame::ListedEntry& entry : *entries) {
    FUZZ_CHECK(frame::is_entry_name(entry.name));
    FUZZ_CHECK(before.empty() || before < entry.name);
    before = entry.name;
    const std::string path = directory.empty() ? entry.name : directory + "/" + entry.name;
    if (entry.is_directory) {
      FUZZ_CHECK(index.has_directory(path));
      if (depth < 3) check_directory(index, path, depth + 1);
      continue;
    }
    FUZZ_CHECK(index.has_object(path));
    FUZZ_CHECK(entry.state && entry.state->is_identified() && entry.state->length <= INT64_MAX);
    FUZZ_CHECK(entry.state->entity_tag.empty() || frame::is_strong_tag(entry.state->entity_tag));
    std::vector<std::uint8_t> into(std::min<std::uint64_t>(entry.state->length, 64));
    for (const std::uint64_t at : {std::uint64_t{0}, entry.state->length / 2, entry.state->length - into.size()})
      static_cast<void>(index.copy(path, *entry.state, frame::FileOffset{at}, into));
  }
}

/// Returns the stored form of a body with this number of entries.
std::vector<std::uint8_t> stored_form(codec::ByteView body, std::uint32_t count) {
  std::vector<std::uint8_t> stored(40 + ZSTD_compressBound(body.size()));
  const std::size_t length = ZSTD_compress(&stored[40], stored.size() - 40, body.data(), body.size(), 1);
  stored.resize(40 + length);
  const std::string magic("cfindex\0", 8);
  std::copy(magic.begin(), magic.end(), stored.begin());
  codec::store_le(&stored[8], std::uint32_t{1});
  codec::store_le(&stored[12], count);
  codec::store_le(&stored[16], std::uint64_t{body.size()});
  codec::store_le(&stored[24], frame::xxh3(body));
  codec::store_le(&stored[32], frame::xxh3(codec::ByteView(stored).first(32)));
  return stored;
}

bool read(codec::ByteView stored) {
  const auto index = frame::RemoteIndex::parse(stored);
  if (index) {
    check_directory(**index, "", 0);
  } else {
    FUZZ_CHECK(index.error().kind == codec::ErrorKind::corruption ||
               index.error().kind == codec::ErrorKind::unsupported);
  }
  return index.has_value();
}

}  // namespace

FUZZ_TARGET(remote_index)(const std::uint8_t* data, std::size_t size) {
  if (read({data, size}) || size == 0) return 0;
  static_cast<void>(read(stored_form({data + 1, size - 1}, data[0])));
  return 0;
}
