#include "frame/remote/listings/remote_index.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include <fmt/core.h>
#include <zstd.h>

#include "frame/base/xxh3.h"
#include "frame/remote/listings/listed_directory.h"
#include "frame/remote/listings/listing_text.h"
#include "frame/remote/objects/range_answer.h"

namespace cframefs::frame {
namespace {

using codec::corrupt;
using codec::Failure;
using codec::load_le;

// The header, little-endian; the body follows as one zstd frame.
constexpr std::array<std::uint8_t, 8> kMagic = {'c', 'f', 'i', 'n', 'd', 'e', 'x', 0};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kCountAt = 12;
constexpr std::size_t kBodyLengthAt = 16;
constexpr std::size_t kBodyDigestAt = 24;
constexpr std::size_t kHeaderDigestAt = 32;
constexpr std::size_t kHeaderBytes = 40;

// An entry of the body: length of the object, modification time, lengths of path and tag, number of pieces; then path,
// tag and pieces.
constexpr std::size_t kModifiedAt = 8;
constexpr std::size_t kPathLengthAt = 16;
constexpr std::size_t kIndexedTagLengthAt = 18;
constexpr std::size_t kPieceCountAt = 20;
constexpr std::size_t kEntryBytes = 22;
// A piece: its place, its length; then its bytes.
constexpr std::size_t kPieceLengthAt = 8;
constexpr std::size_t kPieceBytes = 12;

constexpr std::int64_t kLatestDate = 253'402'300'799;  // the end of the year 9999, which dates of HTTP can tell
constexpr int kLevel = 9;

std::string_view text_at(const std::uint8_t* at, std::size_t length) {
  return {reinterpret_cast<const char*>(at), length};
}

/// Returns whether the path leads to an object below the root, each component a name of a POSIX tree.
bool is_path_below(std::string_view path) {
  while (true) {
    const std::size_t slash = path.find('/');
    if (!is_entry_name(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

/// Returns the length of the entry that begins with `rest`, with its pieces; corruption if it is damaged.
Result<std::size_t> checked_length(codec::ByteView rest) {
  if (rest.size() < kEntryBytes) return corrupt("the index ends within an entry");
  const auto object_length = load_le<std::uint64_t>(rest.data());
  const auto modified = static_cast<std::int64_t>(load_le<std::uint64_t>(&rest[kModifiedAt]));
  const std::size_t path_length = load_le<std::uint16_t>(&rest[kPathLengthAt]);
  const std::size_t tag_length = load_le<std::uint16_t>(&rest[kIndexedTagLengthAt]);
  const std::size_t pieces = load_le<std::uint16_t>(&rest[kPieceCountAt]);
  std::size_t at = kEntryBytes + path_length + tag_length;
  if (rest.size() < at) return corrupt("the index ends within a path");
  if (object_length > kMostObjectBytes || modified < 0 || modified > kLatestDate)
    return corrupt("the index has an object with an impossible length or date");
  if (tag_length > 0 && !is_strong_tag(text_at(&rest[kEntryBytes + path_length], tag_length)))
    return corrupt("the index has an entity tag that no server sends");
  std::uint64_t end_before = 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    if (rest.size() - at < kPieceBytes) return corrupt("the index ends within a piece");
    const auto place = load_le<std::uint64_t>(&rest[at]);
    const std::uint64_t length = load_le<std::uint32_t>(&rest[at + kPieceLengthAt]);
    at += kPieceBytes;
    if (rest.size() - at < length) return corrupt("the index ends within a piece");
    if (place < end_before || place > object_length || length > object_length - place)
      return corrupt("the index has a piece outside its object, or out of order");
    end_before = place + length;
    at += length;
  }
  return at;
}

/// Fills `body`; corruption if the stream is another one.
Result<void> decompress(codec::ByteView stream, codec::UninitializedBytes& body) {
  const std::size_t done = ZSTD_decompress(body.data(), body.size(), stream.data(), stream.size());
  if (ZSTD_isError(done) != 0)
    return corrupt(fmt::format("the index cannot be decompressed: {}", ZSTD_getErrorName(done)));
  if (done != body.size()) return corrupt("the zstd frame of the index is too short");
  return {};
}

Result<void> check_header(codec::ByteView stored) {
  if (stored.size() < kHeaderBytes || !std::equal(kMagic.begin(), kMagic.end(), stored.begin()))
    return codec::unsupported("the object is no index of cframefs");
  if (const auto version = load_le<std::uint32_t>(&stored[kVersionAt]); version != kVersion)
    return codec::unsupported(
        fmt::format("the index has version {}; this program reads version {}", version, kVersion));
  if (xxh3(stored.first(kHeaderDigestAt)) != load_le<std::uint64_t>(&stored[kHeaderDigestAt]))
    return corrupt("the header of the index is damaged");
  const auto count = load_le<std::uint32_t>(&stored[kCountAt]);
  if (count > RemoteIndex::kMostObjects)
    return codec::unsupported(
        fmt::format("the index has {} objects, at most {} are read", count, RemoteIndex::kMostObjects));
  const auto length = load_le<std::uint64_t>(&stored[kBodyLengthAt]);
  if (length > RemoteIndex::kMostBytes)
    return codec::unsupported(
        fmt::format("the index has {} bytes, at most {} are read", length, RemoteIndex::kMostBytes));
  return {};
}

}  // namespace

// ---- reading -----------------------------------------------------------------------------------------------------

Result<std::shared_ptr<const RemoteIndex>> RemoteIndex::parse(codec::ByteView stored) {
  if (stored.size() > kMostStoredBytes)
    return codec::unsupported(
        fmt::format("the index has {} bytes as stored, at most {} are read", stored.size(), kMostStoredBytes));
  if (auto checked = check_header(stored); !checked) return Failure(checked.error());
  const std::shared_ptr<RemoteIndex> index(new RemoteIndex());
  const auto length = static_cast<std::size_t>(load_le<std::uint64_t>(&stored[kBodyLengthAt]));
  const codec::ByteView stream = stored.subspan(kHeaderBytes);
  // Before memory is taken: the header may lie.
  if (ZSTD_getFrameContentSize(stream.data(), stream.size()) != length)
    return corrupt("the length of the index is not that of its zstd frame");
  index->body_.resize(length);
  if (auto done = decompress(stream, index->body_); !done) return Failure(done.error());
  if (xxh3(index->body_) != load_le<std::uint64_t>(&stored[kBodyDigestAt])) return corrupt("the index is damaged");
  if (auto added = index->add_entries(load_le<std::uint32_t>(&stored[kCountAt])); !added) return Failure(added.error());
  return std::shared_ptr<const RemoteIndex>(index);
}

/// Checks all entries of the body and notes where they are.
Result<void> RemoteIndex::add_entries(std::uint64_t count) {
  const codec::ByteView body(body_);
  std::size_t at = 0;
  std::string_view before;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto length = checked_length(body.subspan(at));
    if (!length) return Failure(length.error());
    const std::string_view path = text_at(&body[at + kEntryBytes], load_le<std::uint16_t>(&body[at + kPathLengthAt]));
    if (i > 0 && path <= before) return corrupt("the paths of the index are not in order");
    before = path;
    const bool is_identified = load_le<std::uint16_t>(&body[at + kIndexedTagLengthAt]) > 0 ||
                               load_le<std::uint64_t>(&body[at + kModifiedAt]) != 0;
    if (is_identified && path.size() <= kMostPathBytes && is_path_below(path)) {
      entries_.push_back(static_cast<std::uint32_t>(at));
    } else {
      ++left_out_;
    }
    at += *length;
  }
  if (at != body.size()) return corrupt("the index has bytes behind its last entry");
  return {};
}

std::string_view RemoteIndex::path_at(std::size_t number) const {
  const std::uint8_t* const entry = &body_[entries_[number]];
  return text_at(entry + kEntryBytes, load_le<std::uint16_t>(entry + kPathLengthAt));
}

RemoteIndex::Entry RemoteIndex::entry_at(std::size_t number) const {
  const std::uint8_t* const at = &body_[entries_[number]];
  const std::size_t tag_length = load_le<std::uint16_t>(at + kIndexedTagLengthAt);
  Entry entry;
  entry.path = path_at(number);
  const std::uint8_t* const tag = at + kEntryBytes + entry.path.size();
  entry.state.entity_tag = text_at(tag, tag_length);
  entry.state.length = load_le<std::uint64_t>(at);
  entry.state.last_modified = static_cast<std::int64_t>(load_le<std::uint64_t>(at + kModifiedAt));
  entry.pieces = tag + tag_length;
  entry.piece_count = load_le<std::uint16_t>(at + kPieceCountAt);
  return entry;
}

/// Returns the number of the first entry whose path is not before `path`.
std::size_t RemoteIndex::first_from(std::string_view path) const {
  std::size_t begin = 0;
  for (std::size_t count = entries_.size(); count > 0;) {
    const std::size_t half = count / 2;
    if (path_at(begin + half) < path) {
      begin += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return begin;
}

Result<std::vector<ListedEntry>> RemoteIndex::list(const std::string& directory) const {
  const std::string prefix = directory.empty() ? "" : directory + "/";
  std::vector<ListedEntry> listed;
  for (std::size_t at = first_from(prefix); at < entries_.size() && path_at(at).starts_with(prefix);) {
    const std::string_view below = path_at(at).substr(prefix.size());
    const std::size_t slash = below.find('/');
    if (slash == std::string_view::npos) {
      listed.push_back({std::string(below), false, entry_at(at).state});
      ++at;
    } else {
      std::string name(below.substr(0, slash));
      // All paths below the directory are before this one.
      constexpr char kAfterSlash = '/' + 1;
      at = first_from(prefix + name + kAfterSlash);
      listed.push_back({std::move(name), true, std::nullopt});
    }
  }
  if (listed.empty() && !directory.empty()) return codec::io_error(ENOENT, "list");
  merge_names(listed);
  return listed;
}

bool RemoteIndex::has_object(std::string_view path) const {
  const std::size_t at = first_from(path);
  return at < entries_.size() && path_at(at) == path;
}

bool RemoteIndex::has_directory(std::string_view path) const {
  if (path.empty()) return true;
  const std::string prefix = std::string(path) + "/";
  const std::size_t at = first_from(prefix);
  return at < entries_.size() && path_at(at).starts_with(prefix);
}

bool RemoteIndex::copy(std::string_view path, const ObjectState& state, FileOffset at, codec::ByteSpan into) const {
  const std::size_t number = first_from(path);
  if (number >= entries_.size() || path_at(number) != path) return false;
  const Entry entry = entry_at(number);
  if (!is_same_state(entry.state, state)) return false;
  const std::uint8_t* piece = entry.pieces;
  for (std::size_t i = 0; i < entry.piece_count; ++i) {
    const auto place = load_le<std::uint64_t>(piece);
    const std::uint64_t length = load_le<std::uint32_t>(piece + kPieceLengthAt);
    if (at.value >= place && at.value - place <= length && into.size() <= length - (at.value - place)) {
      std::copy_n(piece + kPieceBytes + (at.value - place), into.size(), into.begin());
      return true;
    }
    piece += kPieceBytes + length;
  }
  return false;
}

// ---- writing -----------------------------------------------------------------------------------------------------

namespace {

void append_entry(const IndexedObject& object, std::vector<std::uint8_t>& body) {
  std::array<std::uint8_t, kEntryBytes> fixed{};
  codec::store_le(fixed.data(), object.state.length);
  codec::store_le(&fixed[kModifiedAt], static_cast<std::uint64_t>(object.state.last_modified));
  codec::store_le(&fixed[kPathLengthAt], static_cast<std::uint16_t>(object.path.size()));
  codec::store_le(&fixed[kIndexedTagLengthAt], static_cast<std::uint16_t>(object.state.entity_tag.size()));
  codec::store_le(&fixed[kPieceCountAt], static_cast<std::uint16_t>(object.pieces.size()));
  codec::append(body, fixed);
  body.insert(body.end(), object.path.begin(), object.path.end());
  body.insert(body.end(), object.state.entity_tag.begin(), object.state.entity_tag.end());
  for (const IndexedObject::Piece& piece : object.pieces) {
    std::array<std::uint8_t, kPieceBytes> place{};
    codec::store_le(place.data(), piece.at);
    codec::store_le(&place[kPieceLengthAt], static_cast<std::uint32_t>(piece.bytes.size()));
    codec::append(body, place);
    codec::append(body, piece.bytes);
  }
}

}  // namespace

Result<std::vector<std::uint8_t>> encode_index(std::vector<IndexedObject> objects) {
  std::sort(objects.begin(), objects.end(),
            [](const IndexedObject& a, const IndexedObject& b) { return a.path < b.path; });
  if (objects.size() > RemoteIndex::kMostObjects)
    return codec::invalid(
        fmt::format("an index holds at most {} objects, not {}", RemoteIndex::kMostObjects, objects.size()));
  std::vector<std::uint8_t> body;
  for (const IndexedObject& object : objects) {
    constexpr std::size_t kMost = std::numeric_limits<std::uint16_t>::max();
    if (object.path.size() > kMost || object.state.entity_tag.size() > kMost || object.pieces.size() > kMost)
      return codec::invalid("a path, a tag or the pieces of an object are too many for an index");
    append_entry(object, body);
    if (body.size() > RemoteIndex::kMostBytes)
      return codec::invalid(
          fmt::format("the index would have more than {} bytes; make one for each of several directories",
                      RemoteIndex::kMostBytes));
  }
  std::vector<std::uint8_t> stored(kHeaderBytes + ZSTD_compressBound(body.size()));
  const std::size_t length =
      ZSTD_compress(&stored[kHeaderBytes], stored.size() - kHeaderBytes, body.data(), body.size(), kLevel);
  if (ZSTD_isError(length) != 0) return codec::io_error(ENOMEM, "compress the index", ZSTD_getErrorName(length));
  stored.resize(kHeaderBytes + length);
  if (stored.size() > RemoteIndex::kMostStoredBytes)
    return codec::invalid(
        fmt::format("the index would have more than {} bytes as stored; make one for each of several directories",
                    RemoteIndex::kMostStoredBytes));
  std::copy(kMagic.begin(), kMagic.end(), stored.begin());
  codec::store_le(&stored[kVersionAt], kVersion);
  codec::store_le(&stored[kCountAt], static_cast<std::uint32_t>(objects.size()));
  codec::store_le(&stored[kBodyLengthAt], static_cast<std::uint64_t>(body.size()));
  codec::store_le(&stored[kBodyDigestAt], xxh3(body));
  codec::store_le(&stored[kHeaderDigestAt], xxh3(codec::ByteView(stored).first(kHeaderDigestAt)));
  return stored;
}

}  // namespace cframefs::frame
