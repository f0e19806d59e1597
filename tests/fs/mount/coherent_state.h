// What the processes of coherent_access.cc share, and what the bytes of its file say.
//
// The file is a row of slots. Each word of a slot holds the slot's number and a snapshot, which its only writer
// counts up; so a reader knows whose bytes it has and how old they are. Behind the slots come records that appenders
// write; each word of a record holds the number of its appender and the record's number.
//
// Thread safety: every field of Shared is atomic and is used by several processes; the other types belong to one
// thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

namespace coherent {

constexpr std::size_t kMaxSlots = 1U << 16;
constexpr std::size_t kMaxAppenders = 2;
constexpr std::size_t kRecord = 1000;  // no multiple of a page: appenders share pages

/// Generations of one slot, or record numbers of one appender.
struct Progress {
  std::atomic<std::uint32_t> begun;         // a write of it is on its way
  std::atomic<std::uint32_t> acknowledged;  // its write has returned
  std::atomic<std::uint32_t> durable;       // an fsync after that has returned
};

struct Shared {
  std::atomic<bool> stop;
  std::atomic<int> failed;
  std::atomic<int> writers;
  std::atomic<std::uint32_t> hot;  // the slot that was written last
  std::atomic<std::uint64_t> looks;
  char message[600];
  Progress appenders[kMaxAppenders];
  Progress slots[kMaxSlots];

