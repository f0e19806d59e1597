#include "frame/remote/listings/indexed_listing.h"

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/io/descriptor.h"
#include "tests/support/keeping_store.h"
#include "tests/support/remote_world.h"

namespace cframefs::test {
namespace {

using frame::Descriptor;
using frame::FileOffset;
using frame::IndexedObject;
using std::chrono::seconds;
using Bytes = std::vector<std::uint8_t>;
using Names = std::vector<std::string>;

const std::string kIndexPath(frame::kIndexName);

/// The listing of a world's objects, which the world owns.
class Borrowed final : public frame::Listing {
 public:
  explicit Borrowed(frame::Listing& listing) : listing_(listing) {}
  frame::Result<std::vector<frame::ListedEntry>> list(const std::string& directory) override {
    return is_refused ? codec::io_error(EACCES, "list") : listing_.list(directory);
  }
  std::string url_of(const std::string& path) const override { return listing_.url_of(path); }

  bool is_refused = false;

 private:
  frame::Listing& listing_;
};

/// Forwards to the indexed listing, which is made after the world that it asks.
class Late final : public frame::Listing {
 public:
  frame::Result<std::vector<frame::ListedEntry>> list(const std::string& directory) override {
    return listing->list(directory);
  }
  frame::Result<std::optional<frame::ListedEntry>> find_unlisted(const std::string& directory,
                                                                 const std::string& name) override {
    return listing->find_unlisted(directory, name);
  }
  bool is_dated() const override { return listing->is_dated(); }
  bool copy_known(const std::string& path, const frame::ObjectState& state, FileOffset at,
                  codec::ByteSpan into) const override {
    return listing->copy_known(path, state, at, into);
  }
  std::string url_of(const std::string& path) const override { return listing->url_of(path); }

  std::unique_ptr<frame::IndexedListing> listing;
};

class IndexedListingTest : public testing::Test {
 protected:
  IndexedListingTest() {
    const auto now = [this] { return world_.now; };
    auto live = std::make_unique<Borrowed>(world_.objects);
    live_ = live.get();
    auto index = std::make_unique<frame::IndexSource>(
        world_.requests, FakeObjects::kRoot + kIndexPath, kTtl,
        [this](const std::string& text) { warnings_.push_back(text); }, now);
    late_.listing = std::make_unique<frame::IndexedListing>(std::move(live), std::move(index), kTtl, now);
    put("a.b2frame", 1);
    put("d/b.b2frame", 2);
    put("plain", 3);
  }

  void put(const std::string& path, std::uint8_t seed) {
    world_.objects.put(path, Bytes(5000, seed), "\"" + std::to_string(seed) + "\"");
  }
  /// Puts an index of all objects, with the first 100 bytes of each.
  void write_index(const std::string& tag) {
    std::vector<IndexedObject> objects;
    for (const auto& [path, seed] :
         std::vector<std::pair<std::string, std::uint8_t>>{{"a.b2frame", 1}, {"d/b.b2frame", 2}, {"plain", 3}}) {
      IndexedObject object;
      object.path = path;
      object.state = {"\"" + std::to_string(seed) + "\"", "", 784111777, 5000};
      object.pieces = {{0, Bytes(100, seed)}};
      objects.push_back(std::move(object));
    }
    const auto stored = frame::encode_index(std::move(objects));
    ASSERT_TRUE(stored);
    world_.objects.put(kIndexPath, *stored, tag);
  }
  Names names(const std::string& directory = "") {
    Names found;
    const auto entries = late_.list(directory);
    if (!entries) return {"error"};
    for (const auto& entry : *entries)
      found.push_back(entry.name);
    return found;
  }
  int opening(const std::string& path, int flags = O_RDONLY) {
    const auto file = world_.files.open_at(root(), path, flags);
    if (!file) return file.error().kind == codec::ErrorKind::stale ? ESTALE : file.error().sys;
    world_.files.close(*file);
    return 0;
  }
  std::uint8_t first_byte(const std::string& path, int flags = O_RDONLY) {
    const auto file = world_.files.open_at(root(), path, flags);
    EXPECT_TRUE(file) << codec::describe(file.error());
    const Descriptor opened(world_.files, file.value_or(frame::OpenFile{}));
    Bytes into(1);
    const auto got = world_.files.pread(opened.handle(), into, FileOffset{0});
    EXPECT_TRUE(got) << codec::describe(got.error());
    return into[0];
  }
  /// Returns whether a mount with the store gets the index, and how many bytes the server sent.
  std::pair<bool, std::size_t> index_of_mount(frame::RangeStore& store) {
    std::size_t sent = 0;
    FakeRequests requests([&](const frame::HttpRequest& request) {
      auto answer = world_.objects.answer(request);
      sent += answer ? answer->body.size() : 0;
      return answer;
    });
    frame::IndexSource source(
        requests, FakeObjects::kRoot + kIndexPath, kTtl, [](const std::string&) {}, [this] { return world_.now; },
        store);
    const auto index = source.current();
    return {index && *index != nullptr, sent};
  }
  frame::OpenFile root() {
    if (!root_.handle().is_open()) {
      root_ =
          Descriptor(world_.files, world_.files.open_named("/", O_RDONLY | O_DIRECTORY).value_or(frame::OpenFile{}));
    }
    return root_.handle();
  }

