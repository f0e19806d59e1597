#include "frame/remote/listings/remote_heads.h"

#include <algorithm>
#include <utility>

#include "frame/remote/http/http_date.h"
#include "frame/remote/objects/range_answer.h"

namespace cframefs::frame {

namespace {

using codec::Failure;

// Bytes of an object whose server ignores the range: less than kMostWholeAnswer, because there may be 64 of them.
constexpr std::uint64_t kMostWholeHead = std::uint64_t{64} << 10;
constexpr std::size_t kHeadCharge = 512;  // bytes that a kept head takes beside its own

const AskedRange kHeadRange = AskedRange::of({0, RemoteHeads::kHeadBytes});

/// `before`: the answer has no body if the object still has this state; may be null.
HttpRequest head_request(const std::string& url, const RemoteHeads::Head& before) {
  HttpRequest request;
  request.url = url;
  ask_for(kHeadRange, request);
  request.most_body = kMostWholeHead;
  if (before && !before->state.entity_tag.empty()) {
    request.headers.push_back({"If-None-Match", before->state.entity_tag});
  } else if (before) {
    request.headers.push_back({"If-Modified-Since", http_date(before->state.last_modified)});
  }
  return request;
}

Result<RemoteHeads::Head> parse_head(const HttpAnswer& answer) {
  const auto checked = check_range_answer(answer, kHeadRange, nullptr);
  if (!checked) return Failure(checked.error());
  auto head = std::make_shared<ObjectHead>();
  head->state = checked->state;
  const codec::ByteView bytes = checked->bytes.first(std::min(checked->bytes.size(), RemoteHeads::kHeadBytes));
  head->bytes.assign(bytes.begin(), bytes.end());
  return RemoteHeads::Head(std::move(head));
}

}  // namespace

bool may_be_same_state(const ObjectState& a, const ObjectState& b) {
  if (a.length != b.length) return false;
  if (!a.entity_tag.empty() && !b.entity_tag.empty()) return a.entity_tag == b.entity_tag;
  return a.last_modified == 0 || b.last_modified == 0 || a.last_modified == b.last_modified;
}

RemoteHeads::RemoteHeads(Requests& requests, std::chrono::seconds ttl, Clock now, RangeStore& store)
    : requests_(requests), ttl_(ttl), now_(std::move(now)), disk_(store) {}

std::optional<ObjectState> RemoteHeads::remembered_state(const std::string& url) {
  const auto found = states_.find(url);
  return found && now_() < found->until ? found->state : std::nullopt;
}

RemoteHeads::Head RemoteHeads::kept(const std::string& url, const ObjectState& state) {
  // Without tag and date the bytes of another state would pass for those of this one.
  if (!state.is_identified()) return nullptr;
  const auto found = heads_.find(url);
  if (found && *found && may_be_same_state((*found)->state, state)) return *found;
  if (!disk_.may_have(url)) return nullptr;
  auto kept = disk_.find(url);
  if (!kept || kept->bytes.empty() || !may_be_same_state(kept->state, state)) return nullptr;
  heads_.replace(url, kept, kept->bytes.size() + kHeadCharge);
  return kept;
}

void RemoteHeads::remember(const std::string& url, const ObjectState& state) {
  if (ttl_.count() > 0) states_.replace(url, Known{state, now_() + ttl_}, 1);
  if (!disk_.keeps()) return;
  const Head before = disk_.find(url);
  if (!before || !may_be_same_state(before->state, state)) disk_.keep(url, {state, {}});
}

void RemoteHeads::forget(const std::string& url) {
  {
    const codec::MutexLock lock(mutex_);
    flights_.erase(url);
  }
  states_.replace(url, Known{}, 1);
}

Result<ObjectState> RemoteHeads::state(const std::string& url) {
  if (auto known = remembered_state(url)) return std::move(*known);
  const auto head = ask(url);
  if (!head) return Failure(head.error());
  return (*head)->state;
}

Result<RemoteHeads::Head> RemoteHeads::head(const std::string& url) {
  if (const auto known = remembered_state(url)) {
    if (Head found = kept(url, *known)) return found;
  }
  return ask(url);
}

void RemoteHeads::ask_ahead(const std::vector<std::string>& urls) {
  if (ttl_.count() == 0) return;
  collect_ready();
  for (const std::string& url : urls) {
    const auto known = remembered_state(url);
    if (known && kept(url, *known)) continue;
    {
      const codec::MutexLock lock(mutex_);
      if (flights_.size() >= kMostInFlight) return;
      if (flights_.contains(url)) continue;
    }
    launch(url);
  }
}

bool RemoteHeads::Flight::is_ready() const {
  constexpr std::chrono::seconds kNow{0};
  return started.wait_for(kNow) == std::future_status::ready &&
         started.get().wait_for(kNow) == std::future_status::ready;
}

/// Starts a request, unless one is in flight; returns the one that is.
RemoteHeads::Flight RemoteHeads::launch(const std::string& url) {
  const Time begin = now_();
  Head before = disk_.may_have(url) ? disk_.find(url) : nullptr;
  std::promise<std::shared_future<Answer>> start;
  Flight flight;
  {
    const codec::MutexLock lock(mutex_);
    Flight& known = flights_[url];
    if (known.started.valid()) return known;
    flight = {start.get_future().share(), begin, ++last_number_, std::move(before)};
    known = flight;
  }
  start.set_value(requests_.start(head_request(url, flight.before)).share());
  return flight;
}

void RemoteHeads::collect_ready() {
  std::vector<std::pair<std::string, Flight>> ready;
  {
    const codec::MutexLock lock(mutex_);
    for (auto at = flights_.begin(); at != flights_.end();) {
      if (!at->second.is_ready()) {
        ++at;
        continue;
      }
      ready.emplace_back(at->first, std::move(at->second));
      at = flights_.erase(at);
    }
  }
  for (const auto& [url, flight] : ready) {
    const Answer& answer = flight.wait();
    if (!answer) continue;
    if (const auto head = head_of(url, answer, flight.before)) keep(url, *head, flight.begin);
  }
}

Result<RemoteHeads::Head> RemoteHeads::head_of(const std::string& url, const Answer& answer, const Head& before) {
  constexpr int kNotModified = 304;
  if (answer && answer->status == kNotModified && before) return before;
  if (answer) return parse_head(*answer);
  // 416: an object of 0 bytes has no range.
  if (answer.error().kind == codec::ErrorKind::stale) return head_of_whole(url);
  return Failure(answer.error());
}

Result<RemoteHeads::Head> RemoteHeads::head_of_whole(const std::string& url) {
  HttpRequest request;
  request.url = url;
  request.most_body = kMostWholeHead;
  const auto answer = requests_.send(std::move(request));
  if (!answer) return Failure(answer.error());
  return parse_head(*answer);
}

Result<RemoteHeads::Head> RemoteHeads::ask(const std::string& url) {
  if (ttl_.count() == 0) {
    // A request in flight may tell an older state than the present one.
    const Time begin = now_();
    const Head before = disk_.may_have(url) ? disk_.find(url) : nullptr;
    auto head = head_of(url, requests_.send(head_request(url, before)), before);
    if (head) keep(url, *head, begin);
    return head;
  }
  const Flight flight = launch(url);
  auto head = head_of(url, flight.wait(), flight.before);
  {
    const codec::MutexLock lock(mutex_);
    const auto found = flights_.find(url);
    // Another thread that waited has kept it, or it was forgotten.
    if (found == flights_.end() || found->second.number != flight.number) return head;
    flights_.erase(found);
  }
  if (head) keep(url, *head, flight.begin);
  return head;
}

void RemoteHeads::keep(const std::string& url, const Head& head, Time begin) {
  if (ttl_.count() > 0) states_.replace(url, Known{head->state, begin + ttl_}, 1);
  if (!head->state.is_identified()) return;
  heads_.replace(url, head, head->bytes.size() + kHeadCharge);
  const Head before = disk_.may_have(url) ? disk_.find(url) : nullptr;
  if (!before || before->state != head->state || before->bytes != head->bytes) disk_.keep(url, *head);
}

}  // namespace cframefs::frame
