// Which names a watched directory is known to lack.
#include "fs/tree/watched_names.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kDirectory = 7;

class WatchedNamesTest : public ::testing::Test {
 protected:
  std::uint64_t begin() { return names_.begin_listing(kDirectory, WatchedNames::kFewLooks); }
  void list(const std::vector<std::string>& names) {
    names_.follow(kDirectory);
    names_.end_listing(kDirectory, begin(), &names);
    ASSERT_TRUE(names_.is_listed(kDirectory));
  }
  bool lacks(const std::string& name) const { return names_.lacks(kDirectory, name); }
  static std::vector<std::string> numbered(std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i)
      names.push_back("f" + std::to_string(i));
    return names;
  }
  WatchedNames names_;
};

TEST_F(WatchedNamesTest, ADirectoryIsListedOnlyAfterManyLooks) {
  EXPECT_EQ(begin(), 0U) << "not followed";
  names_.follow(kDirectory);
  EXPECT_EQ(names_.begin_listing(kDirectory, WatchedNames::kFewLooks - 1), 0U);
  EXPECT_FALSE(lacks("x"));
  EXPECT_NE(names_.begin_listing(kDirectory, 1), 0U);
  EXPECT_FALSE(lacks("x")) << "the listing has not ended";
  EXPECT_EQ(begin(), 0U) << "another thread lists it";
}

TEST_F(WatchedNamesTest, AListedDirectoryLacksAllOtherNames) {
  list({"a", "b"});
  EXPECT_FALSE(lacks("a"));
  EXPECT_FALSE(lacks("b"));
  EXPECT_TRUE(lacks("c"));
  EXPECT_FALSE(names_.lacks(kDirectory + 1, "c"));
  names_.appeared(kDirectory, "c");
  EXPECT_FALSE(lacks("c"));
}

TEST_F(WatchedNamesTest, AListedDirectoryLacksAllFormsOfOtherNames) {
  list({"a", "b.b2frame", "c.npy.b2nd"});
  const auto lacks_forms = [&](const std::string& shown) { return names_.lacks_forms_of(kDirectory, shown); };
  for (const char* const there : {"a", "a.npy", "b", "b.b2nd", "b.b2frame", "c", "c.npy", "c.b2lock"})
    EXPECT_FALSE(lacks_forms(there)) << there;
  EXPECT_TRUE(lacks_forms("d"));
  EXPECT_TRUE(lacks_forms("d.npy"));
  EXPECT_TRUE(lacks_forms("ab"));
  EXPECT_FALSE(lacks_forms(".cframefs-tmp")) << "its names on disk are other ones";
  EXPECT_FALSE(names_.lacks_forms_of(kDirectory + 1, "d"));
  names_.appeared(kDirectory, "d.b2f");
  EXPECT_FALSE(lacks_forms("d.npy"));
  names_.lose_track();
  EXPECT_FALSE(lacks_forms("ab"));
}

TEST_F(WatchedNamesTest, ANameIsTheOnlyFormUntilAnotherOneAppears) {
  names_.follow(kDirectory);
  EXPECT_FALSE(names_.is_only_form(kDirectory, "a.b2frame")) << "the directory is not listed";
  list({"a.b2frame", "c", "c.b2frame"});
  const auto is_only = [&](const std::string& name) { return names_.is_only_form(kDirectory, name); };
  EXPECT_TRUE(is_only("a.b2frame"));
  EXPECT_FALSE(is_only("a")) << "it is not there";
  EXPECT_FALSE(is_only("c"));
  EXPECT_FALSE(is_only("c.b2frame"));
  names_.appeared(kDirectory, "a.b2frame");
  EXPECT_TRUE(is_only("a.b2frame")) << "it appears for the second time";
  names_.appeared(kDirectory, "a.b2f");
  EXPECT_FALSE(is_only("a.b2frame"));
  EXPECT_FALSE(is_only("a.b2f"));
  names_.appeared(kDirectory, ".cframefs-tmp+.b2frame");
  EXPECT_FALSE(is_only(".cframefs-tmp+.b2frame")) << "it shows under another name";
}

