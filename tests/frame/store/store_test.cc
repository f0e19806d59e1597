// Stores as directories: zip members, embedded frames and files on disk read as files, and no path leads outside the
// store.
#include "frame/store/store.h"

#include <cerrno>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include "frame/open/layer_attributes.h"
#include "frame/store/store_files.h"
#include "tests/support/array_builder.h"
#include "tests/support/digest.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zip_builder.h"

namespace cframefs::frame {
namespace {

using test::Bytes;
using test::TempDir;
using test::ZipEntry;

Bytes small_array() {
  const test::ArraySpec spec{{6, 5}, {4, 3}, {2, 3}, 4, "<i4"};
  return test::array_frame(spec, test::varied_items(spec.nbytes())).build();
}

Bytes small_frame(std::size_t size = 5000) {
  return test::plain_frame(test::varied_items(size), 700).build();
}

Result<std::shared_ptr<const Store>> open_zip(Bytes bytes) {
  return Store::open_zip(memory_source(std::move(bytes)), std::make_shared<InflateMemory>());
}

Result<Bytes> content(const Store& store, const std::string& path) {
  const Store::Leaf* leaf = store.find(path);
  if (leaf == nullptr) return codec::invalid("no " + path);
  auto source = store.open(*leaf);
  if (!source) return codec::Failure(source.error());
  Bytes bytes((*source)->size());
  if (auto done = (*source)->read(FileOffset{0}, bytes); !done) return codec::Failure(done.error());
  return bytes;
}

std::vector<ZipEntry> good_entries() {
  return {{"raw.b2f", small_frame()},
          {"group/sub/a b%c.b2nd", small_array(), 0, 0, 37},
          {"group/__vlmeta__.b2f", small_frame(10)},
          {"long.b2f", small_frame(9000), 0, 0, 3, true},
          {"embed.b2e", test::embed_frame({{"/tiny", small_array()}, {"/group/flat", small_frame(2500)}}, "b2tree")}};
}

TEST(Store, AZipFileHoldsMembersAndEmbeddedFrames) {
  for (const bool zip64 : {false, true}) {
    const auto store = open_zip(test::zip_file(good_entries(), zip64, "a comment"));
    ASSERT_TRUE(store) << describe(store.error());
    ASSERT_TRUE(*store);
    const std::map<std::string, bool> top = {
        {"group", true}, {"long.b2f", false}, {"raw.b2f", false}, {"tiny.b2nd", false}};
    EXPECT_EQ((*store)->list(""), top);
    const std::map<std::string, bool> group = {{"flat.b2f", false}, {"sub", true}};
    EXPECT_EQ((*store)->list("group"), group);
    EXPECT_EQ(*content(**store, "raw.b2f"), small_frame());
    EXPECT_EQ(*content(**store, "long.b2f"), small_frame(9000));
    EXPECT_EQ(*content(**store, "group/sub/a b%c.b2nd"), small_array());
    EXPECT_EQ(*content(**store, "tiny.b2nd"), small_array());
    EXPECT_EQ(*content(**store, "group/flat.b2f"), small_frame(2500));
    EXPECT_TRUE((*store)->has_directory("group/sub"));
    EXPECT_FALSE((*store)->has_directory("raw.b2f"));
  }
}

TEST(Store, AZipFileWithoutEmbedFrameIsNotAStore) {
  const auto store = open_zip(test::zip_file({{"raw.b2f", small_frame()}}));
  ASSERT_TRUE(store);
  EXPECT_FALSE(*store);
  const auto no_zip = open_zip(test::varied_items(3000));
  ASSERT_TRUE(no_zip);
  EXPECT_FALSE(*no_zip);
}

TEST(Store, NamesThatLeaveTheStoreAreSkipped) {
  std::vector<ZipEntry> entries = good_entries();
  for (const std::string& name :
       {std::string("../x.b2f"), std::string("/etc/x.b2f"), std::string("a/../../x.b2f"), std::string("a//x.b2f"),
        std::string("./x.b2f"), std::string("a\\x.b2f"), std::string("nul\0.b2f", 8), std::string("directory/"),
        std::string(), std::string(5000, 'x')})
    entries.push_back({name, small_frame()});
  entries.back().name = "x.b2f.tmp";
  entries.push_back({"embedded.b2f", small_frame()});
  const auto store = open_zip(test::zip_file(entries));
  ASSERT_TRUE(store && *store);
  const std::map<std::string, bool> top = {
      {"embedded.b2f", false}, {"group", true}, {"long.b2f", false}, {"raw.b2f", false}, {"tiny.b2nd", false}};
  EXPECT_EQ((*store)->list(""), top);
}

TEST(Store, DeflatedMembersAreReadBack) {
  std::vector<ZipEntry> entries = good_entries();
  for (ZipEntry& entry : entries)
    entry.method = 8;
  const auto store = open_zip(test::zip_file(entries));
  ASSERT_TRUE(store) << describe(store.error());
  ASSERT_TRUE(*store);
  EXPECT_EQ(*content(**store, "raw.b2f"), small_frame());
  EXPECT_EQ(*content(**store, "long.b2f"), small_frame(9000));
  EXPECT_EQ(*content(**store, "group/sub/a b%c.b2nd"), small_array());
  EXPECT_EQ(*content(**store, "group/flat.b2f"), small_frame(2500));
  EXPECT_LT((*store)->find("long.b2f")->stored, (*store)->find("long.b2f")->size);
}

void expect_refused(const Store& store, const char* name, codec::ErrorKind kind) {
  const auto bytes = content(store, name);
  ASSERT_FALSE(bytes) << name;
  EXPECT_EQ(bytes.error().kind, kind) << name;
}

TEST(Store, ADamagedDeflatedMemberFailsAlone) {
  std::vector<ZipEntry> entries = good_entries();
  for (ZipEntry& entry : entries)
    entry.method = 8;
  entries[0].checksum = 1;
  entries[3].size = 1 << 20;
  const auto store = open_zip(test::zip_file(entries));
  ASSERT_TRUE(store && *store);
  for (const char* name : {"raw.b2f", "long.b2f"})
    expect_refused(**store, name, codec::ErrorKind::corruption);
  EXPECT_EQ(*content(**store, "group/sub/a b%c.b2nd"), small_array());
}

// semantics: G5
TEST(Store, AMemberOfAnotherMethodOrEncryptedIsListedButCannotBeRead) {
  std::vector<ZipEntry> entries = good_entries();
  entries[0].method = 9;
  entries[1].flags = 1;
  const auto store = open_zip(test::zip_file(entries));
  ASSERT_TRUE(store && *store);
  for (const char* name : {"raw.b2f", "group/sub/a b%c.b2nd"})
    expect_refused(**store, name, codec::ErrorKind::unsupported);
  EXPECT_TRUE(content(**store, "long.b2f"));
  entries.back().method = 9;
  const auto refused = open_zip(test::zip_file(entries));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, codec::ErrorKind::unsupported);
}

TEST(Store, HeadersThatContradictEachOtherAreDamage) {
  std::vector<ZipEntry> entries = good_entries();
  entries[0].size = 4999;  // a stored member whose size differs from its compressed size
  Bytes bytes = test::zip_file(entries);
  bytes[8] = 8;  // the method in the local header of the first member
  const auto store = open_zip(bytes);
  ASSERT_TRUE(store && *store);
  const auto other_length = content(**store, "raw.b2f");
  ASSERT_FALSE(other_length);
  EXPECT_EQ(other_length.error().kind, codec::ErrorKind::corruption);
  entries[0].size = {};
  bytes = test::zip_file(entries);
  bytes[8] = 8;
  const auto other_method = open_zip(bytes);
  ASSERT_TRUE(other_method && *other_method);
  EXPECT_FALSE(content(**other_method, "raw.b2f"));
  EXPECT_TRUE(content(**other_method, "long.b2f"));
}

/// Lists all directories and reads all leaves. Errors are allowed; crashes are not.
void walk(const Store& store, const std::string& directory, int depth = 0) {
  ASSERT_LT(depth, 20);
  for (const auto& [name, is_directory] : store.list(directory)) {
    const std::string path = directory.empty() ? name : directory + "/" + name;
    if (is_directory) {
      walk(store, path, depth + 1);
    } else if (store.find(path)->size < (1 << 20)) {
      static_cast<void>(content(store, path));
    }
  }
}

TEST(Store, ATruncatedStoreIsRefused) {
  const Bytes whole = test::zip_file({{"raw.b2f", small_frame(50)}, {"embed.b2e", test::embed_frame({})}}, true);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto store = open_zip({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    EXPECT_TRUE(!store || !*store) << length;
  }
}

RC_GTEST_PROP(Store, AnyChangesAreReadOrRefused, ()) {
  const bool zip64 = *rc::gen::arbitrary<bool>();
  std::vector<ZipEntry> entries = good_entries();
  for (ZipEntry& entry : entries)
    entry.method = *rc::gen::element<std::uint16_t>(0, 8);
  Bytes bytes = test::zip_file(entries, zip64);
  const int changes = *rc::gen::inRange(1, 6);
  for (int i = 0; i < changes; ++i) {
    // Half of the changes are in the last 500 bytes, where the directory is.
    const std::size_t from = *rc::gen::arbitrary<bool>() ? bytes.size() - 500 : 0;
    bytes[*rc::gen::inRange<std::size_t>(from, bytes.size())] = *rc::gen::element<std::uint8_t>(0, 1, 0x7f, 0x80, 0xff);
  }
  const auto store = open_zip(std::move(bytes));
  if (store && *store) walk(**store, "");
}

TEST(Store, AMapThatPointsPastTheFrameIsDamaged) {
  Bytes frame = test::embed_frame({{"/a", small_frame()}});
  const auto good = Store::open_embed(memory_source(frame));
  ASSERT_TRUE(good) << describe(good.error());
  EXPECT_EQ(*content(**good, "a.b2f"), small_frame());
  const std::string length = "length";
  auto at = std::search(frame.begin(), frame.end(), length.begin(), length.end());
  ASSERT_NE(at, frame.end());
  ASSERT_EQ(at[6], 0xcd);  // the msgpack marker of a 16-bit number
  at[7] = 0xff;
  const auto store = Store::open_embed(memory_source(frame));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, codec::ErrorKind::corruption);
}

// ---- as files ----------------------------------------------------------------------------------------------------

std::set<std::string> names_in(FileOps& files, OpenFile file) {
  std::set<std::string> names;
  const auto entries = files.list(file);
  EXPECT_TRUE(entries) << describe(entries.error());
  if (!entries) return names;
  for (const DirectoryEntry& entry : *entries)
    names.insert(entry.name + (entry.type == DT_DIR ? "/" : ""));
  return names;
}

class StoreFilesTest : public ::testing::Test {
 protected:
  StoreFilesTest() {
    directory_.write("s.b2z", test::zip_file(good_entries()));
    directory_.write("e.b2e", test::embed_frame({{"/x/y", small_array()}}));
    directory_.write("other.b2z", test::zip_file({{"readme", small_frame()}}));
    directory_.write("plain", small_frame());
    std::filesystem::create_directories(directory_.path() / "d.b2d" / "group");
    directory_.write("d.b2d/embed.b2e", test::embed_frame({{"/tiny", small_array()}, {"/group/in", small_frame()}}));
    directory_.write("d.b2d/leaf.b2f", small_frame(300));
    directory_.write("d.b2d/group/out.b2f", small_frame(400));
    directory_.write("d.b2d/__vlmeta__.b2f", small_frame(1));
    const auto fd = files_.open_named(directory_.path().string(), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd);
    root_ = Descriptor(files_, fd.value_or(OpenFile{}));
  }

