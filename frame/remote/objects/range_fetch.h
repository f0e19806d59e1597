// The bytes of one range, which are being fetched or have arrived.
//
//   (made) ──start()──▶ in flight ──answer──▶ arrived ──first wait()──▶ checked: bytes, or an error
//      └──fail()───────────────────────────────────────────────────────▶ an error
//
// No thread watches the answer: the first thread that waits for the range checks it. So a range that is fetched ahead
// needs no thread at all.
//
// Thread safety: internally synchronised; any number of threads may wait. Ownership: shared; returned views are valid
// as long as the object exists. Errors: those of the request and of its check.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/base/mutex.h"
#include "frame/remote/http/http.h"

namespace cframefs::frame {

class RangeFetch {
 public:
  /// Returns the bytes of the range, a view of the answer's body.
  using Check = std::function<Result<codec::ByteView>(const Result<HttpAnswer>&)>;

  /// Makes a range whose request its maker starts at once: until then the threads that wait for it wait.
  RangeFetch() = default;
  /// Makes a range that has arrived.
  explicit RangeFetch(std::vector<std::uint8_t> bytes);

  void start(std::future<Result<HttpAnswer>> answer, Check check);
  /// Ends the range with an error, unless it was started.
  void fail_unless_started();
  /// Returns true if wait() returns at once.
  bool has_arrived() const;
  /// Waits until the range has arrived and is checked.
  Result<codec::ByteView> wait();
  /// Returns true once: to the caller that is to keep the fetched bytes beyond this process.
  bool takes_keeping() { return !is_kept_.exchange(true); }

 private:
  mutable codec::Mutex mutex_;
  codec::CondVar started_;
  std::shared_future<Result<HttpAnswer>> answer_ GUARDED_BY(mutex_);
  Check check_ GUARDED_BY(mutex_);
  std::optional<Result<codec::ByteView>> outcome_ GUARDED_BY(mutex_);
  std::vector<std::uint8_t> own_;
  std::atomic<bool> is_kept_{false};
};

}  // namespace cframefs::frame
