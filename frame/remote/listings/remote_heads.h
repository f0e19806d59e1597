// The states and first bytes of objects, many of which are asked for at once.
//
// A web server's page tells no exact lengths, and the size of the plain file of a frame stands in its header. So
// listing a directory with sizes takes one small request for each object. ask_ahead() starts those of the objects that
// a reader will come to, up to 64 in flight, and the reader waits for the first of them only.
//
// A store (the disk cache) keeps states and first bytes for later mounts, which ask the server whether they still hold:
// an answer 304 has no body.
//
// States are valid for a time (ttl), at most 32,768 of them. First bytes belong to a state: they are valid as long as
// that is; at most 16 MiB are kept.
//
// Thread safety: internally synchronised. Ownership: `requests` and `store` must outlive this. Errors: io ENOENT if
// there is no such object; those of range_answer.h; unsupported if the server ignores ranges and the object is longer
// than 64 KiB.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/base/lru_cache.h"
#include "frame/remote/http/requests.h"
#include "frame/remote/listings/kept_heads.h"
#include "frame/remote/objects/object_state.h"

namespace cframefs::frame {

class RemoteHeads {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  using Head = std::shared_ptr<const ObjectHead>;
  static constexpr std::size_t kHeadBytes = 4096;
  static constexpr std::size_t kMostInFlight = 64;
  static constexpr std::size_t kMostStates = 32'768;
  static constexpr std::size_t kMostKeptBytes = std::size_t{16} << 20;

  /// `ttl`: 0 remembers no states, and asks for none ahead.
  RemoteHeads(Requests& requests, std::chrono::seconds ttl, Clock now = std::chrono::steady_clock::now,
              RangeStore& store = no_store());

  /// Returns the state of the object at `url`: the remembered one, or that of a request.
  Result<ObjectState> state(const std::string& url);
  /// Returns the state and the first bytes.
  Result<Head> head(const std::string& url);
  /// Starts requests for the objects whose state or first bytes are not remembered, while less than 64 are in flight.
  /// Best effort.
  void ask_ahead(const std::vector<std::string>& urls);

  /// Returns the valid state that is remembered. Sends nothing.
  std::optional<ObjectState> remembered_state(const std::string& url);
  /// Returns whether the store may have a state of the object, so that asking for it costs little.
  bool is_known(const std::string& url) const { return disk_.may_have(url); }
  /// Returns the kept first bytes of this state of the object, nullptr if there are none. Sends nothing.
  Head kept(const std::string& url, const ObjectState& state);
  /// Remembers a state that another request told.
  void remember(const std::string& url, const ObjectState& state);
  /// Forgets the state of an object that was replaced.
  void forget(const std::string& url);

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Answer = Result<HttpAnswer>;
  /// A request. Its thread enters it in flights_ first and starts it then, without a lock.
  struct Flight {
    std::shared_future<std::shared_future<Answer>> started;
    Time begin;
    std::uint64_t number = 0;
    Head before;  // that the store has; the server answers whether it still holds

    const Answer& wait() const { return started.get().get(); }
    bool is_ready() const;
  };
  struct Known {
    std::optional<ObjectState> state;  // none: it was forgotten
    Time until;
  };

  Flight launch(const std::string& url) EXCLUDES(mutex_);
  Result<Head> head_of(const std::string& url, const Answer& answer, const Head& before);
  Result<Head> head_of_whole(const std::string& url);
  Result<Head> ask(const std::string& url);
  void keep(const std::string& url, const Head& head, Time begin);
  void collect_ready() EXCLUDES(mutex_);

  Requests& requests_;
  const std::chrono::seconds ttl_;
  const Clock now_;
  const KeptHeads disk_;
  LruCache<std::string, Known> states_{kMostStates};
  LruCache<std::string, Head> heads_{kMostKeptBytes};
  codec::Mutex mutex_;
  std::unordered_map<std::string, Flight> flights_ GUARDED_BY(mutex_);
  std::uint64_t last_number_ GUARDED_BY(mutex_) = 0;
};

/// Returns whether two sources, a listing and an answer for example, may tell the same state: the lengths are equal,
/// and so are the tags, or if one source tells no tag, the dates.
bool may_be_same_state(const ObjectState& a, const ObjectState& b);

}  // namespace cframefs::frame
