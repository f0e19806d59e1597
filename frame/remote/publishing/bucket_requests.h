// The requests of S3 that create one object, in one piece or by a multipart upload.
//
// A new object has a mark, 128 random bits in its metadata, by which its maker knows it again after an answer was lost.
//
// Thread safety: immutable. Ownership: values. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "frame/remote/http/http.h"

namespace cframefs::frame {

/// The metadata with the mark.
constexpr const char* kUploadMark = "x-amz-meta-cframefs-upload";

class BucketRequests {
 public:
  /// `url`: of the object. `if_absent`: requests that would replace an object must fail.
  BucketRequests(std::string url, std::string mark, bool if_absent)
      : url_(std::move(url)), mark_(std::move(mark)), if_absent_(if_absent) {}

  const std::string& url() const { return url_; }
  const std::string& mark() const { return mark_; }
  bool is_conditional() const { return if_absent_; }

  HttpRequest look() const;
  HttpRequest put(std::string bytes) const;

  HttpRequest begin_upload() const;
  HttpRequest put_part(const std::string& upload, std::uint32_t number, std::string bytes) const;
  /// `tags`: of all parts, by number.
  HttpRequest complete(const std::string& upload, const std::map<std::uint32_t, std::string>& tags) const;
  HttpRequest abort(const std::string& upload) const;
  HttpRequest list_parts(const std::string& upload) const;

 private:
  HttpRequest request(const char* method, const std::string& query) const;
  void add_condition(HttpRequest& request) const;
  void describe(HttpRequest& request) const;

  const std::string url_;
  const std::string mark_;
  const bool if_absent_;
};

}  // namespace cframefs::frame
