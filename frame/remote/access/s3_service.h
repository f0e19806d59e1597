// The addresses of objects and listings of one bucket, at AWS or at another service that speaks its protocol.
//
// The bucket is a part of the host name, "https://BUCKET.s3.REGION.amazonaws.com/KEY", or the begin of the path. The
// latter where a host name cannot have it: the endpoint is an IP address or localhost, or the bucket has a dot, which
// no certificate of the service covers.
//
// Thread safety: a value. Errors: invalid, with what is wrong in the endpoint or region; those of AwsProfile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frame/remote/access/surroundings.h"
#include "frame/remote/http/address.h"

namespace cframefs::frame {

/// What the user asks for; each may be empty.
struct S3Choice {
  std::string endpoint;  // else AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, endpoint_url of the profile
  std::string region;    // else AWS_REGION, AWS_DEFAULT_REGION, region of the profile, us-east-1
  std::string profile;
};

/// A request of ListObjectsV2.
struct S3ListRequest {
  std::string prefix;
  std::string delimiter;           // empty: all objects below the prefix
  std::string continuation_token;  // of the answer before; empty: from the begin
  std::string start_after;         // a key; empty: from the begin
  std::uint32_t most_keys = 0;     // 0: as the service likes, 1000
  bool encodes_keys = true;        // keys are percent-encoded in the answer, because XML cannot hold every character
};

class S3Service {
 public:
  static codec::Result<S3Service> find(const std::string& bucket, const S3Choice& choice,
                                       const Surroundings& surroundings);

  /// `endpoint`: of http or https, or nullopt for AWS.
  static codec::Result<S3Service> at(const std::string& bucket, const std::string& region,
                                     const std::optional<Address>& endpoint);

  std::string object_url(std::string_view key) const;
  std::string list_url(const S3ListRequest& request) const;

  /// Returns "https://HOST[:PORT]" of all requests for the bucket.
  const std::string& origin() const { return origin_; }
  const std::string& region() const { return region_; }

 private:
  std::string origin_;
  std::string path_;  // before the key, ends in '/'
  std::string region_;
};

}  // namespace cframefs::frame
