#include "frame/remote/http/http_status.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <utility>

#include <fmt/core.h>

#include "frame/base/utf8_sanitize.h"
#include "frame/remote/http/http_date.h"

namespace cframefs::frame {
namespace {

constexpr std::size_t kMostShownUrl = 1000;
constexpr std::size_t kMostShownMessage = 200;
constexpr std::size_t kMostElement = 1000;  // of XML, before it is shortened
constexpr std::size_t kShortestKey = 16;
constexpr std::int64_t kLongestWait = 60;  // seconds

const char* words_of(int status) {
  switch (status) {
    case 300:
      return " Multiple Choices";
    case 301:
      return " Moved Permanently";
    case 302:
      return " Found";
    case 303:
      return " See Other";
    case 307:
      return " Temporary Redirect";
    case 308:
      return " Permanent Redirect";
    case 400:
      return " Bad Request";
    case 401:
      return " Unauthorized";
    case 403:
      return " Forbidden";
    case 404:
      return " Not Found";
    case 405:
      return " Method Not Allowed";
    case 407:
      return " Proxy Authentication Required";
    case 408:
      return " Request Timeout";
    case 409:
      return " Conflict";
    case 410:
      return " Gone";
    case 411:
      return " Length Required";
    case 412:
      return " Precondition Failed";
    case 413:
      return " Content Too Large";
    case 416:
      return " Range Not Satisfiable";
    case 429:
      return " Too Many Requests";
    case 500:
      return " Internal Server Error";
    case 501:
      return " Not Implemented";
    case 502:
      return " Bad Gateway";
    case 503:
      return " Service Unavailable";
    case 504:
      return " Gateway Timeout";
    case 507:
      return " Insufficient Storage";
    default:
      return "";
  }
}

/// Returns the text, printable and not longer than `most` bytes; ends between two characters.
std::string shortened(std::string_view text, std::size_t most) {
  std::string shown = printable(text);
  if (shown.size() <= most) return shown;
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0U) == 0x80U)
    --end;
  return shown.substr(0, end) + "...";
}

/// Returns the content of the first element with the name, its character references resolved; empty if there is none.
/// S3 writes elements of errors without attributes.
std::string element_of(const HttpAnswer& answer, std::string_view name) {
  const std::string body(answer.body.begin(), answer.body.end());
  if (body.find("<Error") == std::string::npos) return {};
  const std::string open = fmt::format("<{}>", name);
  const std::size_t begin = body.find(open);
  if (begin == std::string::npos) return {};
  const std::size_t end = body.find('<', begin + open.size());
  if (end == std::string::npos) return {};
  std::string_view rest(body);
  rest = rest.substr(begin + open.size(), std::min(end - begin - open.size(), kMostElement));
  std::string content;
  while (!rest.empty()) {
    std::size_t taken = 1;
    char c = rest.front();
    for (const auto& [reference, meaning] : std::initializer_list<std::pair<std::string_view, char>>{
             {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}}) {
      if (!rest.starts_with(reference)) continue;
      taken = reference.size();
      c = meaning;
      break;
    }
    content += c;
    rest.remove_prefix(taken);
  }
  return content;
}

/// Returns the text without words that look like keys, tokens or signatures.
std::string without_keys(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find_first_of(" \t\r\n"), text.size());
    const std::string_view word = text.substr(0, length);
    const bool is_key = length >= kShortestKey && word.find_first_of("0123456789+/=") != std::string_view::npos;
    if (!kept.empty()) kept += ' ';
    kept += is_key ? std::string_view("(...)") : word;
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return kept;
}

bool is_name(std::string_view text, std::size_t most) {
  return !text.empty() && text.size() <= most && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

/// Returns the region in which S3 says that the bucket lies, if that is why it refuses the request.
std::string other_region(const HttpAnswer& answer, const std::string& code) {
  const bool tells = answer.status == 301 || answer.status == 307 || code == "AuthorizationHeaderMalformed" ||
                     code == "IllegalLocationConstraintException";
  if (!tells) return {};
  std::string region(answer.header("x-amz-bucket-region"));
  if (region.empty()) region = element_of(answer, "Region");
  return is_name(region, 64) ? region : std::string();
}

/// Returns "403 Forbidden, AccessDenied: MESSAGE".
std::string told(const HttpAnswer& answer, const std::string& code) {
  std::string text = fmt::format("{}{}", answer.status, words_of(answer.status));
  const std::string message = without_keys(element_of(answer, "Message"));
  if (code.empty() && message.empty()) return text;
  return text + ", " +
         shortened(code.empty() || message.empty() ? code + message : code + ": " + message, kMostShownMessage);
}

bool is_token_refused(const std::string& code) {
  return code == "ExpiredToken" || code == "InvalidToken" || code == "TokenRefreshRequired";
}

}  // namespace

std::string shown_url(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const std::size_t scheme = url.find("://");
  const std::size_t host = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::size_t path = std::min(url.find('/', host), url.size());
  const std::size_t user = url.substr(host, path - host).rfind('@');
  std::string shown(url.substr(0, host));
  shown += url.substr(user == std::string_view::npos ? host : host + user + 1);
  return shortened(shown, kMostShownUrl);
}

std::string error_code_of(const HttpAnswer& answer) {
  std::string code = element_of(answer, "Code");
  return is_name(code, 64) ? code : std::string();
}

codec::Failure failure_of(const HttpAnswer& answer, const std::string& url) {
  const std::string address = shown_url(url);
  const std::string code = error_code_of(answer);
  const std::string why = told(answer, code);
  const int status = answer.status;
  if (const std::string region = other_region(answer, code); !region.empty()) {
    return codec::io_error(EINVAL, address, fmt::format("{}; the bucket is in the region {}", why, region));
  }
  if (status == 404 || status == 410) return codec::io_error(ENOENT, address, why);
  if (status == 401 || status == 403 || (status == 400 && is_token_refused(code)))
    return codec::io_error(EACCES, address, why);
  if (status == 412 || status == 416 || (status == 409 && code == "ConditionalRequestConflict"))
    return codec::stale(fmt::format("{}: the object has changed on the server ({})", address, why));
  if (status == 413) return codec::io_error(EFBIG, address, why);
  if (status == 501) return codec::io_error(EOPNOTSUPP, address, why);
  if (status == 507) return codec::io_error(ENOSPC, address, why);
  if (status >= 300 && status < 400) {
    const std::string target = shown_url(answer.header("Location"));
    return codec::io_error(EIO, address,
                           why + (target.empty() ? "" : "; the server redirects to " + target) + ", not followed");
  }
  return codec::io_error(EIO, address, why);
}

bool is_retried(int status) {
  return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

bool is_retried(const HttpAnswer& answer) {
  return is_retried(answer.status) || (answer.status == 400 && error_code_of(answer) == "RequestTimeout");
}

std::optional<std::chrono::seconds> retry_after(const HttpAnswer& answer) {
  const std::string value(answer.header("Retry-After").substr(0, 64));
  if (value.empty()) return std::nullopt;
  if (value.find_first_not_of("0123456789") == std::string::npos) {
    std::int64_t seconds = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (parsed.ec != std::errc()) seconds = kLongestWait;  // more than 64 bits hold
    return std::chrono::seconds(std::min(seconds, kLongestWait));
  }
  const auto date = parse_http_date(value);
  if (!date) return std::nullopt;
  const std::int64_t now = parse_http_date(answer.header("Date")).value_or(std::time(nullptr));
  return std::chrono::seconds(std::clamp<std::int64_t>(*date - now, 0, kLongestWait));
}

}  // namespace cframefs::frame
