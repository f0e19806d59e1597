// Costs of small files that describe much more than they store. The tests measure memory and the bytes read of the
// file. The files are made here; tests/fs/mount/bombs_stores.py has the same kinds for mounts.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "codec/chunk_encoder.h"
#include "frame/cframe/cframe.h"
#include "frame/numpy/bloscpack_numpy.h"
#include "frame/numpy/dtype.h"
#include "frame/open/layer_attributes.h"
#include "frame/store/msgpack.h"
#include "frame/store/store.h"
#include "frame/store/store_files.h"
#include "frame/write/frame_metalayers.h"
#include "frame/write/frame_writer.h"
#include "tests/support/array_builder.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/memory_meter.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zip_builder.h"

namespace cframefs::frame {
namespace {

using test::Bytes;
using test::FrameBuilder;

constexpr std::size_t kMebi = std::size_t{1} << 20;
constexpr std::size_t kMaxMemory = 64 * kMebi;

Bytes encoded(const Bytes& plain) {
  codec::EncodeContext context;
  const auto chunk = codec::encode_chunk(context, {}, plain);
  EXPECT_TRUE(chunk);
  return {chunk->bytes.begin(), chunk->bytes.end()};
}

/// A frame of `head`, zeros and `tail`, of which only head and tail count as stored. Counts the bytes read.
class CountedSource final : public ByteSource {
 public:
  CountedSource(Bytes head, std::uint64_t size, Bytes tail)
      : head_(std::move(head)), size_(size), tail_(std::move(tail)) {}
  explicit CountedSource(const Bytes& all) : CountedSource(all, all.size(), {}) {}
  std::uint64_t size() const override { return size_; }
  std::uint64_t stored() const override { return head_.size() + tail_.size(); }
  Result<void> read(FileOffset at, ByteSpan into) const override {
    if (at.value > size_ || into.size() > size_ - at.value) return codec::corrupt("past the end");
    read_bytes += into.size();
    for (std::size_t i = 0; i < into.size(); ++i) {
      const std::uint64_t place = at.value + i;
      const std::uint64_t tail_at = size_ - tail_.size();
      into[i] = place < head_.size() ? head_[place] : place >= tail_at ? tail_[place - tail_at] : 0;
    }
    return {};
  }
  mutable std::atomic<std::uint64_t> read_bytes{0};

