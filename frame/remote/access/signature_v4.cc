#include "frame/remote/access/signature_v4.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <utility>
#include <vector>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "frame/base/utf8_sanitize.h"
#include "frame/remote/http/percent_encoding.h"
#include "frame/remote/http/request_headers.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::invalid;

constexpr std::size_t kHashBytes = 32;
using Hash = std::array<std::uint8_t, kHashBytes>;

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";
constexpr std::string_view kAuthorization = "Authorization";
constexpr std::string_view kDate = "X-Amz-Date";
constexpr std::string_view kToken = "X-Amz-Security-Token";
constexpr std::string_view kContentHash = "X-Amz-Content-Sha256";

// Headers that something on the way may change.
constexpr std::array<std::string_view, 8> kNotSigned{
    "authorization", "accept-encoding",   "connection", "content-length",
    "expect",        "transfer-encoding", "te",         "user-agent"};

codec::Failure no_sha256() {
  return codec::unsupported("libcrypto refuses SHA-256, which signatures of requests need");
}

Result<std::string> sha256_hex(std::string_view text) {
  Hash hash{};
  if (EVP_Digest(text.data(), text.size(), hash.data(), nullptr, EVP_sha256(), nullptr) != 1) return no_sha256();
  return hex(hash);
}

Result<Hash> hmac_sha256(codec::ByteView key, std::string_view text) {
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  Hash hash{};
  unsigned length = kHashBytes;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes.data(), bytes.size(), hash.data(), &length) ==
      nullptr) {
    return no_sha256();
  }
  return hash;
}

/// The parts of a URL that are signed.
struct UrlParts {
  std::string_view host;  // with the port, if it is not that of the scheme
  std::string_view path;
  std::string_view query;
};

Result<UrlParts> split_url(std::string_view url) {
  constexpr std::string_view kSeparator = "://";
  const std::size_t scheme_end = url.find(kSeparator);
  if (scheme_end == std::string_view::npos) return invalid("a request without a scheme cannot be signed");
  const std::string_view usual_port = url.substr(0, scheme_end) == "https" ? ":443" : ":80";
  url.remove_prefix(scheme_end + kSeparator.size());
  UrlParts parts;
  const std::size_t host_end = std::min(url.find_first_of("/?"), url.size());
  parts.host = url.substr(0, host_end);
  if (parts.host.size() > usual_port.size() && parts.host.substr(parts.host.size() - usual_port.size()) == usual_port) {
    parts.host.remove_suffix(usual_port.size());
  }
  url.remove_prefix(host_end);
  const std::size_t path_end = std::min(url.find('?'), url.size());
  parts.path = path_end == 0 ? "/" : url.substr(0, path_end);
  parts.query = url.substr(std::min(path_end + 1, url.size()));
  return parts;
}

/// Returns the path as the service encodes it, whatever characters the URL has encoded.
Result<std::string> canonical_path(std::string_view path, const SigningScope& scope) {
  const auto decoded = percent_decode(path);
  if (!decoded) return invalid("the path of a request to sign has " + decoded.error().reason);
  std::string encoded = percent_encode(*decoded, Slash::kept);
  return scope.service == "s3" ? encoded : percent_encode(encoded, Slash::kept);
}

Result<std::string> canonical_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view parameter = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (parameter.empty()) continue;
    const std::size_t equals = std::min(parameter.find('='), parameter.size());
    const auto name = percent_decode(parameter.substr(0, equals));
    const auto value = percent_decode(parameter.substr(std::min(equals + 1, parameter.size())));
    if (!name || !value) return invalid("the query of a request to sign is not percent-encoded");
    parameters.emplace_back(percent_encode(*name), percent_encode(*value));
  }
  std::sort(parameters.begin(), parameters.end());
  std::string text;
  for (const auto& [name, value] : parameters) {
    if (!text.empty()) text += '&';
    text += name;
    text += '=';
    text += value;
  }
  return text;
}

