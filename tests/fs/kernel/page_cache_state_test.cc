// Each transition of fs/doc/page-cache.md.
#include "fs/kernel/page_cache_state.h"

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

using Drop = PageCacheState::Drop;
using Pages = PageCacheState::Pages;

/// A version of the backing file. `racy`: its timestamp cannot be trusted.
frame::FileVersion state(std::int64_t number, bool racy = false) {
  frame::FileVersion identity;
  identity.inode = 1;
  identity.mtime_ns = identity.ctime_ns = number;
  identity.racy = racy;
  return identity;
}

class PageCacheStateTest : public ::testing::Test {
 protected:
  PageCacheState::Opened open(const frame::FileVersion& file, bool writes = false) {
    return pages_.opened({file, writes, false, false, false});
  }
  /// Opens a handle and carries out its drop, if there is one. Returns whether the open kept pages.
  bool open_and_confirm(const frame::FileVersion& file, bool writes = false) {
    const bool kept = open(file, writes).keep_pages;
    if (!kept) pages_.open_confirmed();
    return kept;
  }
  Drop change(const frame::FileVersion& before, const frame::FileVersion& after) {
    pages_.begin_change();
    return pages_.end_change(before, after);
  }
  Drop stat(const frame::FileVersion& file, std::uint64_t size = 100) {
    return pages_.seen_by_stat(pages_.begin_look(), file, size);
  }
  Drop read(const frame::FileVersion& file) { return pages_.seen_by_read(pages_.begin_look(), file); }
  void carry_out() { pages_.drops().carried_out(pages_.drops().requested()); }

  PageCacheState pages_;
};

// ---- open ----

TEST_F(PageCacheStateTest, TheFirstOpenKeepsNoPages) {
  EXPECT_EQ(pages_.pages(), Pages::none);
  EXPECT_FALSE(open(state(1)).keep_pages);
  EXPECT_EQ(pages_.pages(), Pages::held);
}

TEST_F(PageCacheStateTest, AnOpenOfTheSameStateKeepsPages) {
  open_and_confirm(state(1));
  EXPECT_TRUE(open(state(1)).keep_pages);
}

TEST_F(PageCacheStateTest, AFileThatTheKernelReadsItselfHasNoPages) {
  open_and_confirm(state(1), true);
  pages_.passed();
  EXPECT_EQ(pages_.pages(), Pages::none);
  EXPECT_EQ(stat(state(2)), Drop::nothing);
  EXPECT_EQ(read(state(3)), Drop::nothing);
  EXPECT_EQ(change(state(3), state(4)), Drop::nothing);
  EXPECT_EQ(pages_.closed(true), Drop::nothing);
  EXPECT_FALSE(open(state(1)).keep_pages);
}

TEST_F(PageCacheStateTest, AnOpenTellsWhetherTheStateIsThatOfTheLastOneAlsoIfThereAreNoPages) {
  EXPECT_FALSE(open(state(1)).same_state);
  pages_.passed();
  EXPECT_TRUE(open(state(1)).same_state);
  pages_.passed();
  EXPECT_FALSE(open(state(2)).same_state);
  EXPECT_FALSE(open(state(3, true)).same_state);
  EXPECT_FALSE(open(state(3, true)).same_state);
}

TEST_F(PageCacheStateTest, AnOpenOfAnotherStateDropsPages) {
  open_and_confirm(state(1));
  EXPECT_FALSE(open_and_confirm(state(2)));
  EXPECT_TRUE(open(state(2)).keep_pages);
}

TEST_F(PageCacheStateTest, AStampThatHasNotSettledProvesNothing) {
  open_and_confirm(state(1, true));
  EXPECT_FALSE(open_and_confirm(state(1, false)));
  EXPECT_TRUE(open(state(1, false)).keep_pages);
}

TEST_F(PageCacheStateTest, AStampOfWholeSecondsIsNoProofForStatUntilItHasSettled) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  open_and_confirm(state(7 * kSecond, true));
  EXPECT_EQ(stat(state(7 * kSecond, true)), Drop::nothing) << "another size: the kernel drops the pages itself";
  EXPECT_EQ(stat(state(7 * kSecond, true)), Drop::pages);
  EXPECT_EQ(stat(state(7 * kSecond)), Drop::pages) << "the last change may have come after the last look";
  EXPECT_EQ(stat(state(7 * kSecond)), Drop::nothing);
  open_and_confirm(state(8 * kSecond, true), true);
  EXPECT_EQ(stat(state(8 * kSecond, true)), Drop::nothing) << "the mount writes, and recognises its own changes";
}

TEST_F(PageCacheStateTest, AStampThatHasNotSettledIsTrustedWhileTheMountWrites) {
  open_and_confirm(state(1, true), true);
  EXPECT_TRUE(open(state(1, true)).keep_pages);
}