 private:
  const Bytes head_;
  const std::uint64_t size_;
  const Bytes tail_;
};

FrameBuilder embed_of(const Bytes& map, const Bytes& plain = Bytes(100)) {
  FrameBuilder frame = test::plain_frame(plain, static_cast<std::int32_t>(plain.size()));
  frame.metalayers.emplace_back("b2embed", Bytes{0x81, 0xa7, 'v', 'e', 'r', 's', 'i', 'o', 'n', 1});
  frame.vlmetalayers.emplace_back("estore_metadata", encoded(map));
  return frame;
}

void append(Bytes& to, const std::string& text) {
  to.insert(to.end(), text.begin(), text.end());
}

/// {"embed_map": {key: {"offset": offset, "length": length}}}
Bytes map_of(const std::vector<std::string>& keys, std::uint64_t offset = 0, std::uint64_t length = 0) {
  Bytes map = {0x81, 0xa9};
  append(map, "embed_map");
  map.push_back(0xdf);
  test::append_be(map, static_cast<std::uint32_t>(keys.size()));
  for (const std::string& key : keys) {
    map.push_back(0xda);
    test::append_be(map, static_cast<std::uint16_t>(key.size()));
    append(map, key);
    for (const auto& [name, value] : {std::pair{"\x82\xa6offset", offset}, {"\xa6length", length}}) {
      append(map, name);
      map.push_back(0xcf);
      test::append_be(map, value);
    }
  }
  return map;
}

TEST(ParseCosts, DirectoriesOfLongPathsTakeNoMemory) {
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) {
    std::string key = "/" + std::to_string(1000 + i);
    while (key.size() < 4080)
      key += "/a";
    keys.push_back(key);
  }
  Bytes frame = embed_of(map_of(keys)).build();
  test::reset_peak();
  const std::size_t before = test::peak_bytes();
  const auto store = Store::open_embed(memory_source(std::move(frame)));
  ASSERT_TRUE(store) << describe(store.error());
  EXPECT_LT(test::peak_bytes() - before, 16 * kMebi);
  EXPECT_EQ((*store)->list("").size(), 300U);
  EXPECT_TRUE((*store)->has_directory(keys[7].substr(1, 2000)));
  EXPECT_NE((*store)->find(keys[7].substr(1) + ".b2f"), nullptr);
}

TEST(ParseCosts, AMapWhoseNamesWouldFillMemoryIsRefused) {
  std::vector<std::string> keys;
  for (int i = 0; i < 9000; ++i)
    keys.push_back("/" + std::to_string(10000 + i) + std::string(200, 'x') + "/" + std::string(250, 'y') + "/" +
                   std::string(250, 'z') + "/" + std::string(250, 'z') + "/" + std::string(250, 'z') + "/" +
                   std::string(250, 'z') + "/" + std::string(250, 'z') + "/" + std::string(250, 'z') + "/" +
                   std::string(250, 'z') + "/" + std::string(250, 'z') + "/" + std::string(250, 'z'));
  Bytes frame = embed_of(map_of(keys)).build();
  ASSERT_LT(frame.size(), kMebi);
  const std::size_t before = test::reset_peak();
  const auto store = Store::open_embed(memory_source(std::move(frame)));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::unsupported);
  EXPECT_LT(test::peak_bytes() - before, kMaxMemory);
}

TEST(ParseCosts, OnlyRangesOfAMapAreKept) {
  constexpr std::uint32_t kValues = 10 << 20;
  Bytes map = {0x82, 0xa9};
  append(map, "embed_map");
  map.push_back(0x80);
  append(map, "\xa1x\xdd");
  test::append_be(map, kValues);
  map.insert(map.end(), kValues, 0xc0);
  Bytes frame = embed_of(map).build();
  ASSERT_LT(frame.size(), kMebi);
  const std::size_t before = test::reset_peak();
  const auto store = Store::open_embed(memory_source(std::move(frame)));
  ASSERT_TRUE(store) << describe(store.error());
  EXPECT_LT(test::peak_bytes() - before, 32 * kMebi);
}

TEST(ParseCosts, AMapNestedDeeplyIsDamaged) {
  Bytes map = {0x82, 0xa9};
  append(map, "embed_map");
  map.push_back(0x80);
  append(map, "\xa1x");
  map.insert(map.end(), kMebi, 0x91);
  EXPECT_FALSE(Store::open_embed(memory_source(embed_of(map).build())));
}

TEST(ParseCosts, EntriesAreNamedWithoutOpeningThem) {
  // Begin and end of each entry lie in different blocks of the embed frame.
  const Bytes inner = test::plain_frame(test::varied_items(kMebi), kMebi).build();
  std::vector<std::string> keys;
  for (int i = 0; i < 500; ++i)
    keys.push_back("/key" + std::to_string(i));
  FrameBuilder frame = embed_of(map_of(keys, 0, inner.size()), inner);
  frame.chunk_section = test::raw_block_chunk(inner, 128 << 10);
  const auto source = std::make_shared<CountedSource>(frame.build());
  const auto store = Store::open_embed(source);
  ASSERT_TRUE(store) << describe(store.error());
  EXPECT_EQ((*store)->list("").size(), 500U);
  EXPECT_NE((*store)->find("key7.b2f"), nullptr);
  EXPECT_LT(source->read_bytes, 2 * kMebi);
}

