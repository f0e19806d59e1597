// Asks a server for the index of a directory, and later whether it still holds.
//
// The index is valid for a time (ttl) from the begin of its request; then the server is asked again, and answers 304
// if it has not changed. A directory without index costs one request in that time: 404, or 403 of a bucket whose
// objects the user may not list. An index that is damaged, hostile or too long counts as none, and so does a refusal of
// another kind; a warning says why. If the server does not answer later on, the index of before stays in use.
//
// A store (the disk cache) keeps the index for later mounts, which ask only whether it still holds (KeptIndex).
//
// Thread safety: internally synchronised; the warning is called without a lock. Ownership: `requests` and `store` must
// outlive this. Errors: io for a server that does not answer (EHOSTUNREACH, ETIMEDOUT, EPROTO, ECANCELED), as long as
// there is no index.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "codec/base/mutex.h"
#include "frame/remote/http/requests.h"
#include "frame/remote/http/shared_attempt.h"
#include "frame/remote/listings/kept_index.h"
#include "frame/remote/listings/remote_index.h"

namespace cframefs::frame {

class IndexSource {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  using Warn = std::function<void(const std::string&)>;
  using Index = std::shared_ptr<const RemoteIndex>;

  IndexSource(Requests& requests, std::string url, std::chrono::seconds ttl, Warn warn,
              Clock now = std::chrono::steady_clock::now, RangeStore& store = no_store());

  /// Returns the valid index, nullptr if there is none.
  Result<Index> current();
  /// Returns the index that current() last returned. Sends nothing.
  Index last() const;

 private:
  struct Known {
    Index index;
    ObjectState state;  // of the object, damaged or not
    std::chrono::steady_clock::time_point until;
    std::string warning;     // the last one; the same one is not repeated
    bool was_asked = false;  // a server has answered, or refused
  };

  Known known() const;
  Result<Index> ask();
  HttpRequest request_after(const ObjectState& before) const;
  void take_kept(Known& known) const;
  void take(const Result<HttpAnswer>& answer, Known& known) const;

  Requests& requests_;
  const std::string url_;
  const std::chrono::seconds ttl_;
  const Warn warn_;
  const Clock now_;
  const KeptIndex kept_;
  SharedAttempt<Index> asking_;
  mutable codec::Mutex mutex_;
  Known known_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::frame
