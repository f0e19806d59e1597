#include "frame/remote/listings/index_source.h"

#include <cerrno>
#include <utility>

#include "frame/remote/http/http_date.h"
#include "frame/remote/http/http_status.h"

namespace cframefs::frame {
namespace {

constexpr int kOk = 200;
constexpr int kNotModified = 304;

/// Returns whether the server has not answered, so that nothing is known of the index.
bool is_without_answer(const codec::Error& error) {
  return error.sys == EHOSTUNREACH || error.sys == ETIMEDOUT || error.sys == EPROTO || error.sys == ECANCELED;
}

}  // namespace

IndexSource::IndexSource(Requests& requests, std::string url, std::chrono::seconds ttl, Warn warn, Clock now,
                         RangeStore& store)
    : requests_(requests),
      url_(std::move(url)),
      ttl_(ttl),
      warn_(std::move(warn)),
      now_(std::move(now)),
      kept_(store, url_) {}

IndexSource::Known IndexSource::known() const {
  const codec::MutexLock lock(mutex_);
  return known_;
}

IndexSource::Index IndexSource::last() const {
  const codec::MutexLock lock(mutex_);
  return known_.index;
}

Result<IndexSource::Index> IndexSource::current() {
  if (Known valid = known(); now_() < valid.until) return std::move(valid.index);
  return asking_.run(SharedAttempt<Index>::Serves::running, [this]() -> Result<Index> {
    // Another thread may have finished between the two looks.
    if (Known valid = known(); now_() < valid.until) return std::move(valid.index);
    return ask();
  });
}

HttpRequest IndexSource::request_after(const ObjectState& before) const {
  HttpRequest request;
  request.url = url_;
  request.headers.push_back({"Accept-Encoding", "identity"});
  request.most_body = RemoteIndex::kMostStoredBytes;
  if (!before.entity_tag.empty()) {
    request.headers.push_back({"If-None-Match", before.entity_tag});
  } else if (before.last_modified != 0) {
    request.headers.push_back({"If-Modified-Since", http_date(before.last_modified)});
  }
  return request;
}

Result<IndexSource::Index> IndexSource::ask() {
  Known next = known();
  const std::string warned = next.warning;
  const bool is_first = !next.was_asked;
  if (is_first) take_kept(next);
  const auto begin = now_();
  const auto answer = requests_.send(request_after(next.state));
  // What another mount has kept counts only once the server says that it holds.
  if (is_first && (!answer || answer->status != kNotModified)) next.index = nullptr;
  if (!answer && is_without_answer(answer.error()) && !next.index) return codec::Failure(answer.error());
  take(answer, next);
  next.until = begin + ttl_;
  next.was_asked = true;
  if (warn_ && !next.warning.empty() && next.warning != warned) warn_(next.warning);
  const codec::MutexLock lock(mutex_);
  known_ = next;
  return std::move(next.index);
}

/// Makes `known` what the store has of an earlier mount, if anything.
void IndexSource::take_kept(Known& known) const {
  auto kept = kept_.find();
  if (!kept) return;
  auto index = RemoteIndex::parse(kept->stored);
  if (!index) return;
  known.index = std::move(*index);
  known.state = std::move(kept->state);
}

/// Makes `known` what the answer tells.
void IndexSource::take(const Result<HttpAnswer>& answer, Known& known) const {
  if (answer && answer->status == kNotModified) return;
  if (!answer && (is_without_answer(answer.error()) || (answer.error().sys == EIO && known.index))) {
    known.warning = "the index stays in use: " + codec::describe(answer.error());
    return;
  }
  known.index = nullptr;
  known.state = {};
  known.warning.clear();
  const auto refuse = [&](const std::string& why) {
    known.warning = shown_url(url_) + ": the index is not used: " + why;
  };
  if (!answer) {
    if (!codec::is_missing(answer.error()) && answer.error().sys != EACCES) refuse(codec::describe(answer.error()));
    return;
  }
  if (answer->status != kOk) return refuse("the server answers with status " + std::to_string(answer->status));
  known.state = state_of(*answer);
  known.state.length = answer->body.size();
  auto index = RemoteIndex::parse(answer->body);
  if (!index) return refuse(codec::describe(index.error()));
  known.index = std::move(*index);
  kept_.keep(known.state, answer->body);
  if (const std::size_t left_out = known.index->left_out(); left_out > 0) {
    known.warning = shown_url(url_) + ": the index has " + std::to_string(left_out) +
                    " objects that cannot be shown: paths that no directory can hold, or states without tag and date";
  }
}

}  // namespace cframefs::frame
