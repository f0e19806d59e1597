#include "frame/remote/objects/fetched_ranges.h"

#include <atomic>
#include <cerrno>
#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace cframefs::frame::fetched_ranges_tests {
namespace {

constexpr std::uint64_t kKiB = 1U << 10;
constexpr std::uint64_t kMiB = 1U << 20;
const ObjectId kObject{1, 1};
const ObjectId kOther{1, 2};

using Promise = std::promise<Result<HttpAnswer>>;

HttpAnswer body_of(ByteRange range, std::uint8_t value) {
  HttpAnswer answer;
  answer.status = 206;
  answer.body.assign(range.size(), value);
  return answer;
}

Result<codec::ByteView> whole_body(const Result<HttpAnswer>& answer) {
  if (!answer) return codec::Failure(answer.error());
  return codec::ByteView(answer->body);
}

/// Starts each new range of a claim with a request that is answered at once.
void answer_at_once(const FetchedRanges::Claim& claim, std::uint8_t value = 7) {
  for (const auto& piece : claim.to_start) {
    Promise promise;
    promise.set_value(body_of(piece.range, value));
    piece.fetch->start(promise.get_future(), whole_body);
  }
}

std::vector<ByteRange> ranges_of(const std::vector<FetchedRanges::Piece>& pieces) {
  std::vector<ByteRange> ranges;
  for (const auto& piece : pieces)
    ranges.push_back(piece.range);
  return ranges;
}

using Ranges = std::vector<ByteRange>;

TEST(FetchedRangesTest, FindsWhatWasInserted) {
  FetchedRanges memory;
  memory.insert(kObject, 100, std::vector<std::uint8_t>(50, 3));
  EXPECT_EQ(ranges_of(memory.find(kObject, {110, 120})), (Ranges{{100, 150}}));
  EXPECT_TRUE(memory.find(kObject, {99, 101}).empty());
  EXPECT_TRUE(memory.find(kObject, {149, 151}).empty());
  EXPECT_TRUE(memory.find(kOther, {110, 120}).empty());
  EXPECT_EQ((*memory.find(kObject, {110, 120})[0].fetch->wait())[49], 3);
}

TEST(FetchedRangesTest, ClaimsOnlyWhatIsMissing) {
  FetchedRanges memory;
  memory.insert(kObject, 1000 * kKiB, std::vector<std::uint8_t>(200 * kKiB));
  const auto claim = memory.claim(kObject, {900 * kKiB, 1300 * kKiB}, {800 * kKiB, 1400 * kKiB});
  EXPECT_EQ(ranges_of(claim.to_start), (Ranges{{800 * kKiB, 1000 * kKiB}, {1200 * kKiB, 1400 * kKiB}}));
  EXPECT_EQ(claim.needed.size(), 3U);
}

TEST(FetchedRangesTest, ClaimsNothingMoreIfAllThatIsNeededIsThere) {
  FetchedRanges memory;
  memory.insert(kObject, 0, std::vector<std::uint8_t>(kKiB));
  EXPECT_TRUE(memory.claim(kObject, {0, kKiB}, {0, kMiB}).to_start.empty());
}

TEST(FetchedRangesTest, MergesMissingRangesThatAreNear) {
  FetchedRanges memory;
  memory.insert(kObject, 100 * kKiB, std::vector<std::uint8_t>(64 * kKiB));
  memory.insert(kObject, 300 * kKiB, std::vector<std::uint8_t>(65 * kKiB));
  const auto claim = memory.claim(kObject, {0, 400 * kKiB}, {0, 400 * kKiB});
  EXPECT_EQ(ranges_of(claim.to_start), (Ranges{{0, 300 * kKiB}, {365 * kKiB, 400 * kKiB}}));
}

TEST(FetchedRangesTest, DoesNotFetchAgainWhatIsInFlight) {
  FetchedRanges memory;
  const auto first = memory.claim(kObject, {10 * kKiB, 20 * kKiB}, {10 * kKiB, 20 * kKiB});
  const auto second = memory.claim(kObject, {0, 30 * kKiB}, {0, 30 * kKiB});
  EXPECT_EQ(ranges_of(second.to_start), (Ranges{{0, 10 * kKiB}, {20 * kKiB, 30 * kKiB}}));
  ASSERT_EQ(second.needed.size(), 3U);
  EXPECT_EQ(second.needed[1].fetch, first.needed[0].fetch);
}

TEST(FetchedRangesTest, CutsRequests) {
  FetchedRanges memory;
  const auto claim = memory.claim(kObject, {0, 20 * kMiB}, {0, 20 * kMiB});
  EXPECT_EQ(ranges_of(claim.to_start), (Ranges{{0, 8 * kMiB}, {8 * kMiB, 16 * kMiB}, {16 * kMiB, 20 * kMiB}}));
}

TEST(FetchedRangesTest, RemovesTheLeastRecentlyUsedRangesToKeepTheBound) {
  FetchedRanges memory(4 * kMiB);
  for (std::uint64_t i = 0; i < 16; ++i) {
    memory.insert(kObject, i * kMiB, std::vector<std::uint8_t>(kMiB));
    const auto first = memory.find(kObject, {0, kMiB});
    ASSERT_EQ(first.size(), 1U) << "the range that is used each time is gone after " << i;
    memory.note_read(kObject, first[0], first[0].range);
    EXPECT_LE(memory.charged(), 4 * kMiB);
  }
  EXPECT_TRUE(memory.find(kObject, {5 * kMiB, 6 * kMiB}).empty());
  EXPECT_FALSE(memory.find(kObject, {15 * kMiB, 16 * kMiB}).empty());
}

TEST(FetchedRangesTest, RefusesAFetchAheadThatDoesNotFit) {
  FetchedRanges memory(10 * kMiB);
  std::uint64_t covered = 0;
  const auto ahead = memory.claim_ahead(kObject, {0, 64 * kMiB}, covered);
  EXPECT_EQ(ranges_of(ahead.to_start), (Ranges{{0, 4 * kMiB}, {4 * kMiB, 8 * kMiB}}));
  EXPECT_EQ(covered, 8 * kMiB);
  EXPECT_LE(memory.charged(), 10 * kMiB);
  EXPECT_TRUE(memory.claim_ahead(kOther, {0, 4 * kMiB}, covered).to_start.empty());
  EXPECT_EQ(covered, 0U);
}

TEST(FetchedRangesTest, FetchesAheadInPlaceOfWhatWasReadButNotOfWhatWillBe) {
  FetchedRanges memory(8 * kMiB + 16 * kKiB);
  std::uint64_t covered = 0;
  const auto ahead = memory.claim_ahead(kObject, {0, 8 * kMiB}, covered);
  answer_at_once(ahead);
  EXPECT_TRUE(memory.claim_ahead(kOther, {0, 4 * kMiB}, covered).to_start.empty()) << "displaced unread bytes";
  ASSERT_TRUE(ahead.to_start[0].fetch->wait());
  memory.note_read(kObject, ahead.to_start[0], ahead.to_start[0].range);
  EXPECT_EQ(memory.claim_ahead(kOther, {0, 8 * kMiB}, covered).to_start.size(), 1U);
  EXPECT_EQ(covered, 4 * kMiB);
}

TEST(FetchedRangesTest, ARangeIsAwaitedUntilAllOfItWasRead) {
  FetchedRanges memory(8 * kMiB + 16 * kKiB);
  std::uint64_t covered = 0;
  const auto ahead = memory.claim_ahead(kObject, {0, 4 * kMiB}, covered);
  answer_at_once(ahead);
  const auto chunk =
      memory.claim(kObject, {8 * kMiB, 9 * kMiB}, {8 * kMiB, 12 * kMiB}, FetchedRanges::Rest::will_be_read);
  answer_at_once(chunk);
  for (const auto& piece : {ahead.to_start[0], chunk.to_start[0]}) {
    ASSERT_TRUE(piece.fetch->wait());
    const std::uint64_t half = piece.range.begin + 2 * kMiB;
    memory.note_read(kObject, piece, {piece.range.begin, half});
    EXPECT_TRUE(memory.claim_ahead(kOther, {0, 4 * kMiB}, covered).to_start.empty()) << "displaced unread bytes";
    memory.note_read(kObject, piece, {half, piece.range.end});
    answer_at_once(memory.claim_ahead(kOther, {piece.range.begin, piece.range.end}, covered));
    EXPECT_EQ(covered, piece.range.end);
  }
}

TEST(FetchedRangesTest, EvictsTheNewestOfWhatWasFetchedAheadAndNotBegun) {
  FetchedRanges memory(16 * kMiB + 16 * kKiB);
  std::uint64_t covered = 0;
  const auto ahead = memory.claim_ahead(kObject, {0, 16 * kMiB}, covered);
  answer_at_once(ahead);
  for (const auto& piece : ahead.to_start)
    ASSERT_TRUE(piece.fetch->wait());
  memory.note_read(kObject, ahead.to_start[0], {0, kMiB});
  for (const std::uint64_t lost : {3, 2, 1, 0}) {
    EXPECT_FALSE(memory.find(kObject, {lost * 4 * kMiB, (lost + 1) * 4 * kMiB}).empty()) << lost;
    const ByteRange need{lost * 4 * kMiB, (lost + 1) * 4 * kMiB};
    const auto claim = memory.claim(kOther, need, need, FetchedRanges::Rest::will_be_read);
    EXPECT_TRUE(memory.find(kObject, need).empty()) << lost;
    answer_at_once(claim);
  }
}

TEST(FetchedRangesTest, FetchesNothingAheadWhileReadersWait) {
  FetchedRanges memory(16 * kMiB);
  std::uint64_t covered = 0;
  std::thread waiter;
  {
    const auto turn = memory.admit(16 * kMiB);
    waiter = std::thread([&memory] { const auto other = memory.admit(kMiB); });
    for (std::uint64_t object = 2; !memory.claim_ahead({object, 1}, {0, 1}, covered).to_start.empty(); ++object)
      std::this_thread::yield();
  }
  waiter.join();
  EXPECT_EQ(memory.claim_ahead(kObject, {0, kMiB}, covered).to_start.size(), 1U);
}

TEST(FetchedRangesTest, FetchesAheadInPlaceOfWhatNoReaderCameFor) {
  FetchedRanges memory(4 * kMiB + 16 * kKiB, std::chrono::milliseconds(0));
  std::uint64_t covered = 0;
  answer_at_once(memory.claim_ahead(kObject, {0, 4 * kMiB}, covered));
  EXPECT_EQ(memory.claim_ahead(kOther, {0, 4 * kMiB}, covered).to_start.size(), 1U);
}

TEST(FetchedRangesTest, ARangeIsAwaitedFromItsArrival) {
  constexpr std::chrono::milliseconds kPatience{200};
  FetchedRanges memory(4 * kMiB + 16 * kKiB, kPatience);
  std::uint64_t covered = 0;
  const auto ahead = memory.claim_ahead(kObject, {0, 4 * kMiB}, covered);
  Promise promise;
  ahead.to_start.at(0).fetch->start(promise.get_future(), whole_body);
  std::this_thread::sleep_for(kPatience);
  promise.set_value(body_of({0, 4 * kMiB}, 7));
  ASSERT_TRUE(ahead.to_start[0].fetch->wait());
  EXPECT_TRUE(memory.claim_ahead(kOther, {0, 4 * kMiB}, covered).to_start.empty());
  std::this_thread::sleep_for(kPatience);
  EXPECT_EQ(memory.claim_ahead(kOther, {0, 4 * kMiB}, covered).to_start.size(), 1U);
}

TEST(FetchedRangesTest, ServesAReaderThatNeedsMoreThanTheBound) {
  FetchedRanges memory(kMiB);
  const auto turn = memory.admit(20 * kMiB);
  const auto claim = memory.claim(kObject, {0, 20 * kMiB}, {0, 20 * kMiB});
  answer_at_once(claim);
  for (const auto& piece : claim.needed) {
    ASSERT_TRUE(piece.fetch->wait());
    memory.note_read(kObject, piece, piece.range);
  }
  memory.insert(kOther, 0, std::vector<std::uint8_t>(1));
  EXPECT_LE(memory.charged(), kMiB);
}

TEST(FetchedRangesTest, MakesReadersWaitForTheirTurn) {
  FetchedRanges memory(8 * kMiB);
  std::atomic<bool> is_admitted{false};
  std::thread second;
  {
    const auto turn = memory.admit(6 * kMiB);
    second = std::thread([&] {
      const auto other = memory.admit(6 * kMiB);
      is_admitted = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(is_admitted);
  }
  second.join();
  EXPECT_TRUE(is_admitted);
}

TEST(FetchedRangesTest, IsBusyWhileManyReadersFetchOrWait) {
  FetchedRanges memory(kMiB);
  std::vector<FetchedRanges::Admission> turns;
  turns.reserve(FetchedRanges::kManyReaders);
  for (std::size_t i = 0; i + 1 < FetchedRanges::kManyReaders; ++i) {
    EXPECT_FALSE(memory.is_busy());
    turns.push_back(memory.admit(1000));
  }
  EXPECT_FALSE(memory.is_busy());
  std::thread waiter([&memory] { const auto turn = memory.admit(kMiB); });
  while (!memory.is_busy())
    std::this_thread::yield();
  turns.clear();
  waiter.join();
  EXPECT_FALSE(memory.is_busy());
}

TEST(FetchedRangesTest, AWaiterGetsTheErrorOfTheRequestAndTheNextReaderAsksAgain) {
  FetchedRanges memory;
  {
    const auto claim = memory.claim(kObject, {0, kKiB}, {0, kKiB});
    Promise promise;
    promise.set_value(codec::io_error(ETIMEDOUT, "request"));
    claim.to_start[0].fetch->start(promise.get_future(), whole_body);
    const auto waiter = memory.claim(kObject, {0, kKiB}, {0, kKiB});
    EXPECT_TRUE(waiter.to_start.empty());
    const auto bytes = waiter.needed[0].fetch->wait();
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().sys, ETIMEDOUT);
    memory.drop(kObject, waiter.needed[0]);
  }
  EXPECT_EQ(memory.claim(kObject, {0, kKiB}, {0, kKiB}).to_start.size(), 1U);
}

TEST(FetchedRangesTest, ARangeThatItsReaderNeverStartsFailsForAllWhoWait) {
  FetchedRanges memory;
  std::shared_ptr<RangeFetch> fetch;
  { fetch = memory.claim(kObject, {0, kKiB}, {0, kKiB}).to_start.at(0).fetch; }
  EXPECT_FALSE(fetch->wait());
}

TEST(FetchedRangesTest, ATransportThatDropsItsPromiseIsAnError) {
  RangeFetch fetch;
  { fetch.start(Promise().get_future(), whole_body); }
  const auto bytes = fetch.wait();
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().sys, ECANCELED);
}

TEST(FetchedRangesTest, ReadersOfARangeInFlightShareOneRequest) {
  FetchedRanges memory;
  std::atomic<unsigned> started{0};
  std::atomic<unsigned> right{0};
  Promise promise;
  auto answer = promise.get_future();
  std::vector<std::thread> readers;
  for (unsigned i = 0; i < 8; ++i) {
    readers.emplace_back([&] {
      const auto claim = memory.claim(kObject, {0, 100}, {0, 100});
      for (const auto& piece : claim.to_start) {
        ++started;
        piece.fetch->start(std::move(answer), whole_body);  // NOLINT(bugprone-use-after-move): one thread gets here
      }
      const auto bytes = claim.needed.at(0).fetch->wait();
      if (bytes && bytes->size() == 100 && bytes->back() == 9) ++right;
      memory.note_read(kObject, claim.needed.at(0), claim.needed.at(0).range);
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  promise.set_value(body_of({0, 100}, 9));
  for (auto& reader : readers)
    reader.join();
  EXPECT_EQ(started, 1U);
  EXPECT_EQ(right, 8U);
}

TEST(FetchedRangesTest, ManyThreadsReadAndFetchAheadWithinTheBound) {
  constexpr std::uint64_t kBound = 512 * kKiB;
  FetchedRanges memory(kBound, std::chrono::milliseconds(0));
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> readers;
  for (std::uint64_t id = 0; id < 4; ++id) {
    readers.emplace_back([&, id] {
      const ObjectId object{9, id % 2};
      const auto value = static_cast<std::uint8_t>(id % 2 + 1);
      for (std::uint64_t step = 0; step < 300; ++step) {
        const std::uint64_t at = (step * 7919 + id * 104729) % (4 * kMiB);
        const ByteRange need{at, at + 20 * kKiB};
        const auto turn = memory.admit(need.size());
        std::uint64_t covered = 0;
        if (step % 3 == 0) answer_at_once(memory.claim_ahead(object, {need.end, need.end + 64 * kKiB}, covered), value);
        const auto claim = memory.claim(object, need, rounded_out(need, 64 * kKiB, UINT64_MAX));
        answer_at_once(claim, value);
        std::uint64_t from = need.begin;
        for (const auto& piece : claim.needed) {
          const auto bytes = piece.fetch->wait();
          if (!bytes || bytes->size() != piece.range.size() || (*bytes)[0] != value || piece.range.begin > from)
            ++wrong;
          from = piece.range.end;
          memory.note_read(object, piece, piece.range);
        }
        if (from < need.end) ++wrong;
      }
    });
  }
  for (auto& reader : readers)
    reader.join();
  EXPECT_EQ(wrong, 0U);
  memory.insert(kOther, 0, std::vector<std::uint8_t>(1));
  EXPECT_LE(memory.charged(), kBound);
}

}  // namespace
}  // namespace cframefs::frame::fetched_ranges_tests
