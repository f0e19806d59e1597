// The memory of a mount for ranges of objects: bytes that have arrived, and bytes that are on their way.
//
// Ranges of one object do not overlap. A reader claims what it needs: ranges that are there or in flight, and new ones
// for the gaps, which it must start at once. So no range is fetched twice at the same time. Ranges in flight count
// toward the bound, but cannot go.
//
// A range that was fetched ahead, or because it will be read whole, is awaited until its bytes were read, or for two
// seconds after it has arrived. Other ranges go first, the least recently used of them; then awaited ones to which no
// reader has come, the newest first, because their readers come to them last. So readers do not displace what others
// are about to read. A fetch-ahead displaces no awaited range, and is refused if it does not fit or if readers wait.
// Readers that need bytes now take turns (admit()), so that together they have at most the bound in flight; a lone
// reader may have more.
//
// Thread safety: internally synchronised. Lock order: this, then RangeFetch. Ownership: shares the ranges with readers;
// an Admission must not outlive this. Errors: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/mutex.h"
#include "frame/remote/http/byte_range.h"
#include "frame/remote/objects/object_id.h"
#include "frame/remote/objects/range_fetch.h"

namespace cframefs::frame {

class FetchedRanges {
 public:
  static constexpr std::uint64_t kUsualBound = 32U << 20;
  static constexpr std::uint64_t kMostRequest = 8U << 20;       // bytes of a request that a reader waits for
  static constexpr std::uint64_t kMostAheadRequest = 4U << 20;  // bytes of a request ahead
  static constexpr std::uint64_t kMergedGap = 64U << 10;        // missing ranges not farther apart are fetched as one
  static constexpr std::uint64_t kPieceCost = 512;              // charged for each range, beyond its bytes
  static constexpr std::uint64_t kManyReaders = 8;
  static constexpr std::chrono::milliseconds kUsualPatience{2'000};

  struct Piece {
    ByteRange range;
    std::shared_ptr<RangeFetch> fetch;
  };

  /// What a reader got. The destructor fails ranges that the reader did not start, so that no other reader waits for
  /// them for ever.
  struct Claim {
    std::vector<Piece> needed;    // in order; they cover what the reader needs
    std::vector<Piece> to_start;  // those of them that are new, and new ones beyond

    Claim() = default;
    Claim(Claim&&) = default;
    Claim& operator=(Claim&&) = delete;
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim();
  };

  /// A turn of a reader that fetches; given back on destruction.
  class Admission {
   public:
    Admission(Admission&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
    Admission(const Admission&) = delete;
    Admission& operator=(const Admission&) = delete;
    Admission& operator=(Admission&&) = delete;
    ~Admission() {
      if (memory_ != nullptr) memory_->give_back(bytes_);
    }

   private:
    friend class FetchedRanges;
    Admission(FetchedRanges& memory, std::uint64_t bytes) : memory_(&memory), bytes_(bytes) {}
    FetchedRanges* memory_;
    std::uint64_t bytes_;
  };

  /// `patience`: how long a range is awaited after it has arrived.
  explicit FetchedRanges(std::uint64_t bound = kUsualBound, std::chrono::milliseconds patience = kUsualPatience)
      : bound_(bound), patience_(patience) {}

  std::uint64_t bound() const { return bound_; }
  /// Returns the bytes that are held or in flight, with kPieceCost for each range.
  std::uint64_t charged() const;

  /// Waits until a reader may fetch `bytes`, in order of arrival. A thread must not hold two.
  Admission admit(std::uint64_t bytes);
  /// Returns whether kManyReaders or more fetch, or wait for their turn.
  bool is_busy() const;

  /// Returns ranges that cover `need` and have all arrived, or none.
  std::vector<Piece> find(const ObjectId& object, ByteRange need);
  /// What a reader does with the bytes that it claims beyond those that it needs.
  enum class Rest : std::uint8_t { may_be_read, will_be_read };
  /// Returns ranges that cover `need`. If bytes of it are missing, claims the missing bytes of `want`, which holds it.
  Claim claim(const ObjectId& object, ByteRange need, ByteRange want, Rest rest = Rest::may_be_read);
  /// Claims the missing bytes of `want`, from its begin, as far as they fit. Sets `covered` to the end of what is then
  /// there or in flight.
  Claim claim_ahead(const ObjectId& object, ByteRange want, std::uint64_t& covered);

  /// Adds bytes that have arrived, except where the memory has some.
  void insert(const ObjectId& object, std::uint64_t begin, codec::ByteView bytes);
  /// Notes that the bytes of a range that lie in `part` were read.
  void note_read(const ObjectId& object, const Piece& piece, ByteRange part);
  /// Makes the ranges that overlap `soon` the last to be evicted: a reader is on its way to them.
  void note_approach(const ObjectId& object, ByteRange soon);
  /// Removes a range whose request failed.
  void drop(const ObjectId& object, const Piece& piece);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Key {
    ObjectId object;
    std::uint64_t begin = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in the generated code for a null pointer
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    std::uint64_t end = 0;
    std::shared_ptr<RangeFetch> fetch;
    std::uint64_t awaited = 0;  // bytes that were fetched to be read, and were not read so far
    bool is_begun = false;      // a reader has come to it
    Time arrived;               // when it was first seen that it has arrived; or none
    std::list<Key>::iterator place;
  };
  using Entries = std::map<Key, Entry>;

  static ByteRange range_of(const Entries::value_type& entry) { return {entry.first.begin, entry.second.end}; }
  Entries::iterator first_from(const ObjectId& object, std::uint64_t at) REQUIRES(mutex_);
  std::vector<ByteRange> gaps_in(const ObjectId& object, ByteRange range) REQUIRES(mutex_);
  void merge_near(const ObjectId& object, std::vector<ByteRange>& gaps) REQUIRES(mutex_);
  Piece add(const ObjectId& object, ByteRange range, std::shared_ptr<RangeFetch> fetch, Rest rest, bool ahead)
      REQUIRES(mutex_);
  void remove(Entries::iterator entry) REQUIRES(mutex_);
  bool is_awaited(const Entry& entry, Time now) const;
  std::vector<Entries::iterator> arrived(std::uint64_t enough, bool awaited) REQUIRES(mutex_);
  bool make_room_ahead(std::uint64_t bytes) REQUIRES(mutex_);
  void evict() REQUIRES(mutex_);
  void give_back(std::uint64_t bytes);

  const std::uint64_t bound_;
  const std::chrono::milliseconds patience_;
  mutable codec::Mutex mutex_;
  codec::CondVar given_back_;
  std::uint64_t charged_ GUARDED_BY(mutex_) = 0;
  Entries entries_ GUARDED_BY(mutex_);
  std::list<Key> recent_ GUARDED_BY(mutex_);       // most recently used first
  std::uint64_t admitted_ GUARDED_BY(mutex_) = 0;  // bytes
  std::uint64_t ended_turns_ GUARDED_BY(mutex_) = 0;
  std::uint64_t next_turn_ GUARDED_BY(mutex_) = 0;  // of the reader that asks next
  std::uint64_t turn_now_ GUARDED_BY(mutex_) = 0;   // of the reader that is admitted next
};

}  // namespace cframefs::frame
