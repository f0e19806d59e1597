#include "frame/remote/http/hedged_attempts.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <thread>
#include <utility>

#include "codec/base/mutex.h"
#include "frame/remote/http/background_thread.h"
#include "frame/remote/http/hedge_policy.h"
#include "frame/remote/http/http_progress.h"
#include "frame/remote/http/http_status.h"

namespace cframefs::frame {
struct HedgedRace;
using HedgedRacePointer = std::shared_ptr<HedgedRace>;
using HedgedRaces = std::multimap<HttpTransport::Time, HedgedRacePointer>;

/// An attempt: one request, or two that race. Guarded by the mutex of HedgedAttempts::State, except what is constant
/// after start().
struct HedgedRace {
  struct Leg {
    std::shared_ptr<HttpProgress> progress = std::make_shared<HttpProgress>();
    HttpTransport::Time begin;
  };

  HttpRequest request;
  HttpTransport::Time until;
  HttpTransport::Done done;
  std::array<Leg, 2> legs;
  HedgedRaces::iterator place;  // in State::due_, if is_due
  bool is_due = false;
  bool is_decided = false;
  unsigned running = 1;  // legs without an end
};

namespace {

using std::chrono::milliseconds;
using HedgeClock = std::chrono::steady_clock;

/// Returns whether the other request of a race could bring nothing better.
bool decides(const Result<HttpAnswer>& answer) {
  return answer ? !is_retried(*answer) : answer.error().kind != codec::ErrorKind::io;
}

}  // namespace

class HedgedAttempts::State : public std::enable_shared_from_this<State> {
 public:
  State(HttpTransport& transport, milliseconds least)
      : transport_(transport), pause_(std::max(least, milliseconds(1))), policy_(least) {}

  void start(HttpRequest request, HttpTransport::Time until, HttpTransport::Done done);
  void stop();
  void join() {
    if (timer_.joinable()) timer_.join();
  }
  std::uint64_t hedges() const { return hedges_; }

 private:
  void watch(const HedgedRacePointer& race);
  void await(const HedgedRacePointer& race, HttpTransport::Time due) REQUIRES(mutex_);
  void launch(const HedgedRacePointer& race, std::size_t leg);
  void take(const HedgedRacePointer& race, std::size_t leg, Result<HttpAnswer> answer);
  void note_time(const HedgedRace::Leg& leg, bool is_answered) REQUIRES(mutex_);
  void keep_time();
  HedgedRacePointer next_late();
  bool may_hedge(const HedgedRace& race, HttpTransport::Time now) REQUIRES(mutex_);

  HttpTransport& transport_;
  const milliseconds pause_;  // of a request that may not be sent a second time yet
  std::atomic<std::uint64_t> hedges_{0};

