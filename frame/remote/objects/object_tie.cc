#include "frame/remote/objects/object_tie.h"

#include <cerrno>
#include <utility>

namespace cframefs::frame {

std::optional<codec::Error> ObjectTie::staleness() const {
  codec::MutexLock lock(mutex_);
  return staleness_;
}

bool ObjectTie::uses_version() const {
  codec::MutexLock lock(mutex_);
  return !state_.version_id.empty();
}

bool ObjectTie::ignores_ranges() const {
  codec::MutexLock lock(mutex_);
  return ignores_ranges_;
}

ObjectTie::Tied ObjectTie::request_for(const std::shared_ptr<ObjectTie>& tie, ByteRange range) {
  const AskedRange asked = AskedRange::of(range);
  Tied tied;
  tied.request.url = tie->url_;
  bool by_version = false;
  {
    codec::MutexLock lock(tie->mutex_);
    tie_to(tie->state_, tied.request);
    by_version = !tie->state_.version_id.empty();
  }
  ask_for(asked, tied.request);
  tied.check = [tie, asked, by_version](const Result<HttpAnswer>& answer) {
    return tie->check(answer, asked, by_version);
  };
  return tied;
}

Result<codec::ByteView> ObjectTie::fail(codec::Error error, bool by_version) {
  if (codec::is_missing(error)) error = codec::stale("the object was removed: " + error.reason).value();
  const bool is_stale = error.kind == codec::ErrorKind::stale || error.sys == ESTALE;
  const bool is_refused = by_version && error.sys == EACCES;
  if (by_version && (is_stale || is_refused)) {
    is_version_refused_ = true;
    state_.version_id.clear();
  }
  if (is_stale && !by_version && !staleness_) staleness_ = error;
  return codec::Failure(std::move(error));
}

Result<codec::ByteView> ObjectTie::check(const Result<HttpAnswer>& answer, const AskedRange& asked, bool by_version) {
  codec::MutexLock lock(mutex_);
  if (!answer) return fail(answer.error(), by_version);
  const auto checked = check_range_answer(*answer, asked, &state_);
  if (!checked) return fail(checked.error(), by_version);
  if (checked->form == CheckedRange::Form::whole) ignores_ranges_ = true;
  // A tag ties more firmly than a date, and a version survives the object's replacement.
  if (state_.entity_tag.empty()) state_.entity_tag = checked->state.entity_tag;
  if (state_.version_id.empty() && !is_version_refused_) state_.version_id = checked->state.version_id;
  return checked->bytes;
}

}  // namespace cframefs::frame