  std::set<std::string> list(const std::string& path) {
    const auto fd = files_.open_at(root_.handle(), path, O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd) << path << describe(fd.error());
    if (!fd) return {};
    const Descriptor opened(files_, *fd);
    return names_in(files_, opened.handle());
  }
  Result<Bytes> read(const std::string& path) {
    const auto fd = files_.open_at(root_.handle(), path, O_RDONLY);
    if (!fd) return codec::Failure(fd.error());
    const Descriptor opened(files_, *fd);
    const auto status = files_.status(opened.handle());
    const auto by_name = files_.status_at(root_.handle(), path);
    EXPECT_TRUE(status && by_name);
    EXPECT_TRUE(S_ISREG(status->st_mode));
    EXPECT_EQ(status->st_ino, by_name->st_ino);
    EXPECT_EQ(status->st_size, by_name->st_size);
    Bytes bytes(static_cast<std::size_t>(status->st_size) + 10);
    const auto got = files_.pread(opened.handle(), bytes, FileOffset{0});
    if (!got) return codec::Failure(got.error());
    bytes.resize(*got);
    return bytes;
  }

  /// Records the advice that reaches the files below.
  struct AdvisedFiles : test::ForwardingFiles {
    void prefetch(OpenFile /*file*/, FileOffset at, std::uint64_t length) override {
      read.emplace_back(at.value, length);
    }
    void start_writeback(OpenFile /*file*/, FileOffset at, std::uint64_t length) override {
      written.emplace_back(at.value, length);
    }
    using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
    Ranges read, written;
  };

