#include "frame/remote/http/remote_requests.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "codec/base/mutex.h"
#include "frame/remote/http/background_thread.h"
#include "frame/remote/http/hedged_attempts.h"
#include "frame/remote/http/http_status.h"

namespace cframefs::frame {
struct RemoteCall;
using RemoteCallPointer = std::shared_ptr<RemoteCall>;
using RemoteCalls = std::multimap<HttpTransport::Time, RemoteCallPointer>;

/// A request until it is answered. Guarded by the mutex of RemoteRequests::State, except what only the thread uses that
/// works at the call: request (constant), authorized, and the promise once is_open is false.
struct RemoteCall {
  HttpRequest request;
  HttpRequest authorized;
  std::promise<Result<HttpAnswer>> promise;
  HttpTransport::Time until;
  HttpTransport::Time sent;     // the last attempt
  RemoteCalls::iterator place;  // in State::open_, if is_open
  bool is_open = false;
  bool is_in_flight = false;
  bool is_renewed = false;
  unsigned attempts = 0;                     // that have begun
  std::optional<HttpAnswer> refusal;         // of credentials, to be shown to the authorizer
  std::optional<codec::Error> last_failure;  // of the attempt before
};

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Time = HttpTransport::Time;

constexpr unsigned kMostHandshakes = 3;

std::string name_of(const RemoteCall& call) {
  return call.request.method + " " + shown_url(call.request.url);
}

codec::Failure ended_failure(const RemoteCall& call) {
  return codec::io_error(ECANCELED, name_of(call), "the mount is being ended");
}

codec::Failure with_attempts(codec::Error error, unsigned attempts, const std::string& why = {}) {
  if (attempts > 1) error.reason += fmt::format(", after {} attempts", attempts);
  if (!why.empty()) error.reason += "; " + why;
  return codec::Failure(std::move(error));
}

bool is_accepted(int status) {
  return (status >= 200 && status <= 299) || status == 304;
}

/// Returns whether the answer refuses the credentials in a way that others might mend. An answer to HEAD has no body
/// that could tell a code.
bool refuses_credentials(const HttpAnswer& answer) {
  if (answer.status == 401 || answer.status == 403) return true;
  return answer.status == 400 && (answer.body.empty() || error_code_of(answer) == "ExpiredToken");
}

/// Returns whether an attempt that ended without an answer may be repeated.
bool is_repeated(const codec::Error& error, unsigned attempts) {
  if (error.kind != codec::ErrorKind::io) return false;
  if (error.sys == EPROTO) return attempts < kMostHandshakes;
  return error.sys == EHOSTUNREACH || error.sys == ETIMEDOUT || error.sys == EIO;
}

}  // namespace

/// The life of a call: open() puts it into open_; then it is, in this order and again after each pause, being
/// authorized (the caller, or refused_ and pauses_), in ready_, in flight; close() takes it out. The lists other than
/// open_ may hold calls that are closed, and skip them. No lock is held while transport, authorizer or a waiting caller
/// are called.
class RemoteRequests::State : public std::enable_shared_from_this<State> {
 public:
  State(HttpTransport& transport, Authorizer& authorizer, const RequestPatience& patience)
      : attempts_(transport, patience.first_byte), authorizer_(authorizer), patience_(patience) {}

  std::future<Result<HttpAnswer>> start(HttpRequest request);
  void stop();
  void join();
  bool is_idle() {
    codec::MutexLock lock(mutex_);
    return open_.empty();
  }
  ServerCounts counts() const {
    const std::uint64_t hedges = attempts_.hedges();
    return {requests_ + hedges, retries_, hedges, bytes_};
  }

 private:
  Result<void> open(const RemoteCallPointer& call);
  Result<void> start_threads() REQUIRES(mutex_);
  void close(const RemoteCallPointer& call, Result<HttpAnswer> answer);

  void authorize(const RemoteCallPointer& call);
  void send_ready();
  RemoteCallPointer next_ready();
  void take(const RemoteCallPointer& call, Result<HttpAnswer> answer);
  void give_back_time(const RemoteCallPointer& call) REQUIRES(mutex_);
  void ask_authorizer(const RemoteCallPointer& call, HttpAnswer refusal);
  void pause(const RemoteCallPointer& call, codec::Error failure, std::optional<milliseconds> asked);
  milliseconds random_pause(unsigned attempts) REQUIRES(mutex_);

