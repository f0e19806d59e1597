#include "frame/remote/access/service_credentials.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

#include "frame/remote/access/aws_profile.h"
#include "frame/remote/access/credential_answers.h"
#include "frame/remote/access/token_file.h"
#include "frame/remote/http/address.h"
#include "frame/remote/http/blocking_request.h"
#include "frame/remote/http/percent_encoding.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::invalid;
using codec::io_error;

constexpr std::uint64_t kMostAnswerBytes = std::uint64_t{64} << 10U;
constexpr int kAttempts = 2;
constexpr std::chrono::milliseconds kInstancePatience(1000);
constexpr std::chrono::milliseconds kContainerPatience(2000);
constexpr std::chrono::milliseconds kStsPatience(5000);

std::string_view body_text(const HttpAnswer& answer) {
  return {reinterpret_cast<const char*>(answer.body.data()), answer.body.size()};
}

std::string status_text(const HttpAnswer& answer) {
  return "status " + std::to_string(answer.status);
}

/// Sends the request, and once more if the service is busy.
Result<HttpAnswer> ask_service(HttpTransport& transport, HttpRequest request, std::chrono::milliseconds patience) {
  request.most_body = kMostAnswerBytes;
  request.follows_redirects = false;
  for (int attempt = 1;; ++attempt) {
    auto answer = send_and_wait(transport, request, patience);
    const bool is_busy = answer && (answer->status == 429 || answer->status >= 500);
    if (!is_busy || attempt == kAttempts) return answer;
  }
}

bool is_header_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < '\x7f'; });
}

/// Returns whether the host is on the link of this machine, or one of the two of the EKS pod identity agent.
bool is_link_local(const std::string& host) {
  std::array<unsigned char, sizeof(struct in6_addr)> binary{};
  if (::inet_pton(AF_INET, host.c_str(), binary.data()) == 1) return binary[0] == 169 && binary[1] == 254;
  if (host == "[fd00:ec2::23]") return true;
  if (host.size() < 2 || host.front() != '[') return false;
  if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), binary.data()) != 1) return false;
  return binary[0] == 0xfe && (binary[1] & 0xc0U) == 0x80;
}

Result<std::string> sts_url(const Surroundings& surroundings, const std::string& region) {
  const auto endpoint = endpoint_variable(surroundings, "STS");
  if (!endpoint) {
    if (const auto checked = check_region(region); !checked) return Failure(checked.error());
    return "https://sts." + region + "." + aws_domain(region) + "/";
  }
  const auto address = parse_address(*endpoint);
  if (!address) return Failure(address.error());
  if (address->scheme == Address::Scheme::s3) return invalid("the endpoint of STS is no address of http or https");
  if (address->scheme == Address::Scheme::http && !is_loopback(address->host)) {
    return invalid("the endpoint of STS, " + address->shown() + ", is plain http, which shows the identity: use https");
  }
  return address->url();
}