  TempDir directory_;
  AdvisedFiles below_;
  StoreFiles files_{below_};
  Descriptor root_;
};

TEST_F(StoreFilesTest, AdviceReachesTheFilesBelow) {
  using Ranges = AdvisedFiles::Ranges;
  const Descriptor plain(files_, files_.open_at(root_.handle(), "plain", O_RDWR).value());
  files_.prefetch(plain.handle(), FileOffset{3}, 5);
  files_.start_writeback(plain.handle(), FileOffset{7}, 11);
  EXPECT_EQ(std::exchange(below_.read, {}), Ranges({{3, 5}}));
  EXPECT_EQ(below_.written, Ranges({{7, 11}}));

  // Advice for a member covers only the range of the member in the store.
  const Descriptor member(files_, files_.open_at(root_.handle(), "s.b2z/raw.b2f", O_RDONLY).value());
  const std::uint64_t size = small_frame().size();
  files_.prefetch(member.handle(), FileOffset{2}, 10 * size);
  files_.prefetch(member.handle(), FileOffset{size}, 1);
  ASSERT_EQ(below_.read.size(), 1U);
  const auto [at, length] = below_.read[0];
  EXPECT_EQ(length, size - 2);
  const Bytes store = test::file_bytes(directory_.path() / "s.b2z");
  const Bytes expected = small_frame();
  ASSERT_LE(at + length, store.size());
  EXPECT_TRUE(std::equal(expected.begin() + 2, expected.end(), store.begin() + static_cast<std::ptrdiff_t>(at)));
}

TEST_F(StoreFilesTest, StoresAreDirectoriesAndOtherFilesAreNot) {
  EXPECT_EQ(list("."), (std::set<std::string>{"s.b2z/", "e.b2e/", "d.b2d/", "other.b2z", "plain"}));
  EXPECT_EQ(list("s.b2z"), (std::set<std::string>{"group/", "long.b2f", "raw.b2f", "tiny.b2nd"}));
  EXPECT_EQ(list("s.b2z/group"), (std::set<std::string>{"flat.b2f", "sub/"}));
  EXPECT_EQ(list("e.b2e"), (std::set<std::string>{"x/"}));
  EXPECT_EQ(list("d.b2d"), (std::set<std::string>{"group/", "leaf.b2f", "tiny.b2nd"}));
  EXPECT_EQ(list("d.b2d/group"), (std::set<std::string>{"in.b2f", "out.b2f"}));
}

TEST_F(StoreFilesTest, LeavesReadAsFiles) {
  EXPECT_EQ(*read("s.b2z/raw.b2f"), small_frame());
  EXPECT_EQ(*read("s.b2z/group/sub/a b%c.b2nd"), small_array());
  EXPECT_EQ(*read("e.b2e/x/y.b2nd"), small_array());
  EXPECT_EQ(*read("d.b2d/tiny.b2nd"), small_array());
  EXPECT_EQ(*read("d.b2d/group/in.b2f"), small_frame());
  EXPECT_EQ(*read("d.b2d/group/out.b2f"), small_frame(400));
  EXPECT_EQ(*read("plain"), small_frame());
  for (const char* missing : {"s.b2z/none", "s.b2z/raw.b2f/x", "s.b2z/embed.b2e", "d.b2d/embed.b2e",
                              "d.b2d/__vlmeta__.b2f", "e.b2e/remote.b2nd", "plain/x"}) {
    EXPECT_FALSE(files_.status_at(root_.handle(), missing)) << missing;
  }
}

TEST_F(StoreFilesTest, ReadsAnywhereAndPastTheEnd) {
  const Bytes expected = small_frame();
  const Descriptor leaf(files_, files_.open_at(root_.handle(), "s.b2z/raw.b2f", O_RDONLY).value());
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{100}, expected.size() - 3, expected.size(), expected.size() + 9}) {
    Bytes bytes(50);
    const auto got = files_.pread(leaf.handle(), bytes, FileOffset{at});
    ASSERT_TRUE(got);
    const std::size_t there = at < expected.size() ? std::min<std::size_t>(50, expected.size() - at) : 0;
    EXPECT_EQ(*got, there);
    if (there > 0) {
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(there),
                             expected.begin() + static_cast<std::ptrdiff_t>(at)));
    }
  }
}