  void fail(const std::string& actor, const std::string& what, int why = errno) {
    if (failed.exchange(1) == 0) {
      const std::string reason = std::generic_category().message(why);
      std::snprintf(message, sizeof message, "%s: %s (%s)", actor.c_str(), what.c_str(), reason.c_str());
    }
    stop = true;
  }
};

struct Layout {
  std::size_t slots;
  std::size_t slot_size;
  std::size_t size() const { return slots * slot_size; }
};

/// owner (20 bits) | snapshot (24 bits) | a checksum of both and of the word's place in its slot (20 bits)
inline std::uint64_t word(std::uint64_t owner, std::uint64_t snapshot, std::uint64_t place) {
  const std::uint64_t says = owner << 44 | snapshot << 20;
  std::uint64_t mixed = (says ^ place) * 0x9e3779b97f4a7c15U;
  mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9U;
  return says | mixed >> 44;
}
inline std::uint32_t resolve_shown(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 44);
}
inline std::uint32_t snapshot_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 20 & 0xff'ffff);
}
inline std::uint32_t appender_owner(std::size_t appender) {
  return static_cast<std::uint32_t>(0xf'0000 + appender);
}

inline void fill(unsigned char* to, std::size_t length, std::uint32_t owner, std::uint32_t snapshot) {
  for (std::size_t at = 0; at < length; at += 8) {
    const std::uint64_t says = word(owner, snapshot, at);
    std::memcpy(to + at, &says, 8);
  }
}

inline std::string describe(std::uint64_t found) {
  return found == 0
             ? "zeros"
             : "snapshot " + std::to_string(snapshot_of(found)) + " of slot " + std::to_string(resolve_shown(found));
}

/// What may be read of a range of slots: taken before the read, checked with what was read.
class Expectation {
 public:
  enum class Level { acknowledged, durable };

  Expectation(Shared& shared, Layout layout, std::size_t at, std::size_t length, Level level)
      : shared_(shared), layout_(layout), at_(at), first_(at / layout.slot_size) {
    const std::size_t end = std::min(layout.slots, (at + length + layout.slot_size - 1) / layout.slot_size);
    for (std::size_t slot = first_; slot < end; ++slot) {
      const Progress& progress = shared.slots[slot];
      oldest_.push_back(level == Level::durable ? progress.durable : progress.acknowledged);
    }
  }

  /// Empty, or what is wrong with the bytes.
  std::string fault_of(const unsigned char* bytes, std::size_t length) const {
    for (std::size_t i = 0; i + 8 <= length && at_ + i < layout_.size(); i += 8) {
      std::uint64_t found = 0;
      std::memcpy(&found, bytes + i, 8);
      const std::size_t slot = (at_ + i) / layout_.slot_size;
      const std::size_t place = (at_ + i) % layout_.slot_size;
      const std::uint32_t snapshot = snapshot_of(found);
      const std::uint32_t oldest = oldest_[slot - first_];
      const std::uint32_t newest = shared_.slots[slot].begun;
      if (resolve_shown(found) == slot && snapshot >= oldest && snapshot <= newest &&
          found == word(resolve_shown(found), snapshot, place)) {
        continue;
      }
      const bool whole = found == word(resolve_shown(found), snapshot, place);
      return "slot " + std::to_string(slot) + " at " + std::to_string(place) + " holds " +
             (whole || found == 0 ? describe(found) : "other bytes") + ", generations " + std::to_string(oldest) +
             " to " + std::to_string(newest) + " were expected";
    }
    return "";
  }

 private:
  Shared& shared_;
  Layout layout_;
  std::size_t at_;
  std::size_t first_;
  std::vector<std::uint32_t> oldest_;
};

/// What may be read of the records behind the slots.
class TailExpectation {
 public:
  TailExpectation(Shared& shared, Expectation::Level level) : shared_(shared) {
    for (std::size_t i = 0; i < kMaxAppenders; ++i) {
      const Progress& progress = shared.appenders[i];
      oldest_[i] = level == Expectation::Level::durable ? progress.durable : progress.acknowledged;
    }
  }

  /// Least bytes of all records.
  std::size_t least() const {
    std::size_t records = 0;
    for (const std::uint32_t count : oldest_)
      records += count;
    return records * kRecord;
  }

  /// Each acknowledged record is there once, in its order. A record that is on its way may be there in part, even
  /// before a later one: the kernel copies a read page by page, and the appender goes on meanwhile.
  std::string fault_of(const unsigned char* bytes, std::size_t length) const {
    std::uint32_t last[kMaxAppenders] = {};
    std::size_t torn = 0;
    std::size_t missing = 0;
    for (std::size_t at = 0; at < length; at += kRecord) {
      std::uint64_t first = 0;
      if (length - at >= 8) std::memcpy(&first, bytes + at, 8);
      const std::size_t appender = resolve_shown(first) - appender_owner(0);
      if (appender >= kMaxAppenders || !is_whole(bytes + at, length - at, first)) {
        ++torn;
        continue;
      }
      const std::uint32_t number = snapshot_of(first);
      const std::uint32_t next = last[appender] + 1;
      if (number < next || (number > next && next <= oldest_[appender])) {
        return "record " + std::to_string(number) + " of appender " + std::to_string(appender) + " follows record " +
               std::to_string(last[appender]) + " of " + std::to_string(oldest_[appender]) + " acknowledged ones";
      }
      missing += number - next;
      last[appender] = number;
    }
    std::size_t under_way = 0;
    for (std::size_t i = 0; i < kMaxAppenders; ++i) {
      const std::uint32_t begun = shared_.appenders[i].begun;
      if (last[i] < oldest_[i] || last[i] > begun) {
        return std::to_string(last[i]) + " records of appender " + std::to_string(i) + ", " +
               std::to_string(oldest_[i]) + " to " + std::to_string(begun) + " were expected";
      }
      under_way += begun - oldest_[i];
    }
    if (missing > torn) return std::to_string(missing) + " records are missing, " + std::to_string(torn) + " are torn";
    return torn > under_way ? std::to_string(torn) + " records are torn" : "";
  }

 private:
  static bool is_whole(const unsigned char* bytes, std::size_t length, std::uint64_t first) {
    unsigned char wanted[kRecord];
    fill(wanted, kRecord, resolve_shown(first), snapshot_of(first));
    return length >= kRecord && std::memcmp(bytes, wanted, kRecord) == 0;
  }

  Shared& shared_;
  std::uint32_t oldest_[kMaxAppenders] = {};
};

}  // namespace coherent