TEST_F(PageCacheStateTest, AnOpenThatDropsPagesBesideAWriterRaces) {
  open_and_confirm(state(1), true);
  EXPECT_FALSE(open_and_confirm(state(2)));
  EXPECT_EQ(pages_.pages(), Pages::racing);
}

TEST_F(PageCacheStateTest, DamageThatSharesPagesMakesReadsDirect) {
  open_and_confirm(state(1));
  pages_.note_damage();
  const auto opened = pages_.opened({state(1), false, false, true, false});
  EXPECT_TRUE(opened.direct);
  EXPECT_FALSE(opened.keep_pages);
  EXPECT_FALSE(pages_.opened({state(1), false, false, false, false}).direct);
  EXPECT_FALSE(pages_.opened({state(2), false, false, true, false}).direct) << "damage belongs to a state";
  EXPECT_TRUE(pages_.opened({state(2), false, true, true, false}).direct);
}

// ---- changes by the mount itself ----

TEST_F(PageCacheStateTest, AnOwnChangeKeepsPages) {
  open_and_confirm(state(1), true);
  EXPECT_EQ(change(state(1), state(2, true)), Drop::nothing);
  EXPECT_TRUE(pages_.is_own(state(2)));
  EXPECT_EQ(stat(state(2)), Drop::nothing);
  EXPECT_EQ(pages_.reported(state(2)), Drop::nothing);
  EXPECT_TRUE(open(state(2, true)).keep_pages);
}

TEST_F(PageCacheStateTest, AnOwnChangeOfAFileThatWasNeverOpenProvesNothing) {
  EXPECT_EQ(change(state(1), state(2)), Drop::nothing);
  EXPECT_FALSE(pages_.is_own(state(2)));
  EXPECT_FALSE(open(state(2)).keep_pages);
}

TEST_F(PageCacheStateTest, ALookDuringAnOwnChangeCountsForNothing) {
  open_and_confirm(state(1), true);
  const auto before = pages_.begin_look();
  pages_.begin_change();
  const auto during = pages_.begin_look();
  EXPECT_EQ(pages_.seen_by_stat(before, state(7), 100), Drop::nothing);
  EXPECT_EQ(pages_.seen_by_stat(during, state(7), 100), Drop::nothing);
  EXPECT_EQ(pages_.end_change(state(1), state(2)), Drop::nothing);
  EXPECT_EQ(pages_.seen_by_stat(before, state(7), 100), Drop::nothing);
  EXPECT_EQ(pages_.seen_by_read(during, state(7)), Drop::nothing);
  EXPECT_EQ(pages_.pages(), Pages::held);
  EXPECT_TRUE(open(state(2)).keep_pages);
}

TEST_F(PageCacheStateTest, AnOwnChangeThatFindsAnotherStateDropsPages) {
  open_and_confirm(state(1), true);
  EXPECT_EQ(change(state(5), state(6)), Drop::pages);
  EXPECT_EQ(pages_.pages(), Pages::racing);
  EXPECT_TRUE(pages_.is_own(state(6)));
}

TEST_F(PageCacheStateTest, AnOwnChangeWhoseResultIsUnknownDropsPages) {
  open_and_confirm(state(1), true);
  pages_.begin_change();
  EXPECT_EQ(pages_.end_change(state(1), std::nullopt), Drop::pages);
  EXPECT_FALSE(open(state(2)).keep_pages);
}

// ---- commits ----

TEST_F(PageCacheStateTest, AnOwnCommitKeepsPages) {
  open_and_confirm(state(1), true);
  EXPECT_EQ(pages_.committed(state(1), state(2), true), Drop::nothing);
  EXPECT_TRUE(pages_.is_own(state(2)));
  EXPECT_TRUE(open(state(2)).keep_pages);
}

TEST_F(PageCacheStateTest, AFailedCommitThatTouchedTheFileKeepsPages) {
  // A commit that fails leaves other timestamps and the same content; the bytes that programs wrote are still accepted.
  open_and_confirm(state(1), true);
  EXPECT_EQ(pages_.committed(state(1), state(3), true), Drop::nothing);
  EXPECT_EQ(stat(state(3)), Drop::nothing);
  EXPECT_TRUE(open(state(3)).keep_pages);
}

TEST_F(PageCacheStateTest, ACommitDuringALookMakesTheLookWorthless) {
  open_and_confirm(state(1));
  const auto look = pages_.begin_look();
  static_cast<void>(pages_.committed(state(1), state(2), true));
  EXPECT_EQ(pages_.seen_by_read(look, state(1)), Drop::nothing);
  EXPECT_TRUE(open(state(2)).keep_pages);
}