  void keep_time();
  std::optional<std::vector<RemoteCallPointer>> next_late();
  void authorize_later();
  RemoteCallPointer next_to_authorize();

  HedgedAttempts attempts_;
  Authorizer& authorizer_;
  const RequestPatience patience_;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint64_t> retries_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;

  codec::Mutex mutex_;
  codec::CondVar time_changes_;
  codec::CondVar refused_grows_;
  RemoteCalls open_ GUARDED_BY(mutex_);    // all that have no answer yet, by deadline
  RemoteCalls pauses_ GUARDED_BY(mutex_);  // by the end of the pause
  std::deque<RemoteCallPointer> ready_ GUARDED_BY(mutex_);
  std::deque<RemoteCallPointer> to_authorize_ GUARDED_BY(mutex_);
  Time timer_wakes_ GUARDED_BY(mutex_) = Time::max();
  std::size_t in_flight_ GUARDED_BY(mutex_) = 0;
  bool is_sending_ GUARDED_BY(mutex_) = false;
  bool is_stopped_ GUARDED_BY(mutex_) = false;
  std::minstd_rand random_ GUARDED_BY(mutex_){std::random_device()()};
  std::thread timer_;
  std::thread authorizing_;
};

std::future<Result<HttpAnswer>> RemoteRequests::State::start(HttpRequest request) {
  const auto call = std::make_shared<RemoteCall>();
  call->request = std::move(request);
  call->until = Clock::now() + patience_.total;
  auto answer = call->promise.get_future();
  if (auto opened = open(call); !opened) {
    call->promise.set_value(codec::Failure(opened.error()));
  } else {
    authorize(call);
  }
  return answer;
}

Result<void> RemoteRequests::State::open(const RemoteCallPointer& call) {
  codec::MutexLock lock(mutex_);
  if (is_stopped_) return ended_failure(*call);
  if (auto started = start_threads(); !started) return started;
  call->place = open_.emplace(call->until, call);
  call->is_open = true;
  if (call->until < timer_wakes_) time_changes_.notify_one();
  return {};
}

Result<void> RemoteRequests::State::start_threads() {
  if (!timer_.joinable()) {
    auto started = start_background_thread([this] { keep_time(); });
    if (!started) return codec::Failure(started.error());
    timer_ = std::move(*started);
  }
  if (!authorizing_.joinable()) {
    auto started = start_background_thread([this] { authorize_later(); });
    if (!started) return codec::Failure(started.error());
    authorizing_ = std::move(*started);
  }
  return {};
}

/// Answers a call, unless it has been answered.
void RemoteRequests::State::close(const RemoteCallPointer& call, Result<HttpAnswer> answer) {
  {
    codec::MutexLock lock(mutex_);
    if (!call->is_open) return;
    call->is_open = false;
    open_.erase(call->place);
  }
  call->promise.set_value(std::move(answer));
}

void RemoteRequests::State::authorize(const RemoteCallPointer& call) {
  HttpRequest request = call->request;
  if (auto authorized = authorizer_.authorize(request); !authorized) {
    close(call, codec::Failure(authorized.error()));
    return;
  }
  {
    codec::MutexLock lock(mutex_);
    if (!call->is_open) return;
    call->authorized = std::move(request);
    if (call->attempts == 0) {
      ready_.push_back(call);
    } else {
      ready_.push_front(call);  // its deadline is earlier
    }
  }
  send_ready();
}

/// Sends what there is room for. One thread does so at a time: a transport may call take() before its start() returns.
void RemoteRequests::State::send_ready() {
  {
    codec::MutexLock lock(mutex_);
    if (is_sending_) return;  // that thread looks again
    is_sending_ = true;
  }
  while (const RemoteCallPointer call = next_ready()) {
    const Time until = std::min(call->sent + patience_.attempt, call->until) + call->request.more_time;
    attempts_.start(std::move(call->authorized), until, [self = shared_from_this(), call](Result<HttpAnswer> answer) {
      self->take(call, std::move(answer));
    });
  }
}

