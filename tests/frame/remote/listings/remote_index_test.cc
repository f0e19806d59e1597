#include "frame/remote/listings/remote_index.h"

#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zstd.h>

#include "frame/base/xxh3.h"

namespace cframefs::test {
namespace {

using codec::ErrorKind;
using frame::FileOffset;
using frame::IndexedObject;
using frame::ObjectState;
using frame::RemoteIndex;
using Bytes = std::vector<std::uint8_t>;
using Names = std::vector<std::string>;

IndexedObject object_of(const std::string& path, std::uint64_t length = 100) {
  IndexedObject object;
  object.path = path;
  object.state = ObjectState{"\"" + std::to_string(path.size()) + "\"", "", 784111777, length};
  return object;
}

Bytes stored_of(std::vector<IndexedObject> objects) {
  auto stored = frame::encode_index(std::move(objects));
  EXPECT_TRUE(stored) << codec::describe(stored.error());
  return stored.value_or(Bytes{});
}

std::shared_ptr<const RemoteIndex> index_of(std::vector<IndexedObject> objects) {
  auto index = RemoteIndex::parse(stored_of(std::move(objects)));
  EXPECT_TRUE(index) << codec::describe(index.error());
  return index.value_or(nullptr);
}

Names names_in(const RemoteIndex& index, const std::string& directory) {
  Names names;
  const auto entries = index.list(directory);
  if (!entries) return {"error " + std::to_string(entries.error().sys)};
  for (const frame::ListedEntry& entry : *entries)
    names.push_back(entry.name + (entry.is_directory ? "/" : ""));
  return names;
}

/// A stored index whose body is `body`, as a writer may make one that does not check it.
Bytes stored_body(const Bytes& body, std::uint32_t count, std::uint64_t told_length) {
  Bytes stored(40 + ZSTD_compressBound(body.size()));
  stored.resize(40 + ZSTD_compress(&stored[40], stored.size() - 40, body.data(), body.size(), 1));
  const std::string magic("cfindex\0", 8);
  std::copy(magic.begin(), magic.end(), stored.begin());
  codec::store_le(&stored[8], std::uint32_t{1});
  codec::store_le(&stored[12], count);
  codec::store_le(&stored[16], told_length);
  codec::store_le(&stored[24], frame::xxh3(body));
  codec::store_le(&stored[32], frame::xxh3(codec::ByteView(stored).first(32)));
  return stored;
}

Bytes body_of(const Bytes& stored) {
  Bytes body(codec::load_le<std::uint64_t>(&stored[16]));
  EXPECT_EQ(ZSTD_decompress(body.data(), body.size(), &stored[40], stored.size() - 40), body.size());
  return body;
}

TEST(RemoteIndex, AnIndexTellsDirectoriesAndStates) {
  const auto index = index_of({object_of("d/x.b2frame"), object_of("a.b2frame"), object_of("d/e/y"), object_of("d-1"),
                               object_of("d.z"), object_of("d/e/z", 7)});
  ASSERT_TRUE(index);
  EXPECT_EQ(index->object_count(), 6U);
  EXPECT_EQ(names_in(*index, ""), (Names{"a.b2frame", "d/", "d-1", "d.z"}));
  EXPECT_EQ(names_in(*index, "d"), (Names{"e/", "x.b2frame"}));
  EXPECT_EQ(names_in(*index, "d/e"), (Names{"y", "z"}));
  EXPECT_EQ(names_in(*index, "e"), (Names{"error " + std::to_string(ENOENT)}));
  EXPECT_TRUE(index->has_object("d/e/y"));
  EXPECT_FALSE(index->has_object("d/e"));
  EXPECT_TRUE(index->has_directory("d/e"));
  EXPECT_TRUE(index->has_directory(""));
  EXPECT_FALSE(index->has_directory("d/e/y"));
  const auto entries = index->list("d/e");
  ASSERT_TRUE(entries);
  EXPECT_EQ(*entries->back().state, (ObjectState{"\"5\"", "", 784111777, 7}));
}

TEST(RemoteIndex, AnEmptyIndexHasAnEmptyRoot) {
  const auto index = index_of({});
  ASSERT_TRUE(index);
  EXPECT_EQ(names_in(*index, ""), Names{});
}

TEST(RemoteIndex, PiecesServeOnlyTheirStateAndOnlyWhole) {
  IndexedObject object = object_of("x", 1000);
  object.pieces = {{0, Bytes{1, 2, 3, 4}}, {990, Bytes{5, 6}}};
  const auto index = index_of({object, object_of("y")});
  ASSERT_TRUE(index);
  Bytes into(3);
  EXPECT_TRUE(index->copy("x", object.state, FileOffset{1}, into));
  EXPECT_EQ(into, (Bytes{2, 3, 4}));
  EXPECT_FALSE(index->copy("x", object.state, FileOffset{2}, into));
  EXPECT_FALSE(index->copy("x", object.state, FileOffset{989}, into));
  EXPECT_FALSE(index->copy("y", object_of("y").state, FileOffset{0}, into));
  into.resize(2);
  EXPECT_TRUE(index->copy("x", object.state, FileOffset{990}, into));
  EXPECT_EQ(into, (Bytes{5, 6}));
  EXPECT_FALSE(index->copy("x", object.state, FileOffset{UINT64_MAX}, into));
  ObjectState other = object.state;
  other.entity_tag = "\"other\"";
  EXPECT_FALSE(index->copy("x", other, FileOffset{990}, into));
  other = object.state;
  other.length = 1001;
  EXPECT_FALSE(index->copy("x", other, FileOffset{990}, into));
}

TEST(RemoteIndex, PathsOutsideTheTreeAreLeftOutAndCounted) {
  std::vector<IndexedObject> objects;
  const Names bad = {
      "", "..", ".", "../x", "a/../x", "a/./x", "/x", "a//x", "a/", std::string("a\0b", 3), std::string(256, 'n')};
  for (const std::string& path : bad)
    objects.push_back(object_of(path));
  std::string deep = "p";
  while (deep.size() <= RemoteIndex::kMostPathBytes)
    deep += "/p";
  objects.push_back(object_of(deep));
  objects.push_back(object_of("without tag and date"));
  objects.back().state = ObjectState{"", "", 0, 100};
  objects.push_back(object_of("good/" + std::string(255, 'n')));
  const auto index = index_of(objects);
  ASSERT_TRUE(index);
  EXPECT_EQ(index->left_out(), bad.size() + 2);
  EXPECT_EQ(index->object_count(), 1U);
  EXPECT_EQ(names_in(*index, ""), Names{"good/"});
}

TEST(RemoteIndex, ADirectoryHidesAnObjectOfItsName) {
  const auto index = index_of({object_of("a"), object_of("a/b")});
  ASSERT_TRUE(index);
  EXPECT_EQ(names_in(*index, ""), Names{"a/"});
}

TEST(RemoteIndex, EachDamagedByteIsNoticed) {
  IndexedObject object = object_of("x/y", 1000);
  object.pieces = {{0, Bytes(50, 7)}};
  const Bytes stored = stored_of({object, object_of("z")});
  for (std::size_t at = 0; at < stored.size(); ++at) {
    Bytes damaged = stored;
    damaged[at] ^= 0x04U;
    EXPECT_FALSE(RemoteIndex::parse(damaged)) << at;
  }
  for (std::size_t length = 0; length < stored.size(); ++length)
    EXPECT_FALSE(RemoteIndex::parse(codec::ByteView(stored).first(length))) << length;
  Bytes longer = stored;
  longer.push_back(0);
  EXPECT_FALSE(RemoteIndex::parse(longer));
}

TEST(RemoteIndex, ALyingLengthTakesNoMemory) {
  const Bytes body = body_of(stored_of({object_of("x")}));
  for (const std::uint64_t length : {RemoteIndex::kMostBytes + 1, RemoteIndex::kMostBytes, std::uint64_t{0},
                                     std::uint64_t{UINT64_MAX}, std::uint64_t{body.size() + 1}})
    EXPECT_FALSE(RemoteIndex::parse(stored_body(body, 1, length))) << length;
  EXPECT_TRUE(RemoteIndex::parse(stored_body(body, 1, body.size())));
  EXPECT_FALSE(RemoteIndex::parse(stored_body(body, 2, body.size())));
  EXPECT_FALSE(RemoteIndex::parse(stored_body(body, 0, body.size())));
  EXPECT_FALSE(RemoteIndex::parse(stored_body(body, 1'000'001, body.size())));
}

TEST(RemoteIndex, EntriesThatContradictTheFormatAreRefused) {
  const Bytes body = body_of(stored_of({object_of("x")}));
  const auto with = [&](std::size_t at, std::uint8_t value) {
    Bytes changed = body;
    changed[at] = value;
    const auto parsed = RemoteIndex::parse(stored_body(changed, 1, changed.size()));
    return parsed ? ErrorKind::io : parsed.error().kind;
  };
  EXPECT_EQ(with(7, 0x80), ErrorKind::corruption) << "length";
  EXPECT_EQ(with(15, 0x80), ErrorKind::corruption) << "date";
  EXPECT_EQ(with(14, 0x7f), ErrorKind::corruption) << "a date that no header can tell";
  EXPECT_EQ(with(16, 9), ErrorKind::corruption) << "length of the path";
  EXPECT_EQ(with(18, 9), ErrorKind::corruption) << "length of the tag";
  EXPECT_EQ(with(20, 1), ErrorKind::corruption) << "number of pieces";
  EXPECT_EQ(with(23, '\n'), ErrorKind::corruption) << "tag";
  EXPECT_EQ(with(22, 'y'), ErrorKind::io) << "another path is fine";
}

TEST(RemoteIndex, PathsOutOfOrderAndPiecesOutsideAreRefused) {
  Bytes twice = body_of(stored_of({object_of("x")}));
  const Bytes once = twice;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_FALSE(RemoteIndex::parse(stored_body(twice, 2, twice.size())));
  for (const IndexedObject::Piece& piece :
       {IndexedObject::Piece{99, {1, 2}}, IndexedObject::Piece{101, {}}, IndexedObject::Piece{UINT64_MAX, {1}}}) {
    IndexedObject object = object_of("x", 100);
    object.pieces = {piece};
    EXPECT_FALSE(RemoteIndex::parse(stored_of({object}))) << piece.at;
  }
  IndexedObject object = object_of("x", 100);
  object.pieces = {{5, {1, 2}}, {6, {1}}};
  EXPECT_FALSE(RemoteIndex::parse(stored_of({object})));
  object.pieces = {{5, {1, 2}}, {7, {1}}};
  EXPECT_TRUE(RemoteIndex::parse(stored_of({object})));
}

TEST(RemoteIndex, OtherObjectsAndLaterVersionsAreNoIndex) {
  const std::string page = "<html><title>Not found</title> but the status is 200, as some servers do</html>";
  const auto none = RemoteIndex::parse(Bytes(page.begin(), page.end()));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::unsupported);
  Bytes stored = stored_of({object_of("x")});
  stored[8] = 2;
  const auto later = RemoteIndex::parse(stored);
  ASSERT_FALSE(later);
  EXPECT_NE(codec::describe(later.error()).find("version 2"), std::string::npos) << codec::describe(later.error());
}

TEST(RemoteIndex, AHundredThousandFramesAreFarLessThanAGigabyte) {
  std::vector<IndexedObject> objects;
  for (int i = 0; i < 100'000; ++i) {
    IndexedObject object = object_of("runs/2026/" + std::to_string(i) + ".b2frame", 100'000);
    object.pieces = {{0, Bytes(87, static_cast<std::uint8_t>(i))}};
    objects.push_back(std::move(object));
  }
  const Bytes stored = stored_of(objects);
  EXPECT_LT(stored.size(), std::size_t{16} << 20);
  const auto index = RemoteIndex::parse(stored);
  ASSERT_TRUE(index);
  EXPECT_EQ((*index)->list("runs/2026")->size(), 100'000U);
  EXPECT_EQ(names_in(**index, "runs"), Names{"2026/"});
}

}  // namespace
}  // namespace cframefs::test