TEST(ParseCosts, GroupsAreListedInTheTimeOfTheirOwnEntries) {
  constexpr int kGroups = 60000;
  std::vector<test::ZipEntry> entries;
  for (int i = 0; i < kGroups; ++i)
    entries.push_back({"g" + std::to_string(i) + "/x.b2f", {}});
  entries.push_back({"embed.b2e", test::embed_frame({})});
  const auto store = Store::open_zip(memory_source(test::zip_file(entries, true)), std::make_shared<InflateMemory>());
  ASSERT_TRUE(store) << describe(store.error());
  ASSERT_TRUE(*store);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ((*store)->list("").size(), std::size_t{kGroups});
  for (int i = 0; i < kGroups; ++i)
    ASSERT_EQ((*store)->list("g" + std::to_string(i)).size(), 1U);
  // Visiting all groups for each group took minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(ParseCosts, AZipFileWithoutEmbedFrameTakesNoMemory) {
  std::vector<test::ZipEntry> entries;
  for (int i = 0; i < 100000; ++i)
    entries.push_back({"member " + std::to_string(i), {}});
  const auto source = memory_source(test::zip_file(entries, true));
  const std::size_t before = test::reset_peak();
  const auto is_store = Store::is_store_zip(*source);
  ASSERT_TRUE(is_store) << describe(is_store.error());
  EXPECT_FALSE(*is_store);
  EXPECT_LT(test::peak_bytes() - before, kMebi);
}

TEST(ParseCosts, ADeflatedEmbedFrameWithAnExcessiveSizeIsRefused) {
  const auto open = [](std::size_t padding) {
    FrameBuilder embed = test::plain_frame(Bytes(100), 100);
    embed.gap.resize(padding);
    const std::vector<test::ZipEntry> entries = {{"embed.b2e", embed.build(), 8}};
    return Store::open_zip(memory_source(test::zip_file(entries)), std::make_shared<InflateMemory>());
  };
  EXPECT_TRUE(open(8 * kMebi));
  const auto store = open(120 * kMebi);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::unsupported);
}

/// Counts opens and reads.
struct CountingFiles : test::ForwardingFiles {
  Result<OpenFile> open_at(OpenFile dir, const std::string& path, int flags) override {
    ++opened;
    return ForwardingFiles::open_at(dir, path, flags);
  }
  Result<std::size_t> pread(OpenFile file, ByteSpan into, FileOffset at) override {
    ++reads;
    return ForwardingFiles::pread(file, into, at);
  }
  int opened = 0;
  int reads = 0;
};

TEST(ParseCosts, AThousandStoresAreOpenedOnce) {
  constexpr int kStores = 1000;
  test::TempDir directory;
  const Bytes store = test::zip_file({{"a.b2f", Bytes(10)}, {"embed.b2e", test::embed_frame({})}});
  const Bytes other = test::zip_file({{"a", Bytes(10)}});
  for (int i = 0; i < kStores; ++i)
    directory.write(std::to_string(i) + ".b2z", i % 2 == 0 ? store : other);
  CountingFiles below;
  StoreFiles files(below);
  const Descriptor root(files, files.open_named(directory.path().string(), O_RDONLY | O_DIRECTORY).value());
  const auto look = [&] {
    int stores = 0;
    for (int i = 0; i < kStores; ++i) {
      const auto status = files.status_at(root.handle(), std::to_string(i) + ".b2z");
      EXPECT_TRUE(status);
      stores += status && S_ISDIR(status->st_mode) ? 1 : 0;
    }
    return stores;
  };
  EXPECT_EQ(look(), kStores / 2);
  const int opened = std::exchange(below.opened, 0);
  EXPECT_LE(opened, kStores);
  below.reads = 0;
  EXPECT_EQ(look(), kStores / 2);
  EXPECT_EQ(below.opened, 0);
  EXPECT_EQ(below.reads, 0);
  // Only a store that changed is opened again.
  directory.write("0.b2z", test::zip_file({{"another", Bytes(100)}}));
  EXPECT_EQ(look(), kStores / 2 - 1);
  EXPECT_EQ(below.opened, 1);
}

// ---- metalayers --------------------------------------------------------------------------------------------------

