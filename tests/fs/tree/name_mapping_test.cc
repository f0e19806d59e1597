// Names in the mount: a listing and a single look-up must agree for any content of the directory.
#include "fs/tree/name_mapping.h"

#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace cframefs::fs {
namespace {

const std::vector<std::string> kStems = {"a",    "ab",       ".cframefs-tmp.x", ".cframefs-tmp+.x", ".cframefs-tmp++.x",
                                         "a.b2", "a.b2lock", ".cframefs-tmp"};
const std::vector<std::string> kSuffixes = {"",     ".b2",    ".b2f",    ".b2frame", ".b2nd",
                                            ".blp", ".cdata", ".b2lock", ".npy",     ".txt"};

std::string any_name() {
  std::string name = *rc::gen::elementOf(kStems);
  const int suffixes = *rc::gen::inRange(0, 3);
  for (int i = 0; i < suffixes; ++i)
    name += *rc::gen::elementOf(kSuffixes);
  return name;
}

using Directory = std::map<std::string, EntryKind>;

Directory any_directory(const NameMapper& rules) {
  Directory directory;
  const int entries = *rc::gen::inRange(0, 10);
  for (int i = 0; i < entries; ++i) {
    const std::string name = any_name();
    const bool container = NameMapper::has_container_suffix(name) && *rc::gen::arbitrary<bool>();
    directory[name] = container ? *rc::gen::element(EntryKind::frame, EntryKind::sparse_frame)
                                : *rc::gen::element(EntryKind::plain, EntryKind::directory, EntryKind::symlink);
    // The shown name of a Bloscpack file depends on its content, if arrays show as .npy files.
    if (container && rules.needs_content_probe(name) && *rc::gen::arbitrary<bool>()) {
      directory[name] = EntryKind::packed_array;
    }
  }
  return directory;
}

std::map<std::string, std::string> shown_of(const NameMapper& rules, const Directory& directory) {
  std::vector<StoredEntry> stored;
  for (const auto& [name, kind] : directory)
    stored.push_back({name, kind});
  std::map<std::string, std::string> shown;
  for (const ShownEntry& entry : rules.show(std::move(stored))) {
    const bool is_new = shown.emplace(entry.shown, entry.stored.name).second;
    RC_ASSERT(is_new);
  }
  return shown;
}

void check_agreement(const NameMapper& rules) {
  const Directory directory = any_directory(rules);
  const auto shown = shown_of(rules, directory);
  const auto kind_of = [&](const std::string& name) -> codec::Result<EntryKind> {
    const auto found = directory.find(name);
    return found == directory.end() ? EntryKind::none : found->second;
  };
  std::set<std::string> asked;
  for (const auto& [name, kind] : directory) {
    asked.insert(name);
    asked.insert(rules.short_name_of(name));
    asked.insert(rules.short_name_of(name, EntryKind::packed_array));
    asked.insert(rules.short_name_of(rules.short_name_of(name)));
  }
  for (int i = 0; i < 10; ++i)
    asked.insert(any_name());
  for (const std::string& name : asked) {
    const auto owner = rules.resolve_shown(name, kind_of);
    RC_ASSERT(owner.has_value());
    const auto listed = shown.find(name);
    RC_LOG() << "asked for " << name << "\n";
    RC_ASSERT((owner->kind != EntryKind::none) == (listed != shown.end()));
    if (listed != shown.end()) RC_ASSERT(owner->name == listed->second);
  }
}

TEST(Names, AFrameWhoseShortNameWouldBeALockShowsItsFullName) {
  const auto shown =
      NameMapper(Names::strip).show({{"a.b2", EntryKind::frame}, {"a.b2.b2lock.b2frame", EntryKind::frame}});
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_EQ(shown[0].shown, "a");
  EXPECT_EQ(shown[1].shown, "a.b2.b2lock.b2frame");
}

RC_GTEST_PROP(Names, LookUpAgreesWithTheListing, ()) {
  check_agreement(NameMapper(Names::strip, *rc::gen::element(ArrayView::npy, ArrayView::flat, ArrayView::chunks)));
}

RC_GTEST_PROP(Names, LookUpAgreesWithTheListingWhereNamesAreKept, ()) {
  check_agreement(NameMapper(Names::keep, *rc::gen::element(ArrayView::npy, ArrayView::flat, ArrayView::chunks)));
}

TEST(Names, AnArrayShowsAsWhatItIsReadAs) {
  const std::vector<StoredEntry> stored = {{"x.b2nd", EntryKind::frame}, {"y.b2frame", EntryKind::frame}};
  EXPECT_EQ(NameMapper(Names::strip, ArrayView::npy).show(stored)[0].shown, "x.npy");
  EXPECT_EQ(NameMapper(Names::strip, ArrayView::flat).show(stored)[0].shown, "x");
  EXPECT_EQ(NameMapper(Names::strip, ArrayView::chunks).show(stored)[0].shown, "x");
  EXPECT_EQ(NameMapper(Names::keep, ArrayView::npy).show(stored)[0].shown, "x.b2nd");
  EXPECT_EQ(NameMapper(Names::strip, ArrayView::npy).show(stored)[1].shown, "y");
}

// semantics: N5
TEST(Names, ThePlainFileKeepsTheNameThatAFrameWouldShowUnder) {
  const NameMapper rules(Names::strip);
  const auto shown = rules.show({{"x.b2frame", EntryKind::frame}, {"x", EntryKind::plain}});
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_EQ(shown[0].shown, "x");
  EXPECT_EQ(shown[0].stored.kind, EntryKind::plain);
  EXPECT_EQ(shown[1].shown, "x.b2frame");
}

// semantics: N6
TEST(Names, TemporaryFilesAndLocksOfFramesAreHiddenAndLocksOfOthersAreNot) {
  const NameMapper rules(Names::strip);
  const auto shown = rules.show({{".cframefs-tmp.1", EntryKind::plain},
                                 {"x.b2frame", EntryKind::frame},
                                 {"x.b2frame.b2lock", EntryKind::plain},
                                 {"notes.b2lock", EntryKind::plain}});
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_EQ(shown[0].shown, "x");
  EXPECT_EQ(shown[1].shown, "notes.b2lock");
}

RC_GTEST_PROP(NameMapping, ALookUpExaminesNoNameThatDiffersInMoreThanSuffixes, ()) {
  const NameMapper rules(*rc::gen::element(Names::strip, Names::keep),
                         *rc::gen::element(ArrayView::npy, ArrayView::flat));
  const Directory directory = any_directory(rules);
  const std::string shown = any_name();
  RC_PRE(!NameMapper::is_reserved(shown));
  const auto found = rules.resolve_shown(shown, [&](const std::string& stored) -> codec::Result<EntryKind> {
    RC_ASSERT(NameMapper::without_suffixes(stored) == NameMapper::without_suffixes(shown));
    const auto entry = directory.find(stored);
    return entry == directory.end() ? EntryKind::none : entry->second;
  });
  RC_ASSERT(found.has_value());
}

}  // namespace
}  // namespace cframefs::fs