/// Returns the address to ask for credentials, or an empty one if no container names it.
Result<std::string> container_url(const Surroundings& surroundings) {
  if (const auto relative = set_variable(surroundings, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) {
    const auto address = parse_address("http://169.254.170.2" + *relative);
    if (!address || relative->front() != '/') {
      return invalid("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is no path that begins with '/'");
    }
    return address->url();
  }
  const auto full = set_variable(surroundings, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!full) return std::string();
  const auto address = parse_address(*full);
  if (!address) return invalid("AWS_CONTAINER_CREDENTIALS_FULL_URI: " + address.error().reason);
  if (address->scheme == Address::Scheme::s3) {
    return invalid("AWS_CONTAINER_CREDENTIALS_FULL_URI is no address of http or https");
  }
  if (address->scheme == Address::Scheme::http && !is_loopback(address->host) && !is_link_local(address->host)) {
    return invalid("AWS_CONTAINER_CREDENTIALS_FULL_URI: plain http to " + address->host +
                   " would show the credentials; allowed are https, loopback and link-local hosts");
  }
  return address->url();
}

/// Returns the value of the header Authorization for the container's endpoint; empty: none.
Result<std::string> container_authorization(const Surroundings& surroundings) {
  std::string token;
  if (const auto file = set_variable(surroundings, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
    auto read = read_token(surroundings, *file);
    if (!read) return read;
    token = std::move(*read);
  } else {
    token = set_variable(surroundings, "AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
  }
  if (!is_header_value(token)) return invalid("the authorization token of the container has a control character");
  return token;
}

Result<std::string> instance_origin(const Surroundings& surroundings) {
  if (const auto endpoint = set_variable(surroundings, "AWS_EC2_METADATA_SERVICE_ENDPOINT")) {
    auto address = parse_address(*endpoint);
    if (!address) return invalid("AWS_EC2_METADATA_SERVICE_ENDPOINT: " + address.error().reason);
    if (address->scheme == Address::Scheme::s3) {
      return invalid("AWS_EC2_METADATA_SERVICE_ENDPOINT is no address of http or https");
    }
    return address->origin();
  }
  const auto mode = set_variable(surroundings, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
  const bool is_ipv6 = mode && ::strcasecmp(mode->c_str(), "ipv6") == 0;
  return std::string(is_ipv6 ? "http://[fd00:ec2::254]" : "http://169.254.169.254");
}

/// Returns the text if it is one that IAM allows as the name of a role.
std::optional<std::string> role_name(std::string_view text) {
  constexpr std::size_t kMostBytes = 128;
  const std::string_view name = text.substr(0, text.find_first_of("\r\n"));
  const bool is_allowed = std::all_of(name.begin(), name.end(), [](char c) {
    constexpr std::string_view kSigns = "+=,.@-_";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSigns.find(c) != std::string_view::npos;
  });
  if (name.empty() || name.size() > kMostBytes || !is_allowed) return std::nullopt;
  return std::string(name);
}

/// Asks the metadata service of the instance. Returns nullopt, and appends why, if it does not answer with status 200.
Result<std::optional<HttpAnswer>> ask_instance(HttpTransport& transport, HttpRequest request, std::string& lacking) {
  auto answer = ask_service(transport, std::move(request), kInstancePatience);
  if (!answer) {
    if (answer.error().kind != codec::ErrorKind::io || answer.error().sys == ECANCELED) return Failure(answer.error());
    lacking += "instance metadata: " + answer.error().reason + "; ";
    return std::nullopt;
  }
  if (answer->status != 200) {
    lacking += "instance metadata: " + status_text(*answer) + "; ";
    return std::nullopt;
  }
  return std::optional<HttpAnswer>(std::move(*answer));
}

}  // namespace

std::vector<std::string> credential_addresses(const Surroundings& surroundings) {
  std::vector<std::string> addresses;
  for (const auto& address :
       {sts_url(surroundings, "us-east-1"), container_url(surroundings), instance_origin(surroundings)}) {
    if (address && !address->empty()) addresses.push_back(*address);
  }
  return addresses;
}

Result<Credentials> assume_role(const Surroundings& surroundings, HttpTransport& transport, const WebIdentity& identity,
                                const std::string& region) {
  const auto url = sts_url(surroundings, region);
  if (!url) return Failure(url.error());
  const auto token = read_token(surroundings, identity.token_file);
  if (!token) return Failure(token.error());
  HttpRequest request;
  request.method = "POST";
  request.url = *url;
  request.headers.push_back({"Content-Type", "application/x-www-form-urlencoded"});
  request.body =
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" + percent_encode(identity.role) +
      "&RoleSessionName=" + percent_encode(identity.session_name.empty() ? "cframefs" : identity.session_name) +
      "&WebIdentityToken=" + percent_encode(*token);
  const auto answer = ask_service(transport, std::move(request), kStsPatience);
  if (!answer) return Failure(answer.error());
  const std::string source = "web identity (STS)";
  if (answer->status != 200) {
    const std::string code = error_code_of_sts(body_text(*answer));
    return io_error(EACCES, source, status_text(*answer) + (code.empty() ? "" : " " + code));
  }
  return credentials_of_sts(body_text(*answer), source);
}

FoundCredentials web_identity_credentials(const Surroundings& surroundings, HttpTransport& transport,
                                          const std::string& region) {
  const auto token_file = set_variable(surroundings, "AWS_WEB_IDENTITY_TOKEN_FILE");
  if (!token_file) return std::nullopt;
  const auto role = set_variable(surroundings, "AWS_ROLE_ARN");
  if (!role) return invalid("AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not");
  const WebIdentity identity{*role, *token_file, set_variable(surroundings, "AWS_ROLE_SESSION_NAME").value_or("")};
  auto credentials = assume_role(surroundings, transport, identity, region);
  if (!credentials) return Failure(credentials.error());
  return std::optional<Credentials>(std::move(*credentials));
}

FoundCredentials container_credentials(const Surroundings& surroundings, HttpTransport& transport,
                                       std::string& lacking) {
  const auto url = container_url(surroundings);
  if (!url) return Failure(url.error());
  if (url->empty()) {
    lacking += "no container endpoint; ";
    return std::nullopt;
  }
  auto authorization = container_authorization(surroundings);
  if (!authorization) return Failure(authorization.error());
  HttpRequest request;
  request.url = *url;
  request.headers.push_back({"Accept", "application/json"});
  if (!authorization->empty()) request.headers.push_back({"Authorization", std::move(*authorization)});
  const auto answer = ask_service(transport, std::move(request), kContainerPatience);
  if (!answer) return Failure(answer.error());
  const std::string source = "container endpoint";
  if (answer->status != 200) return io_error(EACCES, source, status_text(*answer));
  auto credentials = credentials_of_json(body_text(*answer), source);
  if (!credentials) return Failure(credentials.error());
  return std::optional<Credentials>(std::move(*credentials));
}

FoundCredentials instance_credentials(const Surroundings& surroundings, HttpTransport& transport,
                                      std::string& lacking) {
  const auto disabled = set_variable(surroundings, "AWS_EC2_METADATA_DISABLED");
  if (disabled && ::strcasecmp(disabled->c_str(), "true") == 0) {
    lacking += "AWS_EC2_METADATA_DISABLED is set; ";
    return std::nullopt;
  }
  const auto origin = instance_origin(surroundings);
  if (!origin) return Failure(origin.error());
  HttpRequest request;
  request.method = "PUT";
  request.url = *origin + "/latest/api/token";
  request.headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}};
  const auto token = ask_instance(transport, request, lacking);
  if (!token) return Failure(token.error());
  if (!*token) return std::nullopt;
  if (!is_header_value(body_text(**token))) return codec::corrupt("instance metadata: the token is none");

  request.method = "GET";
  request.url = *origin + "/latest/meta-data/iam/security-credentials/";
  request.headers = {{"X-aws-ec2-metadata-token", std::string(body_text(**token))}};
  const auto roles = ask_instance(transport, request, lacking);
  if (!roles) return Failure(roles.error());
  if (!*roles) return std::nullopt;
  const auto role = role_name(body_text(**roles));
  if (!role) return codec::corrupt("instance metadata: the name of the role is none");

  request.url += *role;
  const auto answer = ask_instance(transport, request, lacking);
  if (!answer) return Failure(answer.error());
  if (!*answer) return std::nullopt;
  auto credentials = credentials_of_json(body_text(**answer), "instance metadata");
  if (!credentials) return Failure(credentials.error());
  return std::optional<Credentials>(std::move(*credentials));
}

}  // namespace cframefs::frame