TEST_F(PageCacheStateTest, AChangeBehindThatTheWriteBackFollowsDropsPages) {
  open_and_confirm(state(1), true);
  EXPECT_EQ(pages_.committed(state(1), state(2), false), Drop::pages);
  EXPECT_EQ(pages_.pages(), Pages::racing);
  carry_out();
  EXPECT_TRUE(open(state(2, true)).keep_pages);
}

TEST_F(PageCacheStateTest, ACommitOverAnUnknownStateProvesNothing) {
  EXPECT_EQ(pages_.committed(state(1), state(2), true), Drop::nothing);
  EXPECT_EQ(pages_.committed(state(2), state(3), false), Drop::nothing);
  EXPECT_FALSE(open(state(3)).keep_pages);
}

// ---- discarded bytes ----

TEST_F(PageCacheStateTest, DiscardedBytesAreDropped) {
  open_and_confirm(state(1));
  EXPECT_EQ(pages_.discarded(), Drop::pages);
  carry_out();
  EXPECT_FALSE(open(state(1)).keep_pages) << "although the state on disk is the one that was opened";
}

TEST_F(PageCacheStateTest, BytesDiscardedBesideAWriterAreDroppedAgainAfterItsWrites) {
  open_and_confirm(state(1), true);
  EXPECT_EQ(pages_.discarded(), Drop::pages);
  EXPECT_EQ(pages_.pages(), Pages::racing);
  EXPECT_TRUE(pages_.must_drop_after_write(false));
  EXPECT_EQ(pages_.closed(true), Drop::pages);
  EXPECT_EQ(pages_.pages(), Pages::held);
}

TEST_F(PageCacheStateTest, PagesThatAReaderFillsAfterBytesWereDiscardedAreDroppedAtTheNextChange) {
  for (const bool has_writer : {false, true}) {
    SCOPED_TRACE(has_writer);
    open_and_confirm(state(1));
    EXPECT_EQ(stat(state(1)), Drop::nothing);
    if (has_writer) open_and_confirm(state(1), true);
    EXPECT_EQ(pages_.discarded(), Drop::pages);
    if (has_writer) {
      EXPECT_EQ(pages_.closed(true), Drop::pages);
    }
    carry_out();
    EXPECT_EQ(pages_.reported(state(2)), Drop::pages);
    EXPECT_EQ(stat(state(3)), Drop::pages);
    EXPECT_EQ(pages_.discarded(), Drop::pages);
    EXPECT_EQ(stat(state(4)), Drop::pages);
    EXPECT_EQ(pages_.discarded(), Drop::pages);
    EXPECT_EQ(read(state(5)), Drop::pages);
  }
}

// ---- changes by another program ----

TEST_F(PageCacheStateTest, AChangeSeenByStatDropsPagesOnce) {
  open_and_confirm(state(1));
  EXPECT_EQ(stat(state(1)), Drop::nothing);
  EXPECT_EQ(stat(state(2)), Drop::pages);
  EXPECT_EQ(stat(state(2)), Drop::nothing);
  carry_out();
  EXPECT_TRUE(open(state(2)).keep_pages);
}

TEST_F(PageCacheStateTest, TheKernelDropsPagesItselfWhenStatReportsAnotherSize) {
  open_and_confirm(state(1));
  EXPECT_EQ(stat(state(1), 100), Drop::nothing);
  EXPECT_EQ(stat(state(2), 200), Drop::nothing);
  EXPECT_EQ(stat(state(3), 200), Drop::pages);
}

TEST_F(PageCacheStateTest, TheSizeReportedForAWriterIsTheKernelsSize) {
  open_and_confirm(state(1));
  pages_.end_of_file().tell(300, pages_.end_of_file().begin_look());
  EXPECT_EQ(stat(state(2), 300), Drop::pages);
}

TEST_F(PageCacheStateTest, AChangeSeenByAReadDropsPages) {
  open_and_confirm(state(1));
  EXPECT_EQ(read(state(1)), Drop::nothing);
  EXPECT_EQ(read(state(2)), Drop::pages);
  EXPECT_EQ(read(state(2)), Drop::nothing);
}

TEST_F(PageCacheStateTest, AChangeThatTheWatcherReportsDropsPages) {
  open_and_confirm(state(1));
  EXPECT_EQ(pages_.reported(state(2)), Drop::pages);
  // Reported again: there may have been another change within the same timestamp.
  EXPECT_EQ(pages_.reported(state(2)), Drop::pages);
}

TEST_F(PageCacheStateTest, AReportForAFileThatWasNeverOpenDropsNothing) {
  EXPECT_EQ(pages_.reported(state(2)), Drop::nothing);
  EXPECT_EQ(pages_.pages(), Pages::none);
}

TEST_F(PageCacheStateTest, LostEventsLeaveNothingKnown) {
  open_and_confirm(state(1));
  pages_.lost_track();
  EXPECT_FALSE(open(state(1)).keep_pages);
}

