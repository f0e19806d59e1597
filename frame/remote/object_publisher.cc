#include "frame/remote/object_publisher.h"

#include <random>
#include <utility>

#include <fmt/core.h>

#include "frame/remote/access/authorizers.h"
#include "frame/remote/access/s3_service.h"
#include "frame/remote/access/system_surroundings.h"
#include "frame/remote/http/curl_transport.h"
#include "frame/remote/http/remote_requests.h"
#include "frame/remote/publishing/object_upload.h"

namespace cframefs::frame {

namespace {

using codec::Failure;

std::string new_mark() {
  constexpr int kWords = 4;
  std::random_device random;
  std::string mark;
  for (int word = 0; word < kWords; ++word)
    mark += fmt::format("{:08x}", static_cast<std::uint32_t>(random()));
  return mark;
}

/// Requests over connections of their own, which end with it.
class OwnConnections final : public Requests {
 public:
  explicit OwnConnections(Authorizer& authorizer) : requests_(transport_, authorizer) {}

  std::future<Result<HttpAnswer>> start(HttpRequest request) override { return requests_.start(std::move(request)); }

 private:
  CurlTransport transport_;
  RemoteRequests requests_;  // ends first
};

class BucketPublisher final : public ObjectPublisher {
 public:
  explicit BucketPublisher(S3Service service)
      : service_(std::move(service)),
        authorizer_(surroundings_, transport_, service_.origin(), CredentialChoice{{}, service_.region()}),
        requests_(transport_, authorizer_) {}
  ~BucketPublisher() override {
    requests_.stop();
    transport_.stop();
  }
  BucketPublisher(const BucketPublisher&) = delete;
  BucketPublisher& operator=(const BucketPublisher&) = delete;

  Result<std::unique_ptr<NewObject>> begin(const std::string& key, const UploadOptions& options) override {
    const auto own = [this]() -> std::unique_ptr<Requests> { return std::make_unique<OwnConnections>(authorizer_); };
    auto upload = ObjectUpload::begin(requests_, own, service_.object_url(key), new_mark(), options);
    if (!upload) return Failure(upload.error());
    return std::unique_ptr<NewObject>(std::move(*upload));
  }

 private:
  const S3Service service_;
  const SystemSurroundings surroundings_;
  CurlTransport transport_;
  S3Authorizer authorizer_;
  RemoteRequests requests_;
};

}  // namespace

Result<std::unique_ptr<ObjectPublisher>> ObjectPublisher::open(const std::string& bucket) {
  const SystemSurroundings surroundings;
  auto service = S3Service::find(bucket, {}, surroundings);
  if (!service) return Failure(service.error());
  return std::unique_ptr<ObjectPublisher>(std::make_unique<BucketPublisher>(std::move(*service)));
}

}  // namespace cframefs::frame