TEST_F(WatchedNamesTest, ANameThatAppearsDuringTheListingIsNotLacked) {
  names_.follow(kDirectory);
  const std::uint64_t listing = begin();
  names_.appeared(kDirectory, "new");
  const std::vector<std::string> old{"old"};
  names_.end_listing(kDirectory, listing, &old);
  EXPECT_FALSE(lacks("new"));
  EXPECT_FALSE(lacks("old"));
  EXPECT_TRUE(lacks("other"));
}

TEST_F(WatchedNamesTest, AListingDuringWhichEventsWereLostDoesNotCount) {
  names_.follow(kDirectory);
  const std::uint64_t first = begin();
  names_.lose_track();
  const std::vector<std::string> old{"old"};
  names_.end_listing(kDirectory, first, &old);
  EXPECT_FALSE(names_.is_listed(kDirectory));
  // Nor does it end the next one.
  ASSERT_NE(begin(), 0U);
  names_.end_listing(kDirectory, first, &old);
  EXPECT_FALSE(names_.is_listed(kDirectory));
}

TEST_F(WatchedNamesTest, LostEventsAndAForgottenDirectoryLeaveNothingLacked) {
  list({"a"});
  names_.lose_track();
  EXPECT_FALSE(lacks("x"));
  list({"a"});
  names_.forget(kDirectory);
  EXPECT_FALSE(lacks("x"));
  EXPECT_EQ(begin(), 0U);
}

TEST_F(WatchedNamesTest, ADirectoryThatMayBeEmptyIsListedAnew) {
  list({"a"});
  names_.vanished(kDirectory);
  EXPECT_FALSE(names_.is_listed(kDirectory));
  const auto many = numbered(100);
  list(many);
  for (int i = 0; i < 50; ++i)
    names_.vanished(kDirectory);
  EXPECT_TRUE(names_.is_listed(kDirectory));
  names_.vanished(kDirectory);
  EXPECT_FALSE(names_.is_listed(kDirectory));
}

TEST_F(WatchedNamesTest, TemporaryFilesAreNotInTheTable) {
  list({"a", ".cframefs-tmp.1.b2frame", ".cframefs-tmp.2.b2frame"});
  EXPECT_FALSE(lacks(".cframefs-tmp.1.b2frame"));
  EXPECT_FALSE(lacks(".cframefs-tmp.3.b2frame")) << "the table does not know";
  names_.vanished(kDirectory);
  EXPECT_FALSE(names_.is_listed(kDirectory)) << "the directory may be empty";
}

TEST_F(WatchedNamesTest, ADirectoryThatCannotBeListedIsTriedAgainMuchLater) {
  names_.follow(kDirectory);
  names_.end_listing(kDirectory, begin(), nullptr);
  EXPECT_FALSE(names_.is_listed(kDirectory));
  for (int i = 1; i < 8; ++i)
    EXPECT_EQ(begin(), 0U);
  EXPECT_NE(begin(), 0U);
}

TEST_F(WatchedNamesTest, TheDirectoriesOfAMountHaveABound) {
  names_.follow(kDirectory);
  const auto too_many = numbered(WatchedNames::kMostNames + 1);
  names_.end_listing(kDirectory, begin(), &too_many);
  EXPECT_FALSE(names_.is_listed(kDirectory));
  names_.forget(kDirectory);
  const auto most = numbered(WatchedNames::kMostNames);
  list(most);
  names_.appeared(kDirectory, "one more");
  EXPECT_FALSE(names_.is_listed(kDirectory));
  // The names that were dropped do not count.
  names_.forget(kDirectory);
  list(most);
}

}  // namespace
}  // namespace cframefs::fs