  static constexpr seconds kTtl{60};

  Late late_;
  RemoteWorld world_{true, kTtl, &late_};
  Borrowed* live_ = nullptr;
  std::vector<std::string> warnings_;
  Descriptor root_;
};

TEST_F(IndexedListingTest, WithoutAnIndexTheServerListsAndIsAskedOnceForIt) {
  EXPECT_EQ(names(), (Names{"a.b2frame", "d", "plain"}));
  EXPECT_EQ(names("d"), Names{"b.b2frame"});
  EXPECT_EQ(world_.requests.count(), 1U);
  EXPECT_FALSE(late_.is_dated());
  world_.now += kTtl;
  EXPECT_EQ(names("d"), Names{"b.b2frame"});
  EXPECT_EQ(world_.requests.count(), 2U);
  EXPECT_EQ(warnings_, std::vector<std::string>{});
}

TEST_F(IndexedListingTest, WithAnIndexNothingElseIsAsked) {
  write_index("\"i\"");
  EXPECT_EQ(names(), (Names{"a.b2frame", "d", "plain"}));
  EXPECT_EQ(names("d"), Names{"b.b2frame"});
  EXPECT_EQ(opening("d/b.b2frame", O_RDONLY | O_NOATIME), 0);
  EXPECT_EQ(first_byte("a.b2frame", O_RDONLY | O_NOATIME), 1);
  EXPECT_EQ(world_.requests.count(), 1U);
  EXPECT_EQ(world_.objects.listings(), 0U);
}

TEST_F(IndexedListingTest, AfterTheTimeToLiveTheServerIsAskedWhetherItHolds) {
  write_index("\"i\"");
  EXPECT_EQ(names().size(), 3U);
  world_.now += kTtl;
  EXPECT_EQ(names().size(), 3U);
  ASSERT_EQ(world_.requests.count(), 2U);
  const auto asked = world_.requests.requests().back();
  EXPECT_TRUE(std::any_of(asked.headers.begin(), asked.headers.end(), [](const frame::HttpHeader& header) {
    return header.name == "If-None-Match" && header.value == "\"i\"";
  }));
  EXPECT_TRUE(late_.is_dated());
  world_.objects.remove(kIndexPath);
  world_.now += kTtl;
  EXPECT_EQ(names().size(), 3U);
  EXPECT_FALSE(late_.is_dated());
}

TEST_F(IndexedListingTest, AStoreKeepsTheIndexForLaterMountsWhichAskWhetherItHolds) {
  KeepingStore store;
  write_index("\"i\"");
  const auto [was_found, sent] = index_of_mount(store);
  EXPECT_TRUE(was_found);
  EXPECT_GT(sent, 0U);
  EXPECT_EQ(index_of_mount(store), std::pair(true, std::size_t{0}));
  write_index("\"j\"");
  EXPECT_EQ(index_of_mount(store), std::pair(true, sent));
  EXPECT_EQ(index_of_mount(store), std::pair(true, std::size_t{0}));
  for (auto& [name, block] : store.kept)  // what is lost or damaged is fetched again
    block.assign(block.size() / 2, 0);
  EXPECT_EQ(index_of_mount(store), std::pair(true, sent));
  world_.objects.remove(kIndexPath);
  EXPECT_FALSE(index_of_mount(store).first);
}

TEST_F(IndexedListingTest, AKeptIndexCountsForNothingUntilTheServerSaysThatItHolds) {
  KeepingStore store;
  write_index("\"i\"");
  EXPECT_TRUE(index_of_mount(store).first);
  FakeRequests dead([](const frame::HttpRequest&) -> codec::Result<frame::HttpAnswer> {
    return codec::io_error(EHOSTUNREACH, "connect");
  });
  frame::IndexSource source(
      dead, FakeObjects::kRoot + kIndexPath, kTtl, [](const std::string&) {}, [this] { return world_.now; }, store);
  const auto index = source.current();
  ASSERT_FALSE(index);
  EXPECT_EQ(index.error().sys, EHOSTUNREACH);
  EXPECT_EQ(source.last(), nullptr);
}

TEST_F(IndexedListingTest, AReplacedObjectIsStaleWhenItIsOpenedAndNewThen) {
  write_index("\"i\"");
  put("plain", 9);
  EXPECT_EQ(first_byte("plain", O_RDONLY | O_NOATIME), 3) << "a look takes what the index tells";
  EXPECT_EQ(opening("plain"), ESTALE);
  EXPECT_EQ(first_byte("plain"), 9);
  EXPECT_EQ(first_byte("a.b2frame"), 1);
}

TEST_F(IndexedListingTest, AnObjectThatIsReplacedOnceMoreIsNewEachTime) {
  write_index("\"i\"");
  EXPECT_EQ(first_byte("plain"), 3);
  for (std::uint8_t seed = 10; seed < 14; ++seed) {
    put("plain", seed);
    world_.now += kTtl;
    EXPECT_EQ(opening("plain"), ESTALE);
    EXPECT_EQ(first_byte("plain"), seed);
  }
}

TEST_F(IndexedListingTest, ARemovedObjectIsMissingWhenItIsOpenedAndLeavesTheListing) {
  write_index("\"i\"");
  const auto root_names = [this] {
    Names found;
    for (const auto& entry : world_.files.list(root()).value_or(std::vector<frame::DirectoryEntry>{}))
      found.push_back(entry.name);
    return found;
  };
  world_.objects.remove("plain");
  EXPECT_EQ(root_names(), (Names{"a.b2frame", "d", "plain"}));
  EXPECT_EQ(opening("plain"), ENOENT);
  EXPECT_EQ(root_names(), (Names{"a.b2frame", "d"}));
  // It is there again: a look-up finds it.
  put("plain", 5);
  EXPECT_EQ(first_byte("plain"), 5);
  EXPECT_EQ(root_names(), (Names{"a.b2frame", "d", "plain"}));
}

TEST_F(IndexedListingTest, AnAddedObjectIsFoundByItsName) {
  write_index("\"i\"");
  put("new", 7);
  put("fresh/x", 8);
  EXPECT_EQ(names(), (Names{"a.b2frame", "d", "plain"}));
  EXPECT_EQ(first_byte("new"), 7);
  EXPECT_EQ(first_byte("fresh/x"), 8);
  EXPECT_EQ(opening("absent"), ENOENT);
  EXPECT_EQ(world_.objects.listings(), 2U) << "the root once, and the new directory";
  EXPECT_EQ(names("fresh"), Names{"x"});
}

TEST_F(IndexedListingTest, OtherSpellingsOfAnIndexedNameAreNotAskedFor) {
  write_index("\"i\"");
  EXPECT_EQ(opening("a"), ENOENT);
  for (const char* name : {"a.b2nd", "a.npy", "a.b2f", "plain.b2frame"})
    EXPECT_EQ(opening(name), ENOENT) << name;
  EXPECT_EQ(world_.requests.count(), 1U);
  EXPECT_EQ(world_.objects.listings(), 0U);
}

TEST_F(IndexedListingTest, AServerThatListsNothingIsAskedForTheObject) {
  write_index("\"i\"");
  live_->is_refused = true;
  put("new", 7);
  EXPECT_EQ(names(), (Names{"a.b2frame", "d", "plain"}));
  EXPECT_EQ(first_byte("new"), 7);
  EXPECT_EQ(opening("absent"), ENOENT);
}

TEST_F(IndexedListingTest, ADamagedIndexCountsAsNoneAndIsToldOnce) {
  world_.objects.put(kIndexPath, Bytes(1000, 7), "\"i\"");
  EXPECT_EQ(names(), (Names{"a.b2frame", "d", "plain"})) << "the index itself is not listed";
  EXPECT_EQ(opening(kIndexPath), ENOENT);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("no index of cframefs"), std::string::npos) << warnings_[0];
  for (int i = 0; i < 3; ++i) {
    world_.now += kTtl;
    EXPECT_EQ(names().size(), 3U);
  }
  EXPECT_EQ(warnings_.size(), 1U);
  write_index("\"good\"");
  world_.now += kTtl;
  EXPECT_EQ(names().size(), 3U);
  EXPECT_TRUE(late_.is_dated());
}

}  // namespace
}  // namespace cframefs::test
