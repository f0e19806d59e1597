// The reads of a RemoteObject: what is in memory or kept by the store comes from there, the rest from the server.
//
// A read is served in slices, each of which fetches its missing parts at once. The memory of the mount holds what was
// fetched, so that each byte is fetched once for all readers as long as it is there.
//
// Thread safety, ownership, errors: as RemoteObject.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/remote/http/byte_range.h"
#include "frame/remote/objects/fetched_ranges.h"
#include "frame/remote/objects/kept_ranges.h"
#include "frame/remote/objects/object_tie.h"
#include "frame/remote/objects/remote_object.h"
#include "frame/remote/objects/remote_window.h"

namespace cframefs::frame {

class RangedObject final : public RemoteObject {
 public:
  /// `fetches_ends`: the first read at an end of the object fetches both ends, because open() has not.
  RangedObject(const ObjectReading& reading, const std::string& url, const ObjectState& state, bool fetches_ends);

  /// Adds bytes that open() has fetched.
  void add(std::uint64_t begin, codec::ByteView bytes) {
    reading_.memory.insert(id_, begin, bytes);
    kept_.keep(reading_.memory, id_, {begin, begin + bytes.size()}, bytes);
  }

  const ObjectState& state() const override { return tie_->state(); }
  Result<void> read(FileOffset at, codec::ByteSpan into) override;
  void expect(FileOffset at, std::uint64_t length) override;
  Result<void> fetch(FileOffset at, std::uint64_t length) override;
  void prefetch(FileOffset at, std::uint64_t length) override;

 private:
  /// A part of a read, and where its bytes go.
  struct Part {
    ByteRange range;
    codec::ByteSpan into;
  };

  Result<void> read_slice(const Part& slice, ByteRange ahead);
  Result<void> fetch_parts(const std::vector<Part>& parts, ByteRange ahead);
  std::vector<Part> parts_to_fetch(const Part& slice);
  bool copy_from_memory(const Part& part);
  std::vector<ByteRange> missing_in(ByteRange range);
  Result<void> copy_piece(const FetchedRanges::Piece& piece, const Part& part);
  bool arrives(const FetchedRanges::Piece& piece);
  void keep(const FetchedRanges::Piece& piece, codec::ByteView bytes);

  /// What to fetch for a read, and what becomes of the rest.
  struct Wanted {
    ByteRange range;
    FetchedRanges::Rest rest = FetchedRanges::Rest::may_be_read;
  };
  Wanted wanted_for(ByteRange need);
  ByteRange blocks_for(ByteRange need, ByteRange expected) const;
  ByteRange expected_around(ByteRange need) EXCLUDES(plans_mutex_);
  FetchedRanges::Admission admit(const std::vector<Wanted>& wanted);
  FetchedRanges::Claim claim(ByteRange need, const Wanted& wanted);
  void start(const FetchedRanges::Claim& claim);
  void fetch_ends(ByteRange need);
  void fetch_ahead(ByteRange range);
  void fetch_run_ahead(ByteRange run);

  std::uint64_t length() const { return state().length; }

  const ObjectReading reading_;
  const std::shared_ptr<ObjectTie> tie_;
  const ObjectId id_;
  const KeptRanges kept_;
  const std::uint64_t slice_bytes_;
  std::atomic<bool> fetches_ends_;

  codec::Mutex plans_mutex_;
  ReadAheadWindow window_ GUARDED_BY(plans_mutex_);
  std::vector<ByteRange> expected_ GUARDED_BY(plans_mutex_);  // the newest last
};

}  // namespace cframefs::frame
