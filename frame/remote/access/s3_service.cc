#include "frame/remote/access/s3_service.h"

#include "frame/remote/access/aws_profile.h"
#include "frame/remote/http/percent_encoding.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::invalid;
using codec::Result;

Result<Address> parse_endpoint(const std::string& text, const std::string& source) {
  auto address = parse_address(text);
  if (!address) return invalid(source + ": " + address.error().reason);
  if (address->scheme == Address::Scheme::s3) return invalid(source + " is no address of http or https");
  if (!address->user.empty()) return invalid(source + " has a user, which a signature does not use");
  if (!address->query.empty()) return invalid(source + " has a query");
  return address;
}

void append_parameter(std::string& url, const char* name, std::string_view value) {
  if (!value.empty()) url += std::string("&") + name + "=" + percent_encode(value);
}

}  // namespace

Result<S3Service> S3Service::find(const std::string& bucket, const S3Choice& choice, const Surroundings& surroundings) {
  std::string endpoint = choice.endpoint;
  std::string endpoint_source = "the endpoint";
  if (endpoint.empty()) {
    endpoint = endpoint_variable(surroundings, "S3").value_or("");
    endpoint_source = "AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL";
  }
  std::string region = choice.region;
  if (region.empty()) region = set_variable(surroundings, "AWS_REGION").value_or("");
  if (region.empty()) region = set_variable(surroundings, "AWS_DEFAULT_REGION").value_or("");
  if (endpoint.empty() || region.empty()) {
    const auto profile = AwsProfile::read(surroundings, choice.profile);
    if (!profile) return Failure(profile.error());
    if (endpoint.empty() && !ignores_configured_endpoints(surroundings)) {
      endpoint = profile->value("endpoint_url").value_or("");
      endpoint_source = "endpoint_url of the profile " + profile->name();
    }
    if (region.empty()) region = profile->value("region").value_or("us-east-1");
  }
  if (endpoint.empty()) return at(bucket, region, std::nullopt);
  const auto address = parse_endpoint(endpoint, endpoint_source);
  if (!address) return Failure(address.error());
  return at(bucket, region, *address);
}

Result<S3Service> S3Service::at(const std::string& bucket, const std::string& region,
                                const std::optional<Address>& endpoint) {
  if (const auto checked = check_bucket_name(bucket); !checked) return Failure(checked.error());
  if (const auto checked = check_region(region); !checked) return Failure(checked.error());
  Address address;
  if (endpoint) {
    address = *endpoint;
  } else {
    address.host = "s3." + region + "." + aws_domain(region);
  }
  const bool has_dot_over_tls = address.scheme == Address::Scheme::https && bucket.find('.') != std::string::npos;
  const bool is_in_path = has_dot_over_tls || is_ip_address(address.host) || address.host == "localhost";
  if (!is_in_path) address.host = bucket + "." + address.host;

  S3Service service;
  service.origin_ = address.origin();
  service.region_ = region;
  service.path_ = address.path;
  if (service.path_.empty() || service.path_.back() != '/') service.path_ += '/';
  if (is_in_path) service.path_ += bucket + "/";
  return service;
}

std::string S3Service::object_url(std::string_view key) const {
  return origin_ + path_ + percent_encode(key, Slash::kept);
}

std::string S3Service::list_url(const S3ListRequest& request) const {
  std::string url = origin_ + path_ + "?list-type=2";
  append_parameter(url, "continuation-token", request.continuation_token);
  append_parameter(url, "delimiter", request.delimiter);
  if (request.encodes_keys) append_parameter(url, "encoding-type", "url");
  if (request.most_keys != 0) append_parameter(url, "max-keys", std::to_string(request.most_keys));
  append_parameter(url, "prefix", request.prefix);
  append_parameter(url, "start-after", request.start_after);
  return url;
}

}  // namespace cframefs::frame
