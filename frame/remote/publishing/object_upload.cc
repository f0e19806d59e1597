#include "frame/remote/publishing/object_upload.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "frame/remote/http/http_status.h"
#include "frame/remote/objects/object_state.h"
#include "frame/remote/objects/range_answer.h"
#include "frame/remote/publishing/upload_answers.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using std::chrono::milliseconds;

constexpr milliseconds kStopPoll{50};
// How long a request may go on whose answer is needed to clean up.
constexpr milliseconds kGrace{5'000};
constexpr milliseconds kToItsEnd = milliseconds::max();

constexpr int kCompletions = 3;
constexpr milliseconds kFirstCompletionPause{100};
// A part that was under way may be stored after the upload was aborted.
constexpr int kAborts = 5;

constexpr std::uint64_t kReadBack = std::uint64_t{64} << 10;
constexpr std::size_t kMostPartTag = 1024;  // bytes

/// Returns the length that an answer to HEAD tells; nullopt if it tells none.
std::optional<std::uint64_t> told_length(const HttpAnswer& answer) {
  const std::string_view text = answer.header("Content-Length");
  std::uint64_t length = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), length);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return length;
}

codec::Failure stopped() {
  return codec::io_error(EINTR, "upload");
}

}  // namespace

Result<std::unique_ptr<ObjectUpload>> ObjectUpload::begin(Requests& requests, MakeRequests make_parts, std::string url,
                                                          std::string mark, const UploadOptions& options) {
  BucketRequests object(std::move(url), std::move(mark), !options.replace);
  std::unique_ptr<ObjectUpload> upload(new ObjectUpload(requests, std::move(make_parts), std::move(object), options));
  if (auto absent = upload->check_absent(); !absent) return Failure(absent.error());
  return upload;
}

ObjectUpload::ObjectUpload(Requests& requests, MakeRequests make_parts, BucketRequests object, UploadOptions options)
    : requests_(requests),
      make_parts_(std::move(make_parts)),
      object_(std::move(object)),
      options_(std::move(options)),
      parts_(options_.expected) {}

ObjectUpload::~ObjectUpload() {
  discard();
}

/// Waits for an answer. Gives up if the stop flag has been set for `after_stop`.
Result<HttpAnswer> ObjectUpload::wait(Answer answer, milliseconds after_stop) const {
  milliseconds left = after_stop;
  while (answer.wait_for(kStopPoll) != std::future_status::ready) {
    if (!is_stopped() || after_stop == kToItsEnd) continue;
    if (left <= milliseconds(0)) return stopped();
    left -= kStopPoll;
  }
  return answer.get();
}

/// Returns what is there under the name; nullopt: nothing. EACCES from a bucket whose user may write and not read, or
/// may not list it.
Result<std::optional<ObjectUpload::Found>> ObjectUpload::look(milliseconds after_stop) {
  auto answer = wait(requests_.start(object_.look()), after_stop);
  if (!answer) {
    if (codec::is_missing(answer.error())) return std::optional<Found>();
    return Failure(answer.error());
  }
  Found found;
  found.tag = state_of(*answer).entity_tag;
  found.length = told_length(*answer);
  found.mark = answer->header(kUploadMark);
  return std::optional<Found>(std::move(found));
}

Result<void> ObjectUpload::check_absent() {
  const auto found = look(milliseconds(0));
  // The requests that make the object tell whether it may be written.
  if (!found && found.error().sys == EACCES) return {};
  if (!found) return Failure(found.error());
  if (!*found || options_.replace) return {};
  return codec::io_error(EEXIST, shown_url(object_.url()), "there is such an object");
}

Result<void> ObjectUpload::write(ByteView from, FileOffset at) {
  if (is_stopped()) return stopped();
  if (auto put = parts_.write(from, at); !put) return put;
  while (auto part = parts_.take()) {
    if (auto sending = send(std::move(*part)); !sending) return sending;
  }
  return {};
}

Result<void> ObjectUpload::begin_parts() {
  const auto answer = wait(requests_.start(object_.begin_upload()), kGrace);
  if (!answer) return Failure(answer.error());
  auto id = upload_id_of(*answer);
  if (!id) return Failure(id.error());
  upload_ = std::move(*id);
  part_requests_ = make_parts_();
  return {};
}

/// Starts to send a part, once there is memory for it.
Result<void> ObjectUpload::send(UploadPart part) {
  if (upload_.empty()) {
    if (auto begun = begin_parts(); !begun) return begun;
  }
  if (part.number == 1) head_ = part.bytes.substr(0, kReadBack);
  const std::uint64_t bytes = part.bytes.size();
  while (!sent_.empty()) {
    const bool has_answer = sent_.front().answer.wait_for(milliseconds(0)) == std::future_status::ready;
    if (!has_answer && sent_bytes_ + parts_.held() + bytes <= kMostMemory) break;
    if (auto taken = take_answer(); !taken) return taken;
  }
  if (is_stopped()) return stopped();
  sent_bytes_ += bytes;
  sent_.push_back(
      {part.number, bytes, part_requests_->start(object_.put_part(upload_, part.number, std::move(part.bytes)))});
  return {};
}

/// Waits for the answer to the part that was sent first.
Result<void> ObjectUpload::take_answer() {
  Sent sent = std::move(sent_.front());
  sent_.pop_front();
  sent_bytes_ -= sent.bytes;
  const auto answer = wait(std::move(sent.answer), milliseconds(0));
  if (!answer) return Failure(answer.error());
  const std::string tag(answer->header("ETag"));
  const bool is_tag = !tag.empty() && tag.size() <= kMostPartTag &&
                      std::all_of(tag.begin(), tag.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!is_tag) {
    return codec::unsupported(
        fmt::format("{}: the answer to part {} has no usable ETag", shown_url(object_.url()), sent.number));
  }
  tags_[sent.number] = tag;
  return {};
}