  codec::Mutex mutex_;
  codec::CondVar due_changes_;
  HedgePolicy policy_ GUARDED_BY(mutex_);
  HedgedRaces due_ GUARDED_BY(mutex_);  // with one request, by the time of the second
  HttpTransport::Time timer_wakes_ GUARDED_BY(mutex_) = HttpTransport::Time::max();
  std::size_t in_flight_ GUARDED_BY(mutex_) = 0;
  bool is_stopped_ GUARDED_BY(mutex_) = false;
  std::thread timer_;
};

void HedgedAttempts::State::start(HttpRequest request, HttpTransport::Time until, HttpTransport::Done done) {
  if (request.method != "GET" && request.method != "HEAD") {
    transport_.start(std::move(request), until, std::move(done));
    return;
  }
  const auto race = std::make_shared<HedgedRace>();
  race->request = std::move(request);
  race->until = until;
  race->done = std::move(done);
  race->legs[0].begin = HedgeClock::now();
  {
    codec::MutexLock lock(mutex_);
    ++in_flight_;
    policy_.note_request();
  }
  launch(race, 0);
  watch(race);
}

/// Begins to wait for the first byte of a race whose first request was sent.
void HedgedAttempts::State::watch(const HedgedRacePointer& race) {
  codec::MutexLock lock(mutex_);
  if (is_stopped_ || race->is_decided) return;
  if (!timer_.joinable()) {
    auto started = start_background_thread([this] { keep_time(); });
    if (!started) return;  // then each request is sent once
    timer_ = std::move(*started);
  }
  await(race, race->legs[0].begin + policy_.patience());
}

void HedgedAttempts::State::await(const HedgedRacePointer& race, HttpTransport::Time due) {
  race->place = due_.emplace(due, race);
  race->is_due = true;
  if (due < timer_wakes_) due_changes_.notify_one();
}

/// Sends one of the requests of a race.
void HedgedAttempts::State::launch(const HedgedRacePointer& race, std::size_t leg) {
  HttpRequest request = race->request;
  request.progress = race->legs.at(leg).progress;
  request.on_new_connection = leg != 0;
  transport_.start(std::move(request), race->until, [self = shared_from_this(), race, leg](Result<HttpAnswer> answer) {
    self->take(race, leg, std::move(answer));
  });
}

/// Takes the end of one request of a race.
void HedgedAttempts::State::take(const HedgedRacePointer& race, std::size_t leg, Result<HttpAnswer> answer) {
  bool is_other_given_up = false;
  {
    codec::MutexLock lock(mutex_);
    --in_flight_;
    --race->running;
    note_time(race->legs.at(leg), answer.has_value());
    if (race->is_decided || (race->running > 0 && !decides(answer))) return;
    race->is_decided = true;
    if (std::exchange(race->is_due, false)) due_.erase(race->place);
    is_other_given_up = race->running > 0;
    if (is_other_given_up) race->legs.at(1 - leg).progress->give_up();
  }
  if (is_other_given_up) transport_.end_given_up();
  std::exchange(race->done, nullptr)(std::move(answer));
}

/// Notes how long the first byte took. That of a request that was given up would have taken longer.
void HedgedAttempts::State::note_time(const HedgedRace::Leg& leg, bool is_answered) {
  const auto first_byte = leg.progress->first_byte();
  if (!first_byte && !is_answered && !leg.progress->is_given_up()) return;
  const auto time = first_byte.value_or(HedgeClock::now()) - leg.begin;
  policy_.note_first_byte(std::chrono::ceil<milliseconds>(time));
}

/// Sends second requests when they are due. A thread of its own.
void HedgedAttempts::State::keep_time() {
  while (const HedgedRacePointer race = next_late())
    launch(race, 1);
}

bool HedgedAttempts::State::may_hedge(const HedgedRace& race, HttpTransport::Time now) {
  return race.until > now && in_flight_ < kMostInFlight && policy_.takes_hedge();
}

/// Waits until a request is to be sent a second time; nullptr after stop().
HedgedRacePointer HedgedAttempts::State::next_late() {
  codec::MutexLock lock(mutex_);
  while (!is_stopped_) {
    const auto now = HedgeClock::now();
    while (!due_.empty() && due_.begin()->first <= now) {
      HedgedRacePointer race = std::move(due_.begin()->second);
      due_.erase(due_.begin());
      race->is_due = false;
      if (race->legs[0].progress->first_byte()) continue;  // a transfer that stalls later is ended by the transport
      if (!may_hedge(*race, now)) {
        await(race, now + pause_);
        continue;
      }
      race->legs[1].begin = now;
      ++race->running;
      ++in_flight_;
      ++hedges_;
      return race;
    }
    timer_wakes_ = due_.empty() ? HttpTransport::Time::max() : due_.begin()->first;
    if (due_.empty()) {
      due_changes_.wait(mutex_);
    } else {
      due_changes_.wait_for(mutex_, std::chrono::ceil<milliseconds>(timer_wakes_ - now));
    }
  }
  return nullptr;
}

void HedgedAttempts::State::stop() {
  codec::MutexLock lock(mutex_);
  is_stopped_ = true;
  for (const auto& [due, race] : due_)
    race->is_due = false;
  due_.clear();
  due_changes_.notify_one();
}

HedgedAttempts::HedgedAttempts(HttpTransport& transport, milliseconds least)
    : state_(std::make_shared<State>(transport, least)) {}

HedgedAttempts::~HedgedAttempts() {
  stop();
  join();
}

void HedgedAttempts::start(HttpRequest request, HttpTransport::Time until, HttpTransport::Done done) {
  state_->start(std::move(request), until, std::move(done));
}

void HedgedAttempts::stop() {
  state_->stop();
}

void HedgedAttempts::join() {
  state_->join();
}

std::uint64_t HedgedAttempts::hedges() const {
  return state_->hedges();
}

}  // namespace cframefs::frame