TEST_F(PageCacheStateTest, ARenameKeepsPages) {
  open_and_confirm(state(1));
  pages_.renamed(state(1), state(2));
  EXPECT_EQ(pages_.reported(state(2)), Drop::nothing);
  EXPECT_TRUE(open(state(2)).keep_pages);
  pages_.renamed(state(7), state(8));
  EXPECT_TRUE(open(state(2)).keep_pages) << "another version was renamed";
}

// ---- drops that are not carried out yet ----

TEST_F(PageCacheStateTest, AnOpenKeepsNoPagesThatAreStillToBeDropped) {
  open_and_confirm(state(1));
  EXPECT_EQ(stat(state(1)), Drop::nothing);
  EXPECT_FALSE(pages_.drops().are_pending());
  EXPECT_EQ(stat(state(2)), Drop::pages);
  EXPECT_TRUE(pages_.drops().are_pending());
  EXPECT_FALSE(open_and_confirm(state(2))) << "the kernel drops them itself";
  carry_out();
  EXPECT_FALSE(pages_.drops().are_pending());
  EXPECT_TRUE(open(state(2)).keep_pages);
}

TEST_F(PageCacheStateTest, ADropThatBeganBeforeAChangeDoesNotCountForIt) {
  open_and_confirm(state(1));
  EXPECT_EQ(stat(state(1)), Drop::nothing);
  EXPECT_EQ(stat(state(2)), Drop::pages);
  const auto begun = pages_.drops().requested();
  EXPECT_EQ(stat(state(3)), Drop::pages);
  pages_.drops().carried_out(begun);
  EXPECT_TRUE(pages_.drops().are_pending());
  carry_out();
  EXPECT_FALSE(pages_.drops().are_pending());
}

TEST_F(PageCacheStateTest, NothingIsToBeDroppedWhereTheKernelDoesItItself) {
  open_and_confirm(state(1));
  EXPECT_EQ(stat(state(1), 100), Drop::nothing);
  EXPECT_EQ(stat(state(2), 200), Drop::nothing);
  EXPECT_FALSE(pages_.drops().are_pending());
}

TEST_F(PageCacheStateTest, AnOpenKeepsNoPagesWithAnOldHeader) {
  open_and_confirm(state(1), true);
  EXPECT_FALSE(pages_.opened({state(1), false, false, false, true, true}).keep_pages);
  EXPECT_EQ(pages_.pages(), Pages::racing) << "a write may be in flight";
}

// ---- writes beside a drop ----

TEST_F(PageCacheStateTest, EachWriteAfterAChangeBehindIsFollowedByADrop) {
  open_and_confirm(state(1), true);
  EXPECT_FALSE(pages_.must_drop_after_write(false));
  EXPECT_EQ(pages_.reported(state(2)), Drop::pages);
  EXPECT_TRUE(pages_.must_drop_after_write(false));
  EXPECT_EQ(change(state(2), state(3)), Drop::nothing);
  EXPECT_TRUE(pages_.must_drop_after_write(false)) << "another write may have been in flight";
}

TEST_F(PageCacheStateTest, TheRaceEndsWithTheLastWriter) {
  open_and_confirm(state(1), true);
  open_and_confirm(state(1), true);
  open_and_confirm(state(1));
  EXPECT_EQ(read(state(2)), Drop::pages);
  EXPECT_EQ(pages_.closed(false), Drop::nothing);
  EXPECT_EQ(pages_.closed(true), Drop::nothing);
  EXPECT_EQ(pages_.pages(), Pages::racing);
  EXPECT_EQ(pages_.closed(true), Drop::pages) << "the last page that raced";
  EXPECT_EQ(pages_.pages(), Pages::held);
  carry_out();
  EXPECT_TRUE(open(state(2)).keep_pages);
}

TEST_F(PageCacheStateTest, WithoutARaceTheLastWriterDropsNothing) {
  open_and_confirm(state(1), true);
  EXPECT_EQ(change(state(1), state(2)), Drop::nothing);
  EXPECT_EQ(pages_.closed(true), Drop::nothing);
  EXPECT_TRUE(open(state(2)).keep_pages);
}

TEST_F(PageCacheStateTest, AWriteBesideAnOpenThatIsNotConfirmedIsFollowedByADrop) {
  EXPECT_FALSE(open(state(1)).keep_pages);
  EXPECT_TRUE(open(state(1), true).keep_pages);
  EXPECT_TRUE(pages_.must_drop_after_write(false));
  pages_.open_confirmed();
  EXPECT_FALSE(pages_.must_drop_after_write(false));
}

TEST_F(PageCacheStateTest, AHandlesOwnOpenIsOverBeforeItWrites) {
  EXPECT_FALSE(open(state(1), true).keep_pages);
  EXPECT_FALSE(pages_.must_drop_after_write(true));
}

}  // namespace
}  // namespace cframefs::fs
