// Remote files over objects in memory, with all parts between them and a clock that stands still.
//
// Thread safety: that of the parts; the clock is moved while no other thread uses them. Errors: none.
#pragma once

#include <chrono>
#include <string>

#include "frame/remote/listings/caching_listing.h"
#include "frame/remote/listings/remote_files.h"
#include "frame/remote/listings/remote_heads.h"
#include "frame/remote/objects/fetched_ranges.h"
#include "frame/remote/objects/range_store.h"
#include "tests/support/fake_objects.h"
#include "tests/support/fake_requests.h"

namespace cframefs::test {

struct RemoteWorld {
  /// `source`: the listing that the files are seen through; nullptr: that of the objects.
  explicit RemoteWorld(bool tells_states, std::chrono::seconds ttl = std::chrono::seconds(60),
                       frame::Listing* source = nullptr)
      : objects(tells_states),
        listing(source == nullptr ? objects : *source, ttl, frame::CachingListing::kMostEntries,
                [this] { return now; }),
        heads(requests, ttl, [this] { return now; }),
        reading{requests, memory, frame::no_store()},
        files(listing, heads, reading, {FakeObjects::kRoot, "/"}) {}
  RemoteWorld(const RemoteWorld&) = delete;
  RemoteWorld& operator=(const RemoteWorld&) = delete;
  ~RemoteWorld() = default;

  std::chrono::steady_clock::time_point now{};
  FakeObjects objects;
  FakeRequests requests{[this](const frame::HttpRequest& request) { return objects.answer(request); }};
  frame::FetchedRanges memory;
  frame::CachingListing listing;
  frame::RemoteHeads heads;
  frame::ObjectReading reading;
  frame::RemoteFiles files;
};

}  // namespace cframefs::test