/// Returns a call to send; nullptr, and ends the sending, if there is none.
RemoteCallPointer RemoteRequests::State::next_ready() {
  codec::MutexLock lock(mutex_);
  while (!ready_.empty() && !ready_.front()->is_open)
    ready_.pop_front();
  if (ready_.empty() || in_flight_ == kMostInFlight) {
    is_sending_ = false;
    return nullptr;
  }
  RemoteCallPointer call = std::move(ready_.front());
  ready_.pop_front();
  call->is_in_flight = true;
  call->sent = Clock::now();
  ++in_flight_;
  ++requests_;
  if (call->attempts++ > 0) ++retries_;
  return call;
}

/// Takes the end of an attempt. A thread of the transport, or the one that sends.
void RemoteRequests::State::take(const RemoteCallPointer& call, Result<HttpAnswer> answer) {
  bool is_renewed = false;
  unsigned attempts = 0;
  {
    codec::MutexLock lock(mutex_);
    --in_flight_;
    call->is_in_flight = false;
    give_back_time(call);
    is_renewed = call->is_renewed;
    attempts = call->attempts;
  }
  if (answer) bytes_ += answer->body.size();
  if (!answer) {
    if (is_repeated(answer.error(), attempts)) {
      pause(call, std::move(answer.error()), std::nullopt);
    } else {
      close(call, with_attempts(std::move(answer.error()), attempts));
    }
  } else if (is_accepted(answer->status)) {
    close(call, std::move(answer));
  } else if (refuses_credentials(*answer) && !is_renewed) {
    ask_authorizer(call, std::move(*answer));
  } else {
    codec::Failure failure = failure_of(*answer, call->request.url);
    if (is_retried(*answer)) {
      pause(call, std::move(failure.value()), retry_after(*answer));
    } else {
      close(call, with_attempts(std::move(failure.value()), attempts));
    }
  }
  send_ready();
}

/// Moves the deadline by what the attempt has taken of its more_time.
void RemoteRequests::State::give_back_time(const RemoteCallPointer& call) {
  const auto beyond = Clock::now() - call->sent - patience_.attempt;
  if (!call->is_open || call->request.more_time.count() == 0 || beyond.count() <= 0) return;
  call->until += beyond;
  open_.erase(call->place);
  call->place = open_.emplace(call->until, call);
}

void RemoteRequests::State::ask_authorizer(const RemoteCallPointer& call, HttpAnswer refusal) {
  codec::MutexLock lock(mutex_);
  if (!call->is_open) return;
  call->is_renewed = true;
  call->refusal = std::move(refusal);
  to_authorize_.push_back(call);
  refused_grows_.notify_one();
}

/// Lets the call wait before its next attempt, or ends it if the time does not allow one. `asked`: by the server.
void RemoteRequests::State::pause(const RemoteCallPointer& call, codec::Error failure,
                                  std::optional<milliseconds> asked) {
  std::string why;
  unsigned attempts = 0;
  {
    codec::MutexLock lock(mutex_);
    if (!call->is_open) return;
    attempts = call->attempts;
    const Time now = Clock::now();
    const Time due = now + std::max(random_pause(attempts), asked.value_or(milliseconds(0)));
    if (due < call->until) {
      call->last_failure = std::move(failure);
      pauses_.emplace(due, call);
      if (due < timer_wakes_) time_changes_.notify_one();
      return;
    }
    if (asked && now + *asked >= call->until) {
      why = fmt::format("the server asks for a pause of {} s, longer than the time left",
                        std::chrono::ceil<std::chrono::seconds>(*asked).count());
    }
  }
  close(call, with_attempts(std::move(failure), attempts, why));
}

milliseconds RemoteRequests::State::random_pause(unsigned attempts) {
  milliseconds limit = patience_.first_pause;
  for (unsigned i = 1; i < attempts && limit < patience_.longest_pause; ++i)
    limit *= 2;
  limit = std::min(limit, patience_.longest_pause);
  std::uniform_int_distribution<milliseconds::rep> pauses(0, std::max<milliseconds::rep>(limit.count(), 0));
  return milliseconds(pauses(random_));
}