TEST(ParseCosts, AHeaderThatIsAHoleIsNotRead) {
  FrameBuilder builder = test::plain_frame({}, 100);
  Bytes head = builder.header();
  const Bytes tail = builder.trailer();
  constexpr std::uint32_t kHeader = 0x7fffff00;
  codec::store_be(&head[0x0b], kHeader);
  codec::store_be(&head[0x10], std::uint64_t{kHeader} + tail.size());
  const auto source = std::make_shared<CountedSource>(head, kHeader + tail.size(), tail);
  const std::size_t before = test::reset_peak();
  const auto opened = open_cframe(source, std::make_shared<IndexCache>());
  ASSERT_TRUE(opened) << describe(opened.error());
  EXPECT_LT(test::peak_bytes() - before, kMebi);
  EXPECT_LT(source->read_bytes, std::uint64_t{100'000});
}

TEST(ParseCosts, AFixedMetalayerThatIsAHoleIsReadOnlyOnDemand) {
  FrameBuilder builder = test::plain_frame({}, 100);
  builder.metalayers = {{"short", {1, 2}}, {"long", {}}};
  Bytes head = builder.header();
  const Bytes tail = builder.trailer();
  constexpr std::uint32_t kHeader = 0x7fffff00;
  codec::store_be(&head[0x0b], kHeader);
  codec::store_be(&head[0x10], std::uint64_t{kHeader} + tail.size());
  const auto length = static_cast<std::uint32_t>(kHeader - head.size());
  codec::store_be(&head[head.size() - 4], length);
  const auto source = std::make_shared<CountedSource>(head, kHeader + tail.size(), tail);
  const auto opened = open_cframe(source, std::make_shared<IndexCache>());
  ASSERT_TRUE(opened) << describe(opened.error());
  ASSERT_FALSE((*opened)->metalayer_damage()) << describe(*(*opened)->metalayer_damage());
  const auto& places = (*opened)->metalayer_places();
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ((*opened)->metalayer(places[0]).value(), (Bytes{1, 2}));
  EXPECT_EQ(places[1].length, length);
  const std::size_t before = test::reset_peak();
  const auto content = (*opened)->metalayer(places[1]);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().kind, ErrorKind::unsupported);
  EXPECT_LT(source->read_bytes, std::uint64_t{100'000});
  EXPECT_LT(test::peak_bytes() - before, kMebi);
}

TEST(ParseCosts, AnAttributeThatIsTooLongIsNotDecoded) {
  FrameBuilder builder = test::plain_frame(Bytes(10), 10);
  builder.vlmetalayers = {{"long", test::repeated_chunk(Bytes{7}, 200 << 20, 1)},
                          {"most", test::repeated_chunk(Bytes{7}, 65536, 1)}};
  const auto opened = open_cframe(memory_source(builder.build()), std::make_shared<IndexCache>());
  ASSERT_TRUE(opened) << describe(opened.error());
  const std::size_t before = test::reset_peak();
  const auto value = vlmetalayer_attribute(**opened, "user.blosc2.vlmeta.long");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().sys, E2BIG);
  EXPECT_LT(test::peak_bytes() - before, kMebi);
  EXPECT_EQ(vlmetalayer_attribute(**opened, "user.blosc2.vlmeta.most").value(), std::string(65536, 7));
  EXPECT_EQ(vlmetalayer_attribute(**opened, "user.blosc2.vlmeta.none").error().sys, ENODATA);
}

/// The maximum number of variable-length metalayers, all with the content of the first.
Bytes frame_of_shared_content(const Bytes& chunk) {
  FrameBuilder builder = test::plain_frame(Bytes(10), 10);
  constexpr std::size_t kLayers = 8192;
  for (std::size_t i = 0; i < kLayers; ++i)
    builder.vlmetalayers.emplace_back(std::to_string(10000 + i), i == 0 ? chunk : Bytes());
  Bytes bytes = builder.build();
  const std::size_t trailer = bytes.size() - builder.trailer().size();
  const std::size_t first = trailer + 2 + 7 + 1 + 5 + 1;
  for (std::size_t i = 1; i < kLayers; ++i)
    std::copy_n(&bytes[first], 4, &bytes[first + i * 11]);
  return bytes;
}

TEST(ParseCosts, AChangeDoesNotCopyASharedContentForEachMetalayer) {
  test::TempDir directory;
  directory.write("f.b2frame", frame_of_shared_content(test::plain_chunk(Bytes(kMebi, 3))));
  const Descriptor root(system_files(), system_files().open_named(directory.path().string(), O_RDONLY).value());
  auto writer = FrameWriter::open(system_files(), root.handle(), "f.b2frame", nullptr);
  ASSERT_TRUE(writer) << describe(writer.error());
  ASSERT_EQ((*writer)->container()->vlmetalayer_names().size(), 8192U);
  const std::size_t before = test::reset_peak();
  const auto changed = frame::FrameMetalayers(**writer).set_variable("10007", Bytes{1});
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().kind, ErrorKind::corruption);
  EXPECT_LT(test::peak_bytes() - before, 16 * kMebi);
}

TEST(ParseCosts, CheckingMetalayersStopsAtItsBudget) {
  Bytes plain(kMebi);
  for (std::size_t i = 0; i < plain.size(); ++i)
    plain[i] = static_cast<std::uint8_t>(i / 4096);
  const auto opened =
      open_cframe(memory_source(frame_of_shared_content(encoded(plain))), std::make_shared<IndexCache>());
  ASSERT_TRUE(opened) << describe(opened.error());
  ParseBudget budget = ParseBudget::asked((*opened)->stored_bytes());
  int checked = 0;
  std::optional<Error> refused;
  for (const std::string& name : (*opened)->vlmetalayer_names()) {
    const auto done = (*opened)->check_vlmetalayer(name, budget);
    checked += done ? 1 : 0;
    if (!done && !refused) refused = done.error();
  }
  EXPECT_GT(checked, 100);
  EXPECT_LT(checked, 1000);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->kind, ErrorKind::unsupported);
}

