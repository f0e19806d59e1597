#include "frame/remote/publishing/bucket_requests.h"

#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "frame/base/xml_text.h"
#include "frame/remote/http/percent_encoding.h"
#include "frame/remote/publishing/upload_answers.h"

namespace cframefs::frame {

namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr std::uint64_t kSlowestUpload = std::uint64_t{64} << 10;  // bytes per second
// Several uploads share a link, so that each of them may be slow.
constexpr minutes kPartTime{10};
// A service assembles an object of ten thousand parts.
constexpr minutes kCompletionTime{5};

milliseconds time_for(std::uint64_t bytes) {
  return kPartTime + milliseconds(bytes * 1000 / kSlowestUpload);
}

}  // namespace

HttpRequest BucketRequests::request(const char* method, const std::string& query) const {
  HttpRequest made;
  made.method = method;
  made.url = query.empty() ? url_ : url_ + "?" + query;
  made.most_body = kMostUploadAnswer;
  made.follows_redirects = false;
  return made;
}

void BucketRequests::add_condition(HttpRequest& request) const {
  if (if_absent_) request.headers.push_back({"If-None-Match", "*"});
}

void BucketRequests::describe(HttpRequest& request) const {
  request.headers.push_back({"Content-Type", "application/octet-stream"});
  request.headers.push_back({kUploadMark, mark_});
}

HttpRequest BucketRequests::look() const {
  return request("HEAD", "");
}

HttpRequest BucketRequests::put(std::string bytes) const {
  HttpRequest made = request("PUT", "");
  add_condition(made);
  describe(made);
  made.more_time = time_for(bytes.size());
  made.body = std::move(bytes);
  return made;
}

HttpRequest BucketRequests::begin_upload() const {
  HttpRequest made = request("POST", "uploads=");
  describe(made);
  return made;
}

HttpRequest BucketRequests::put_part(const std::string& upload, std::uint32_t number, std::string bytes) const {
  HttpRequest made = request("PUT", fmt::format("partNumber={}&uploadId={}", number, percent_encode(upload)));
  made.more_time = time_for(bytes.size());
  made.body = std::move(bytes);
  return made;
}

HttpRequest BucketRequests::complete(const std::string& upload,
                                     const std::map<std::uint32_t, std::string>& tags) const {
  HttpRequest made = request("POST", "uploadId=" + percent_encode(upload));
  add_condition(made);
  made.headers.push_back({"Content-Type", "application/xml"});
  std::string list = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (const auto& [number, tag] : tags)
    list += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", number, xml_text(tag));
  made.body = list + "</CompleteMultipartUpload>";
  made.more_time = kCompletionTime;
  return made;
}

HttpRequest BucketRequests::abort(const std::string& upload) const {
  return request("DELETE", "uploadId=" + percent_encode(upload));
}

HttpRequest BucketRequests::list_parts(const std::string& upload) const {
  return request("GET", "max-parts=1&uploadId=" + percent_encode(upload));
}

}  // namespace cframefs::frame
