#include "frame/remote/access/authorizers.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/evp.h>

#include "frame/base/utf8_sanitize.h"
#include "frame/remote/access/aws_profile.h"
#include "frame/remote/access/netrc.h"
#include "frame/remote/access/signature_v4.h"
#include "frame/remote/access/token_file.h"
#include "frame/remote/http/request_headers.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::io_error;

constexpr std::string_view kAuthorizationHeader = "Authorization";
// Seconds in which requests that were sent with the token before are refused.
constexpr std::int64_t kTokenChange = 10;

bool is_of_origin(const std::string& url, const std::string& origin) {
  if (url.compare(0, origin.size(), origin) != 0) return false;
  return url.size() == origin.size() || url[origin.size()] == '/' || url[origin.size()] == '?';
}

/// Refuses to show a secret to other hosts. `secret`: what plain http would show.
Result<void> check_channel(const Address& address, const std::string& secret) {
  if (address.scheme == Address::Scheme::https || is_loopback(address.host)) return {};
  return io_error(EACCES, address.origin(), "plain http would show " + secret + " to others on the way: use https");
}

std::string base64(std::string_view text) {
  const std::vector<unsigned char> bytes(text.begin(), text.end());
  std::vector<unsigned char> encoded((bytes.size() + 2) / 3 * 4 + 1);  // with a NUL
  const int length = EVP_EncodeBlock(encoded.data(), bytes.data(), static_cast<int>(bytes.size()));
  return {encoded.begin(), encoded.begin() + length};
}

/// Returns whether a refusal of S3 says that other credentials may be accepted.
bool says_expired(const HttpAnswer& answer) {
  if (answer.status != 400 && answer.status != 401 && answer.status != 403) return false;
  // InvalidAccessKeyId and InvalidToken: a tool may have replaced the keys in the profile.
  constexpr std::array<std::string_view, 5> kCodes{"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired",
                                                   "InvalidToken", "InvalidAccessKeyId"};
  const std::string_view body(reinterpret_cast<const char*>(answer.body.data()), answer.body.size());
  return std::any_of(kCodes.begin(), kCodes.end(), [body](std::string_view code) {
    return body.find("<Code>" + std::string(code) + "</Code>") != std::string_view::npos;
  });
}

Result<std::string> read_private_token(const std::string& file, const Surroundings& surroundings) {
  const auto is_shown = surroundings.is_readable_by_others(file);
  if (!is_shown) return Failure(is_shown.error());
  if (*is_shown) {
    return io_error(EACCES, printable(file), "other users may read the token: chmod 600 " + printable(file));
  }
  return read_token(surroundings, file);
}

/// Returns the text of the netrc file; empty if there is none. A file that no variable names may be unreadable.
Result<std::string> netrc_text(const Surroundings& surroundings) {
  const auto named = set_variable(surroundings, "NETRC");
  if (!named && surroundings.home().empty()) return std::string();
  auto text = surroundings.file(named ? *named : surroundings.home() + "/.netrc");
  if (!text && !named && (codec::is_missing(text.error()) || text.error().sys == EACCES)) return std::string();
  return text;
}

/// Returns the host as netrc has it: an IPv6 address without brackets.
std::string netrc_host(const Address& address) {
  return address.host.front() == '[' ? address.host.substr(1, address.host.size() - 2) : address.host;
}

}  // namespace

S3Authorizer::S3Authorizer(const Surroundings& surroundings, HttpTransport& transport, std::string origin,
                           CredentialChoice choice)
    : surroundings_(surroundings),
      origin_(std::move(origin)),
      region_(choice.region),
      chain_(surroundings, transport, std::move(choice)) {}

Result<void> S3Authorizer::authorize(HttpRequest& request) {
  if (!is_of_origin(request.url, origin_)) return {};
  const auto credentials = chain_.get();
  if (!credentials) return Failure(credentials.error());
  request.follows_redirects = false;
  SigningScope scope;
  scope.region = region_;
  return sign_request(request, *credentials, scope, PayloadHash::of_body, surroundings_.now());
}

bool S3Authorizer::may_renew(const HttpAnswer& answer) {
  if (!says_expired(answer)) return false;
  chain_.drop_refused();
  return true;
}

BasicAuthorizer::BasicAuthorizer(std::string origin, std::string header)
    : origin_(std::move(origin)), header_(std::move(header)) {}

Result<std::unique_ptr<Authorizer>> BasicAuthorizer::make(const Address& address, const std::string& user,
                                                          const std::string& password) {
  if (const auto checked = check_channel(address, "the password"); !checked) return Failure(checked.error());
  constexpr std::size_t kMostBytes = Address::kMostBytes;
  if (user.size() > kMostBytes || password.size() > kMostBytes) {
    return codec::invalid("the user or password for " + address.host + " has more than 8192 bytes");
  }
  return std::unique_ptr<Authorizer>(new BasicAuthorizer(address.origin(), "Basic " + base64(user + ":" + password)));
}

Result<void> BasicAuthorizer::authorize(HttpRequest& request) {
  if (is_of_origin(request.url, origin_)) set_header(request, kAuthorizationHeader, header_);
  return {};
}

TokenAuthorizer::TokenAuthorizer(std::string origin, std::string file, const Surroundings& surroundings,
                                 std::string token)
    : origin_(std::move(origin)), file_(std::move(file)), surroundings_(surroundings), token_(std::move(token)) {}

Result<std::unique_ptr<Authorizer>> TokenAuthorizer::make(const Address& address, const std::string& file,
                                                          const Surroundings& surroundings) {
  if (const auto checked = check_channel(address, "the token"); !checked) return Failure(checked.error());
  auto token = read_private_token(file, surroundings);
  if (!token) return Failure(token.error());
  return std::unique_ptr<Authorizer>(new TokenAuthorizer(address.origin(), file, surroundings, std::move(*token)));
}

Result<void> TokenAuthorizer::authorize(HttpRequest& request) {
  if (!is_of_origin(request.url, origin_)) return {};
  codec::MutexLock lock(mutex_);
  set_header(request, kAuthorizationHeader, "Bearer " + token_);
  return {};
}

bool TokenAuthorizer::may_renew(const HttpAnswer& answer) {
  if (answer.status != 401 && answer.status != 403) return false;
  auto token = read_private_token(file_, surroundings_);
  const std::int64_t now = surroundings_.now();
  codec::MutexLock lock(mutex_);
  if (token && *token != token_) {
    token_ = std::move(*token);
    changed_at_ = now;
  }
  return changed_at_ && now - *changed_at_ < kTokenChange;
}

Result<std::unique_ptr<Authorizer>> web_authorizer(const Address& address, const std::string& token_file,
                                                   const Surroundings& surroundings) {
  if (!token_file.empty()) return TokenAuthorizer::make(address, token_file, surroundings);
  if (!address.password.empty()) return BasicAuthorizer::make(address, address.user, address.password);

  const auto text = netrc_text(surroundings);
  if (!text) return Failure(text.error());
  const auto entry = find_netrc_entry(*text, netrc_host(address), address.user);
  if (!entry) return Failure(entry.error());
  // An entry for all hosts must not keep addresses of plain http from being read.
  const bool is_shown = *entry && (*entry)->is_default && !check_channel(address, "the password");
  if (*entry && !is_shown) return BasicAuthorizer::make(address, (*entry)->login, (*entry)->password);
  if (!address.user.empty()) return BasicAuthorizer::make(address, address.user, "");
  return std::unique_ptr<Authorizer>();
}

}  // namespace cframefs::frame