/// Ends calls whose time is over, and pauses. A thread of its own.
void RemoteRequests::State::keep_time() {
  while (const auto late = next_late()) {
    for (const RemoteCallPointer& call : *late) {
      call->promise.set_value(call->last_failure
                                  ? with_attempts(*call->last_failure, call->attempts)
                                  : codec::io_error(ETIMEDOUT, name_of(*call), "the request was not sent in time"));
    }
  }
}

/// Waits until calls are late, closes them, and returns them; nullopt after stop(). Moves calls whose pause is over to
/// those to be authorized. Calls in flight are left to the transport, which knows why they are late.
std::optional<std::vector<RemoteCallPointer>> RemoteRequests::State::next_late() {
  codec::MutexLock lock(mutex_);
  while (!is_stopped_) {
    const Time now = Clock::now();
    while (!pauses_.empty() && pauses_.begin()->first <= now) {
      to_authorize_.push_back(std::move(pauses_.begin()->second));
      pauses_.erase(pauses_.begin());
      refused_grows_.notify_one();
    }
    std::vector<RemoteCallPointer> late;
    const auto in_time = open_.upper_bound(now);
    for (auto at = open_.begin(); at != in_time;) {
      if (at->second->is_in_flight) {
        ++at;
        continue;
      }
      at->second->is_open = false;
      late.push_back(std::move(at->second));
      at = open_.erase(at);
    }
    if (!late.empty()) return late;
    timer_wakes_ = in_time == open_.end() ? Time::max() : in_time->first;
    if (!pauses_.empty()) timer_wakes_ = std::min(timer_wakes_, pauses_.begin()->first);
    if (timer_wakes_ == Time::max()) {
      time_changes_.wait(mutex_);
    } else {
      time_changes_.wait_for(mutex_, std::chrono::ceil<milliseconds>(timer_wakes_ - now));
    }
  }
  return std::nullopt;
}

/// Authorizes the later attempts. A thread of its own.
void RemoteRequests::State::authorize_later() {
  while (const RemoteCallPointer call = next_to_authorize()) {
    const std::optional<HttpAnswer> refusal = std::exchange(call->refusal, std::nullopt);
    if (refusal && !authorizer_.may_renew(*refusal)) {
      close(call, failure_of(*refusal, call->request.url));
    } else {
      authorize(call);
    }
  }
}

/// Waits for a call; nullptr after stop().
RemoteCallPointer RemoteRequests::State::next_to_authorize() {
  codec::MutexLock lock(mutex_);
  while (!is_stopped_) {
    while (!to_authorize_.empty()) {
      RemoteCallPointer call = std::move(to_authorize_.front());
      to_authorize_.pop_front();
      if (call->is_open) return call;
    }
    refused_grows_.wait(mutex_);
  }
  return nullptr;
}

void RemoteRequests::State::stop() {
  RemoteCalls ended;
  {
    codec::MutexLock lock(mutex_);
    is_stopped_ = true;
    ended.swap(open_);
    for (const auto& [until, call] : ended)
      call->is_open = false;
    pauses_.clear();
    ready_.clear();
    to_authorize_.clear();
    time_changes_.notify_one();
    refused_grows_.notify_one();
  }
  attempts_.stop();
  for (const auto& [until, call] : ended)
    call->promise.set_value(ended_failure(*call));
}

void RemoteRequests::State::join() {
  if (timer_.joinable()) timer_.join();
  if (authorizing_.joinable()) authorizing_.join();
  attempts_.join();
}

RemoteRequests::RemoteRequests(HttpTransport& transport, Authorizer& authorizer, const RequestPatience& patience)
    : state_(std::make_shared<State>(transport, authorizer, patience)) {}

RemoteRequests::~RemoteRequests() {
  state_->stop();
  state_->join();
}

std::future<Result<HttpAnswer>> RemoteRequests::start(HttpRequest request) {
  return state_->start(std::move(request));
}

void RemoteRequests::stop() {
  state_->stop();
}

bool RemoteRequests::is_idle() const {
  return state_->is_idle();
}

ServerCounts RemoteRequests::counts() const {
  return state_->counts();
}

}  // namespace cframefs::frame