TEST_F(StoreFilesTest, NothingInsideCanBeChanged) {
  const OpenFile root = root_.handle();
  const auto is_read_only = [](const auto& result) { return !result && result.error().sys == EROFS; };
  for (const std::string store : {"s.b2z", "e.b2e", "d.b2d"}) {
    EXPECT_TRUE(is_read_only(files_.create_at(root, store + "/new", O_RDWR, 0644)));
    EXPECT_TRUE(is_read_only(files_.make_directory_at(root, store + "/new", 0755)));
    EXPECT_TRUE(is_read_only(files_.rename_at(root, "plain", root, store + "/plain", 0)));
    EXPECT_TRUE(is_read_only(files_.remove_at(root, store, true)));
    EXPECT_TRUE(is_read_only(files_.open_at(root, store + "/leaf.b2f", O_RDWR)));
  }
  EXPECT_TRUE(is_read_only(files_.remove_at(root, "s.b2z/raw.b2f", false)));
  // The store itself can be renamed.
  EXPECT_TRUE(files_.rename_at(root, "s.b2z", root, "t.b2z", 0));
  EXPECT_EQ(*read("t.b2z/raw.b2f"), small_frame());
}

TEST_F(StoreFilesTest, AReplacedStoreIsSeenAndOpenFilesKeepTheirBytes) {
  const Descriptor leaf(files_, files_.open_at(root_.handle(), "s.b2z/raw.b2f", O_RDONLY).value());
  std::vector<ZipEntry> entries = good_entries();
  entries[0].content = small_frame(77);
  directory_.write("new", test::zip_file(entries));
  std::filesystem::rename(directory_.path() / "new", directory_.path() / "s.b2z");
  EXPECT_EQ(*read("s.b2z/raw.b2f"), small_frame(77));
  Bytes old(small_frame().size());
  ASSERT_TRUE(files_.pread(leaf.handle(), old, FileOffset{0}));
  EXPECT_EQ(old, small_frame());
}