/// Returns the value without white space at its ends and with single spaces in it.
std::string canonical_value(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c != ' ' && c != '\t') {
      text += c;
    } else if (!text.empty() && text.back() != ' ') {
      text += ' ';
    }
  }
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// Returns the headers to sign, by their names in lower case.
std::map<std::string, std::string> canonical_headers(const HttpRequest& request, std::string_view host) {
  std::map<std::string, std::string> headers;
  for (const HttpHeader& header : request.headers) {
    std::string name = header.name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    if (name == "host" || std::find(kNotSigned.begin(), kNotSigned.end(), name) != kNotSigned.end()) continue;
    const auto [at, is_new] = headers.try_emplace(name, canonical_value(header.value));
    if (!is_new) at->second += "," + canonical_value(header.value);
  }
  headers["host"] = host;
  return headers;
}

std::string names_of(const std::map<std::string, std::string>& headers) {
  std::string names;
  for (const auto& header : headers)
    names += (names.empty() ? "" : ";") + header.first;
  return names;
}

/// Returns the signature in hexadecimal. `day`: "20130524".
Result<std::string> signature_of(const std::string& text, const Credentials& credentials, const SigningScope& scope,
                                 const std::string& day) {
  const std::string secret = "AWS4" + credentials.secret;
  auto key = hmac_sha256(std::vector<std::uint8_t>(secret.begin(), secret.end()), day);
  for (const std::string_view part : {std::string_view(scope.region), std::string_view(scope.service),
                                      std::string_view("aws4_request"), std::string_view(text)}) {
    if (key) key = hmac_sha256(*key, part);
  }
  if (!key) return Failure(key.error());
  return hex(*key);
}

}  // namespace

std::string signing_time(std::int64_t now) {
  const auto seconds = static_cast<std::time_t>(now);
  struct tm parts {};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return {text.data(), length};
}

Result<std::string> canonical_request(const HttpRequest& request, const std::string& hash, const SigningScope& scope) {
  const auto parts = split_url(request.url);
  if (!parts) return Failure(parts.error());
  auto path = canonical_path(parts->path, scope);
  if (!path) return path;
  auto query = canonical_query(parts->query);
  if (!query) return query;
  const auto headers = canonical_headers(request, parts->host);
  std::string text = request.method + "\n" + *path + "\n" + *query + "\n";
  for (const auto& [name, value] : headers) {
    text += name;
    text += ":" + value + "\n";
  }
  return text + "\n" + names_of(headers) + "\n" + hash;
}

Result<void> sign_request(HttpRequest& request, const Credentials& credentials, const SigningScope& scope,
                          PayloadHash payload, std::int64_t now) {
  for (const std::string_view name : {kAuthorization, kDate, kToken, kContentHash})
    remove_header(request, name);
  const std::string time = signing_time(now);
  const std::string day = time.substr(0, time.find('T'));
  auto hash = payload == PayloadHash::of_body ? sha256_hex(request.body.view()) : std::string(kUnsignedPayload);
  if (!hash) return Failure(hash.error());
  set_header(request, kDate, time);
  if (!credentials.session_token.empty()) set_header(request, kToken, credentials.session_token);
  if (scope.service == "s3") set_header(request, kContentHash, *hash);

  const auto canonical = canonical_request(request, *hash, scope);
  if (!canonical) return Failure(canonical.error());
  const auto canonical_hash = sha256_hex(*canonical);
  if (!canonical_hash) return Failure(canonical_hash.error());
  const std::string scope_text = day + "/" + scope.region + "/" + scope.service + "/aws4_request";
  const std::string to_sign = std::string(kAlgorithm) + "\n" + time + "\n" + scope_text + "\n" + *canonical_hash;
  const auto signature = signature_of(to_sign, credentials, scope, day);
  if (!signature) return Failure(signature.error());
  const auto parts = split_url(request.url);
  if (!parts) return Failure(parts.error());
  set_header(request, kAuthorization,
             std::string(kAlgorithm) + " Credential=" + credentials.key_id + "/" + scope_text +
                 ", SignedHeaders=" + names_of(canonical_headers(request, parts->host)) + ", Signature=" + *signature);
  return {};
}

}  // namespace cframefs::frame