TEST(ParseCosts, ATypeOfMillionsOfFieldsIsNotParsed) {
  std::string text = "[";
  for (int i = 0; i < 1'000'000; ++i)
    text += "1,";
  text += "]";
  const std::size_t before = test::reset_peak();
  EXPECT_FALSE(parse_dtype(text));
  EXPECT_LT(test::peak_bytes() - before, kMebi);
  // A dtype of a realistic size is parsed.
  text = "[";
  for (int i = 0; i < 10'000; ++i)
    text += "('f" + std::to_string(i) + "', '<f8'), ";
  text += "]";
  const auto type = parse_dtype(text);
  ASSERT_TRUE(type);
  EXPECT_EQ(type->itemsize, 80'000U);
}

TEST(ParseCosts, ExcessiveMetadataOfABloscpackFileAreNotParsed) {
  std::string text = R"({"container": "numpy", "dtype": "<f8", "shape": [1], "order": "C", "more": [)";
  for (int i = 0; i < 1'000'000; ++i)
    text += "0,";
  text += "0]}";
  const Bytes bytes(text.begin(), text.end());
  const std::size_t before = test::reset_peak();
  EXPECT_FALSE(parse_numpy_metadata(bytes));
  EXPECT_LT(test::peak_bytes() - before, kMebi);
}

TEST(ParseCosts, MsgpackValuesAreMeasuredBeforeTheyAreBuilt) {
  Bytes content = {0xdd};
  test::append_be(content, std::uint32_t{kMebi});
  content.insert(content.end(), kMebi, 0xc0);
  ParseBudget budget = ParseBudget::asked(0);
  const std::size_t before = test::reset_peak();
  const auto value = parse_msgpack(content, budget);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().kind, ErrorKind::unsupported);
  EXPECT_LT(test::peak_bytes() - before, kMebi);
}

}  // namespace
}  // namespace cframefs::frame
