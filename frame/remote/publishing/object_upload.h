// Uploads a new object while it is written.
//
// An object that is one part (upload_parts.h) is put by one request. A longer one is a multipart upload: each part is
// sent once it is complete, several at a time; the last request, which lists them, makes the object. That request and
// the single PUT carry the condition that there is no object; because some services ignore it, the upload looks itself,
// at its begin and before these requests. If one of them fails, or its answer is lost, the mark of the object that is
// there tells whether it did its work.
//
// Memory: the parts that wait and those that are sent have 48 MiB together, or what two parts have. Parts go over
// connections of their own, so that they can be cut: a part that arrives after the upload was aborted would stay.
//
// Thread safety, ownership, errors: as new_object.h. Borrows the requests.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "frame/remote/http/requests.h"
#include "frame/remote/publishing/bucket_requests.h"
#include "frame/remote/publishing/new_object.h"
#include "frame/remote/publishing/upload_parts.h"

namespace cframefs::frame {

class ObjectUpload final : public NewObject {
 public:
  static constexpr std::uint64_t kMostMemory = std::uint64_t{48} << 20;

  /// Makes what sends the parts. When that is destroyed, no request of it is under way any more.
  using MakeRequests = std::function<std::unique_ptr<Requests>()>;

  /// Fails with EEXIST if there is an object that may not be replaced. `url`: of the object. `mark`: see
  /// BucketRequests.
  static Result<std::unique_ptr<ObjectUpload>> begin(Requests& requests, MakeRequests make_parts, std::string url,
                                                     std::string mark, const UploadOptions& options);
  ~ObjectUpload() override;
  ObjectUpload(const ObjectUpload&) = delete;
  ObjectUpload& operator=(const ObjectUpload&) = delete;

  Result<void> write(ByteView from, FileOffset at) override;
  Result<void> publish() override;
  const std::string& entity_tag() const override { return tag_; }

 private:
  using Answer = std::future<Result<HttpAnswer>>;
  struct Sent {
    std::uint32_t number = 0;
    std::uint64_t bytes = 0;
    Answer answer;
  };
  struct Found {
    std::string tag;
    std::optional<std::uint64_t> length;
    std::string mark;
  };

  ObjectUpload(Requests& requests, MakeRequests make_parts, BucketRequests object, UploadOptions options);

  Result<std::optional<Found>> look(std::chrono::milliseconds after_stop);
  Result<void> check_absent();
  bool is_stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  Result<HttpAnswer> wait(Answer answer, std::chrono::milliseconds after_stop) const;

  Result<void> begin_parts();
  Result<void> send(UploadPart part);
  Result<void> take_answer();
  Result<void> put_whole();
  Result<void> complete();
  Result<void> resolve(Error error);
  Result<void> read_back();
  Error conditional(Error error) const;
  void discard();
  void tell_left(Error error) const;

  Requests& requests_;
  const MakeRequests make_parts_;
  const BucketRequests object_;
  const UploadOptions options_;
  UploadParts parts_;
  std::string head_;    // first bytes of the object
  std::string upload_;  // identifier; empty: none, or it is over
  std::unique_ptr<Requests> part_requests_;
  std::deque<Sent> sent_;
  std::uint64_t sent_bytes_ = 0;
  std::map<std::uint32_t, std::string> tags_;
  std::string tag_;
};

}  // namespace cframefs::frame
