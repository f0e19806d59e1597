// One state of an object on a server, read by ranges.
//
// open() asks for the first and the last bytes at once, so that a frame opens in one round trip. Every later range is
// tied to the state that open() saw, and every answer is checked (range_answer.h). Fetched ranges are kept for a while
// in the memory of the mount (FetchedRanges), which all objects share and which is bounded.
//
// Thread safety: internally synchronised. Ownership: shared by its readers; the parts of ObjectReading must outlive it.
// Errors: stale once the object was replaced; io; unsupported if the server cannot serve ranges.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "codec/base/bytes.h"
#include "frame/base/coordinates.h"
#include "frame/remote/http/requests.h"
#include "frame/remote/objects/fetched_ranges.h"
#include "frame/remote/objects/object_state.h"
#include "frame/remote/objects/range_store.h"

namespace cframefs::frame {

/// What all objects of a mount share.
struct ObjectReading {
  Requests& requests;
  FetchedRanges& memory;
  RangeStore& store;
  /// False once the server has answered "the last N bytes" with other bytes; shared by all copies.
  std::shared_ptr<std::atomic<bool>> serves_suffixes = std::make_shared<std::atomic<bool>>(true);
};

class RemoteObject {
 public:
  virtual ~RemoteObject() = default;

  /// Opens the object; io ENOENT if there is none. `expected`: the state that a listing told, or nullptr. With a state
  /// that a tag or date identifies, nothing is sent until the first read, which is stale if the object has another
  /// state.
  static Result<std::shared_ptr<RemoteObject>> open(const ObjectReading& reading, const std::string& url,
                                                    const ObjectState* expected);

  virtual const ObjectState& state() const = 0;
  /// Fills `into`. corruption if the object ends before.
  virtual Result<void> read(FileOffset at, codec::ByteSpan into) = 0;
  /// Tells that the range will be read soon, in parts or whole: the next read in it fetches all of it, up to a limit.
  virtual void expect(FileOffset at, std::uint64_t length) = 0;
  /// Waits until the range is in memory or kept by the store, so that the next read of it waits for no server. Does
  /// nothing if the range is longer than a quarter of the memory.
  virtual Result<void> fetch(FileOffset at, std::uint64_t length) = 0;
  /// Starts to fetch the range. Best effort.
  virtual void prefetch(FileOffset at, std::uint64_t length) = 0;
};

}  // namespace cframefs::frame