Result<void> ObjectUpload::publish() {
  if (is_stopped()) return stopped();
  const auto made = parts_.has_several() ? complete() : put_whole();
  return made ? read_back() : made;
}

Result<void> ObjectUpload::put_whole() {
  auto whole = parts_.take_rest();
  if (!whole) return Failure(whole.error());
  if (!*whole) return codec::invalid("an object without bytes is not published");
  head_ = (*whole)->bytes.substr(0, kReadBack);
  if (auto absent = check_absent(); !absent) return absent;
  const auto answer = wait(requests_.start(object_.put(std::move((*whole)->bytes))), kToItsEnd);
  if (!answer) return resolve(answer.error());
  tag_ = state_of(*answer).entity_tag;
  return {};
}

Result<void> ObjectUpload::complete() {
  for (;;) {
    auto part = parts_.take_rest();
    if (!part) return Failure(part.error());
    if (!*part) break;
    if (auto sending = send(std::move(**part)); !sending) return sending;
  }
  while (!sent_.empty()) {
    if (auto taken = take_answer(); !taken) return taken;
  }
  if (auto absent = check_absent(); !absent) return absent;
  milliseconds pause = kFirstCompletionPause;
  for (int attempt = 1;; ++attempt) {
    const auto answer = wait(requests_.start(object_.complete(upload_, tags_)), kToItsEnd);
    auto tag = answer ? completed_tag_of(*answer, object_.url()) : Result<std::string>(Failure(answer.error()));
    if (tag) tag_ = std::move(*tag);
    auto made = tag ? Result<void>() : resolve(tag.error());
    // An error that is told with status 200 is one of the service.
    const bool may_help = answer && !made && made.error().kind == ErrorKind::io && made.error().sys == EIO;
    if (made) upload_.clear();
    if (!may_help || attempt == kCompletions) return made;
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

/// Finds out whether the request that makes the object did so, although it ended with this error.
Result<void> ObjectUpload::resolve(Error error) {
  const auto found = look(kToItsEnd);
  if (found && *found && (*found)->mark == object_.mark() && (*found)->length == parts_.length()) {
    tag_ = (*found)->tag;
    return {};
  }
  // A bucket that does not show the object refuses the condition for one.
  const bool is_there = !found || *found;
  if (is_there && error.kind == ErrorKind::stale && object_.is_conditional())
    return codec::io_error(EEXIST, shown_url(object_.url()), "there is such an object");
  if (!found && error.sys != EACCES)
    error.reason += "; whether the object was made is not known: " + found.error().reason;
  return Failure(conditional(std::move(error)));
}

/// Explains the error of a service that does not know the condition.
Error ObjectUpload::conditional(Error error) const {
  if (!object_.is_conditional() || error.sys != EOPNOTSUPP) return error;
  return codec::unsupported("the service cannot promise that no other object is replaced (If-None-Match): " +
                            error.reason + options_.remedy)
      .value();
}

/// Checks that the object is there as a whole: its length, its tag, its mark and its first bytes.
Result<void> ObjectUpload::read_back() {
  ObjectState expected;
  expected.entity_tag = tag_;
  expected.length = parts_.length();
  HttpRequest request;
  request.url = object_.url();
  const AskedRange asked = AskedRange::of({0, head_.size()});
  ask_for(asked, request);
  tie_to(expected, request);
  const auto answer = wait(requests_.start(std::move(request)), kToItsEnd);
  // A user may write and not read; the service has said that the object is made.
  if (!answer && answer.error().sys == EACCES) return {};
  const std::string mark(answer ? answer->header(kUploadMark) : std::string_view());
  if (!mark.empty() && mark != object_.mark())
    return codec::stale("the object was uploaded, but another upload has replaced it");
  const auto checked =
      answer ? check_range_answer(*answer, asked, &expected) : Result<CheckedRange>(Failure(answer.error()));
  if (!checked) {
    Error error = checked.error();
    error.reason = "the object was uploaded, but cannot be read back: " + error.reason;
    return Failure(std::move(error));
  }
  if (checked->bytes.size() != head_.size() ||
      !std::equal(head_.begin(), head_.end(), checked->bytes.begin(),
                  [](char sent, std::uint8_t got) { return static_cast<std::uint8_t>(sent) == got; })) {
    return codec::stale("the object was uploaded, but other bytes are read back");
  }
  if (tag_.empty()) tag_ = checked->state.entity_tag;
  return {};
}

/// Removes the parts of an upload that has not come to its end.
void ObjectUpload::discard() {
  part_requests_.reset();
  sent_.clear();
  if (upload_.empty()) return;
  Error left = codec::io_error(EIO, "abort the upload", "the bucket still has parts of it").value();
  for (int attempt = 0; attempt < kAborts; ++attempt) {
    const auto aborted = requests_.send(object_.abort(upload_));
    if (!aborted && codec::is_missing(aborted.error())) return;
    if (!aborted) {
      tell_left(aborted.error());
      return;
    }
    // A user may lack the right to list parts.
    if (const auto parts = requests_.send(object_.list_parts(upload_)); !parts) return;
  }
  tell_left(std::move(left));
}

void ObjectUpload::tell_left(Error error) const {
  if (!options_.left_behind) return;
  error.reason = "parts of an upload stay in the bucket, because it could not be aborted: " + error.reason;
  options_.left_behind(error);
}

}  // namespace cframefs::frame