Bytes metadata_frame(const std::string& name, const Bytes& value) {
  test::FrameBuilder frame = test::plain_frame({}, 700);
  frame.vlmetalayers.emplace_back(name, test::plain_chunk(value));
  return frame.build();
}

TEST_F(StoreFilesTest, GroupMetadataAreAttributesOfTheDirectory) {
  const Bytes title = {0xa3, 'a', 'b', 'c'};
  const Bytes root = {1};
  std::vector<ZipEntry> entries = good_entries();
  entries[2].content = metadata_frame("title", title);
  entries.push_back({"__vlmeta__.b2f", metadata_frame("of the root", root), 8});
  entries.push_back({"alone/__vlmeta__.b2f", metadata_frame("title", root)});
  directory_.write("s.b2z", test::zip_file(entries));
  directory_.write("e.b2e",
                   test::embed_frame({{"/x/y", small_array()}, {"/x/__vlmeta__", metadata_frame("title", title)}}));
  directory_.write("d.b2d/embed.b2e",
                   test::embed_frame({{"/in/y", small_array()}, {"/in/__vlmeta__", metadata_frame("title", title)}}));
  directory_.write("d.b2d/group/__vlmeta__.b2f", metadata_frame("title", title));
  const std::string prefix(kVlmetaAttribute);
  const auto names = [&](const std::string& path) {
    const Descriptor opened(files_, files_.open_at(root_.handle(), path, O_RDONLY).value());
    std::vector<std::string> found = files_.list_attributes(opened.handle()).value();
    std::erase_if(found, [&](const std::string& name) { return !name.starts_with(prefix); });
    return found;
  };
  const auto value = [&](const std::string& path, const std::string& name) -> Result<std::string> {
    const Descriptor opened(files_, files_.open_at(root_.handle(), path, O_RDONLY).value());
    return files_.get_attribute(opened.handle(), prefix + name);
  };
  const std::vector<std::string> one = {prefix + "title"};
  for (const char* group : {"s.b2z/group", "s.b2z/alone", "e.b2e/x", "d.b2d/group", "d.b2d/in"}) {
    EXPECT_EQ(names(group), one) << group;
    const auto got = value(group, "title");
    ASSERT_TRUE(got) << group << describe(got.error());
    EXPECT_EQ(Bytes(got->begin(), got->end()), std::string(group) == "s.b2z/alone" ? root : title);
    const auto missing = value(group, "none");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().sys, ENODATA);
  }
  EXPECT_EQ(names("s.b2z"), std::vector<std::string>{prefix + "of the root"});
  EXPECT_EQ(value("s.b2z", "of the root").value(), "\x01");
  for (const char* none : {"s.b2z/group/sub", "e.b2e", "s.b2z/raw.b2f"})
    EXPECT_TRUE(names(none).empty()) << none;
  EXPECT_EQ(list("s.b2z/alone"), std::set<std::string>());
  const auto is_read_only = [](const auto& result) { return !result && result.error().sys == EROFS; };
  const Descriptor group(files_, files_.open_at(root_.handle(), "d.b2d/group", O_RDONLY).value());
  EXPECT_TRUE(is_read_only(files_.set_attribute(group.handle(), prefix + "title", "x", 0)));
  EXPECT_TRUE(is_read_only(files_.remove_attribute(group.handle(), prefix + "title")));
}

