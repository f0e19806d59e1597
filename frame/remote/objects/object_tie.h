// Ties the requests for ranges of one object to one state of it, and checks their answers.
//
// Once an answer shows that the object was replaced, it is stale, and all later reads are. A state with a version can
// be read on after that: its requests name the version. If the server refuses that (reading versions is a right of its
// own), or answers with another state, later requests are tied by the entity tag or the date instead.
//
// Thread safety: internally synchronised. Ownership: shared by the object and its requests in flight.
// Errors: those of check_range_answer(); stale also for a removed object; those of the request.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "codec/base/error.h"
#include "codec/base/mutex.h"
#include "frame/remote/objects/range_answer.h"
#include "frame/remote/objects/range_fetch.h"

namespace cframefs::frame {

class ObjectTie {
 public:
  struct Tied {
    HttpRequest request;
    RangeFetch::Check check;
  };

  ObjectTie(std::string url, ObjectState state) : url_(std::move(url)), opened_(state), state_(std::move(state)) {}

  const std::string& url() const { return url_; }
  /// Returns the state with which the object was opened.
  const ObjectState& state() const { return opened_; }
  /// Returns the error of all reads, if the object is stale.
  std::optional<codec::Error> staleness() const;
  /// Returns whether requests name the version. It becomes false when the server refuses that, true never again.
  bool uses_version() const;
  /// Returns whether the server has sent the whole object instead of a range.
  bool ignores_ranges() const;

  /// Returns a request for the range, which is not empty and ends with the object at most, and what checks its answer.
  static Tied request_for(const std::shared_ptr<ObjectTie>& tie, ByteRange range);

 private:
  Result<codec::ByteView> check(const Result<HttpAnswer>& answer, const AskedRange& asked, bool by_version);
  Result<codec::ByteView> fail(codec::Error error, bool by_version) REQUIRES(mutex_);

  const std::string url_;
  const ObjectState opened_;
  mutable codec::Mutex mutex_;
  ObjectState state_ GUARDED_BY(mutex_);  // opened_, with the tag and version that answers have added
  bool is_version_refused_ GUARDED_BY(mutex_) = false;
  bool ignores_ranges_ GUARDED_BY(mutex_) = false;
  std::optional<codec::Error> staleness_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::frame
