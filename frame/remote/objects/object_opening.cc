// How a RemoteObject is opened: its first and last bytes are asked for at once, and must be of one state.
#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "frame/remote/objects/object_reads.h"
#include "frame/remote/objects/range_answer.h"
#include "frame/remote/objects/remote_object.h"

namespace cframefs::frame {
namespace {

constexpr int kOpeningAttempts = 4;
constexpr std::uint64_t kHeadBytes = KeptRanges::kHeadBytes;
constexpr std::uint64_t kTailBytes = KeptRanges::kUnknownTail;

/// nullptr: the object was replaced between two requests.
using Opened = Result<std::shared_ptr<RemoteObject>>;

std::future<Result<HttpAnswer>> start_range(const ObjectReading& reading, const std::string& url,
                                            const AskedRange& asked) {
  HttpRequest request;
  request.url = url;
  ask_for(asked, request);
  return reading.requests.start(std::move(request));
}

std::shared_ptr<RangedObject> opened_object(const ObjectReading& reading, const std::string& url,
                                            const CheckedRange& head) {
  auto object = std::make_shared<RangedObject>(reading, url, head.state, false);
  if (head.form == CheckedRange::Form::whole) {
    object->add(0, head.whole);
  } else {
    object->add(0, head.bytes);
  }
  return object;
}

/// Opens an object of which the server says that the first byte does not exist: it is empty, or the server is wrong.
Opened open_without_range(const ObjectReading& reading, const std::string& url, const codec::Error& refusal) {
  HttpRequest request;
  request.url = url;
  request.headers.push_back({"Accept-Encoding", "identity"});
  request.most_body = kMostWholeAnswer;
  const auto answer = reading.requests.send(std::move(request));
  if (!answer && answer.error().kind != codec::ErrorKind::unsupported) return codec::Failure(answer.error());
  if (!answer) return codec::unsupported("the server refuses ranges of the object: " + refusal.reason);
  const auto checked = check_range_answer(*answer, AskedRange::of({0, kHeadBytes}), nullptr);
  if (!checked) return codec::Failure(checked.error());
  return opened_object(reading, url, *checked);
}

/// Asks for the last bytes of an object whose length is known, tied to its state.
Opened add_exact_tail(std::shared_ptr<RangedObject> object) {
  const std::uint64_t length = object->state().length;
  std::vector<std::uint8_t> tail(KeptRanges::tail_bytes(length));
  const auto done = object->read(FileOffset{length - tail.size()}, tail);
  if (done) return object;
  if (done.error().kind == codec::ErrorKind::stale) return nullptr;
  return codec::Failure(done.error());
}

/// Returns true for errors of a server that knows no suffix ranges, or whose object has just changed.
bool may_serve_exact_range(const codec::Error& error) {
  return error.kind == codec::ErrorKind::unsupported || error.kind == codec::ErrorKind::stale ||
         error.sys == EOPNOTSUPP || error.sys == EINVAL;
}

Opened add_tail(const ObjectReading& reading, std::shared_ptr<RangedObject> object, const Result<HttpAnswer>& answer) {
  if (!answer) {
    if (codec::is_missing(answer.error())) return nullptr;
    if (may_serve_exact_range(answer.error())) return add_exact_tail(std::move(object));
    return codec::Failure(answer.error());
  }
  const auto tail = check_range_answer(*answer, AskedRange::last(kTailBytes), nullptr);
  if (!tail) return codec::Failure(tail.error());
  if (tail->form == CheckedRange::Form::wrong_suffix) {
    reading.serves_suffixes->store(false);
    return add_exact_tail(std::move(object));
  }
  if (!is_same_state(tail->state, object->state())) return nullptr;
  object->add(tail->range.begin, tail->bytes);
  return object;
}

Opened open_once(const ObjectReading& reading, const std::string& url) {
  auto head_answer = start_range(reading, url, AskedRange::of({0, kHeadBytes}));
  std::future<Result<HttpAnswer>> tail_answer;
  if (*reading.serves_suffixes) tail_answer = start_range(reading, url, AskedRange::last(kTailBytes));
  const auto answer = head_answer.get();
  if (!answer) {
    if (answer.error().kind == codec::ErrorKind::stale) return open_without_range(reading, url, answer.error());
    return codec::Failure(answer.error());
  }
  const auto head = check_range_answer(*answer, AskedRange::of({0, kHeadBytes}), nullptr);
  if (!head) return codec::Failure(head.error());
  auto object = opened_object(reading, url, *head);
  if (head->form != CheckedRange::Form::as_asked || head->state.length <= kHeadBytes) return object;
  return tail_answer.valid() ? add_tail(reading, std::move(object), tail_answer.get())
                             : add_exact_tail(std::move(object));
}

}  // namespace

Result<std::shared_ptr<RemoteObject>> RemoteObject::open(const ObjectReading& reading, const std::string& url,
                                                         const ObjectState* expected) {
  if (expected != nullptr && expected->is_identified() && expected->length <= kMostObjectBytes) {
    return std::make_shared<RangedObject>(reading, url, *expected, true);
  }
  for (int attempt = 0; attempt < kOpeningAttempts; ++attempt) {
    auto opened = open_once(reading, url);
    if (!opened || *opened != nullptr) return opened;
  }
  return codec::stale(fmt::format("the object was replaced {} times while it was opened", kOpeningAttempts));
}

}  // namespace cframefs::frame