TEST_F(StoreFilesTest, DamagedMetadataFailOnAccess) {
  std::vector<ZipEntry> entries = good_entries();
  entries[2].content[3] ^= 0xff;
  directory_.write("s.b2z", test::zip_file(entries));
  const Descriptor group(files_, files_.open_at(root_.handle(), "s.b2z/group", O_RDONLY).value());
  EXPECT_TRUE(files_.list_attributes(group.handle()));
  const auto value = files_.get_attribute(group.handle(), std::string(kVlmetaAttribute) + "title");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().kind, codec::ErrorKind::corruption);
  EXPECT_EQ(list("s.b2z/group"), (std::set<std::string>{"flat.b2f", "sub/"}));
}

TEST_F(StoreFilesTest, ADamagedStoreIsADirectoryThatCannotBeListed) {
  Bytes bytes = test::embed_frame({{"/x", small_array()}});
  bytes[100] ^= 0xff;
  bytes[40] ^= 0xff;
  directory_.write("e.b2e", bytes);
  const auto status = files_.status_at(root_.handle(), "e.b2e");
  ASSERT_TRUE(status);
  EXPECT_TRUE(S_ISDIR(status->st_mode));
  const auto fd = files_.open_at(root_.handle(), "e.b2e", O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(fd);
  const Descriptor opened(files_, *fd);
  const auto entries = files_.list(opened.handle());
  ASSERT_FALSE(entries);
  EXPECT_NE(entries.error().kind, codec::ErrorKind::io);
  EXPECT_FALSE(files_.status_at(root_.handle(), "e.b2e/x.b2nd"));
}

TEST(GoldenStores, LeavesAreThoseOfTheManifest) {
  if (test::shared_golden_dir().empty()) GTEST_SKIP() << "not part of the project: golden stores";
  StoreFiles files(system_files());
  const Descriptor root(files, files.open_named((test::shared_golden_dir() / "legacy").string(), O_RDONLY).value());
  const auto size = [&](const std::string& path) -> std::int64_t {
    const auto status = files.status_at(root.handle(), path);
    return status ? status->st_size : -1;
  };
  for (const std::string store : {"store-tree.b2d/", "store-tree.b2z/", "store-tree-extra.b2z/"}) {
    EXPECT_GT(size(store + "child0/leaf1.b2nd"), 0) << store;
    EXPECT_GT(size(store + "child0/child1/leaf2.b2nd"), 0) << store;
    EXPECT_EQ(size(store + "tiny.b2nd"), 277) << store;
  }
  // A store repacked with deflated members has the same content.
  const auto leaf = [&](const std::string& path) {
    const Descriptor opened(files, files.open_at(root.handle(), path, O_RDONLY).value());
    Bytes bytes(static_cast<std::size_t>(size(path)));
    EXPECT_TRUE(files.pread(opened.handle(), bytes, FileOffset{0})) << path;
    return bytes;
  };
  for (const std::string name : {"child0/leaf1.b2nd", "child0/child1/leaf2.b2nd", "cube.b2nd", "raw.b2f", "tiny.b2nd"})
    EXPECT_EQ(leaf("store-tree-deflated.b2z/" + name), leaf("store-tree.b2z/" + name)) << name;
  EXPECT_EQ(size("store-embed.b2e/node1.b2nd"), 1664);
  EXPECT_EQ(size("store-embed.b2e/dir1/node2.b2nd"), 2520);
  EXPECT_EQ(size("store-embed.b2e/dir1/raw.b2f"), 20364);
  EXPECT_EQ(size("store-embed.b2e/gone.b2f"), -1);
}

}  // namespace
}  // namespace cframefs::frame
