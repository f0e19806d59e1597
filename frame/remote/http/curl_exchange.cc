#include "frame/remote/http/curl_exchange.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <new>
#include <utility>

#include <fmt/core.h>

#include "frame/base/utf8_sanitize.h"
#include "frame/remote/http/http_progress.h"
#include "frame/remote/http/http_status.h"
#include "frame/remote/http/network_needs.h"
#include "frame/remote/http/request_headers.h"

namespace cframefs::frame {
namespace {

using std::chrono::milliseconds;

constexpr unsigned kMostRedirects = 5;
constexpr std::size_t kMostHeaderBytes = 64U << 10U;
constexpr std::size_t kMostFailureBody = 64U << 10U;
constexpr std::size_t kMostCurlText = 200;
constexpr milliseconds kLongestConnect{10'000};
constexpr long kSlowest = 1024;  // bytes per second
// A server may take long to answer once it has the whole body.
constexpr long kSlowUpload = 60;  // seconds
constexpr long kBufferBytes = 64L << 10;

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return small;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

class ParsedUrl {
 public:
  ParsedUrl() : url_(curl_url(), curl_url_cleanup) {}

  /// Takes an address, or a reference relative to the one before.
  bool set(const std::string& text) {
    return curl_url_set(url_.get(), CURLUPART_URL, text.c_str(), CURLU_URLENCODE) == CURLUE_OK;
  }
  std::string get(CURLUPart part) const {
    char* text = nullptr;
    if (curl_url_get(url_.get(), part, &text, part == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0U) != CURLUE_OK) return {};
    std::string copy(text);
    curl_free(text);
    return copy;
  }
  bool is_same_server(const ParsedUrl& other) const {
    return get(CURLUPART_SCHEME) == other.get(CURLUPART_SCHEME) && get(CURLUPART_PORT) == other.get(CURLUPART_PORT) &&
           equal_without_case(get(CURLUPART_HOST), other.get(CURLUPART_HOST));
  }

 private:
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url_;
};

/// Returns whether the header may go to a server that the request was not meant for.
bool tells_no_secret(const HttpHeader& header) {
  const std::string name = in_small_letters(header.name);
  return name == "range" || name.starts_with("if-") || name.starts_with("accept");
}

int errno_of(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
    case CURLE_INTERFACE_FAILED:
      return EHOSTUNREACH;
    case CURLE_OPERATION_TIMEDOUT:
      return ETIMEDOUT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:  // also an answer without a status line
      return EPROTO;
    case CURLE_OUT_OF_MEMORY:
      return ENOMEM;
    default:
      return EIO;
  }
}

}  // namespace

CurlExchange::CurlExchange(HttpRequest request, HttpTransport::Time until, HttpTransport::Done done)
    : request_(std::move(request)), url_(request_.url), until_(until), done_(std::move(done)) {}

std::string CurlExchange::doing() const {
  std::string text = request_.method + " " + shown_url(url_);
  if (redirects_ != 0) text += ", redirected to " + shown_url(request_.url);
  return text;
}

codec::Failure CurlExchange::failure(int sys, const std::string& why) const {
  return codec::io_error(sys, doing(), why);
}

bool CurlExchange::is_given_up() const {
  return request_.progress && request_.progress->is_given_up();
}

std::uint16_t CurlExchange::port() const {
  return port_of(request_.url);
}

/// Returns whether the sandbox has refused the connection, which it does by the port alone.
bool CurlExchange::is_port_refused(CURLcode code) const {
  const auto& ports = options_->ports;
  if (code != CURLE_COULDNT_CONNECT || ports.empty() || std::find(ports.begin(), ports.end(), port()) != ports.end())
    return false;
  // Behind a proxy the port does not matter.
  long why = 0;
  return curl_easy_getinfo(handle_.get(), CURLINFO_OS_ERRNO, &why) == CURLE_OK && why == EACCES;
}

std::string CurlExchange::received() const {
  if (length_) return fmt::format("the body ends after {} of {} bytes", body_bytes_, *length_);
  return fmt::format("{} bytes of the body have come", body_bytes_);
}

codec::Failure CurlExchange::late() const {
  return failure(ETIMEDOUT, is_head_complete_ ? received() + " until the time is over" : "no answer in time");
}

Result<CURL*> CurlExchange::prepare(const CurlOptions& options, CURLSH* sessions, OpenSockets& sockets,
                                    TrustStore* trust) {
  options_ = &options;
  sockets_ = &sockets;
  round_of_head_ = 0;
  trust_ = trust;
  answer_ = HttpAnswer();
  body_bytes_ = 0;
  length_.reset();
  is_head_complete_ = false;
  is_enough_ = false;
  error_[0] = '\0';
  handle_.reset(curl_easy_init());
  if (!handle_) return failure(ENOMEM, "");
  if (auto set = set_headers(); !set) return codec::Failure(set.error());
  CURL* const handle = handle_.get();
  const bool is_set = set_request() && set_limits(options) && set_certificates(options) &&
                      sockets.keep_those_of(handle) && curl_easy_setopt(handle, CURLOPT_SHARE, sessions) == CURLE_OK &&
                      curl_easy_setopt(handle, CURLOPT_PRIVATE, this) == CURLE_OK &&
                      curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error_) == CURLE_OK &&
                      curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, &CurlExchange::take_header) == CURLE_OK &&
                      curl_easy_setopt(handle, CURLOPT_HEADERDATA, this) == CURLE_OK &&
                      curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &CurlExchange::take_body) == CURLE_OK &&
                      curl_easy_setopt(handle, CURLOPT_WRITEDATA, this) == CURLE_OK;
  if (!is_set) return failure(EINVAL, "libcurl refuses an option");
  return handle;
}

/// Gives the headers to the handle. Those that curl would add by itself are left out: the signature covers none of
/// them.
Result<void> CurlExchange::set_headers() {
  headers_.reset();
  const auto add = [this](const std::string& line) {
    curl_slist* const grown = curl_slist_append(headers_.get(), line.c_str());
    if (grown == nullptr) return false;
    static_cast<void>(headers_.release());
    headers_.reset(grown);
    return true;
  };
  bool is_added = add("Expect:") && add("Accept-Encoding: identity");
  bool has_type = false;
  for (const HttpHeader& header : request_.headers) {
    const std::string name = in_small_letters(header.name);
    if (name.empty() || (header.name + header.value).find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos)
      return codec::invalid(fmt::format("{}: the header {} has a line end", doing(), printable(header.name)));
    if (name == "accept-encoding") continue;
    has_type |= name == "content-type";
    is_added = is_added && add(header.value.empty() ? header.name + ";" : header.name + ": " + header.value);
  }
  if (!has_type) is_added = is_added && add("Content-Type:");
  if (!is_added) return failure(ENOMEM, "");
  return {};
}

bool CurlExchange::set_request() {
  CURL* const handle = handle_.get();
  bool is_set = curl_easy_setopt(handle, CURLOPT_URL, request_.url.c_str()) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers_.get()) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_USERAGENT, "cframefs") == CURLE_OK;
  if (request_.method == "HEAD") {
    is_set = is_set && curl_easy_setopt(handle, CURLOPT_NOBODY, 1L) == CURLE_OK;
  } else if (request_.method == "PUT" || request_.method == "POST") {
    const std::string_view body = request_.body.view();
    is_set = is_set && curl_easy_setopt(handle, CURLOPT_POST, 1L) == CURLE_OK &&
             curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.empty() ? "" : body.data()) == CURLE_OK &&
             curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size())) == CURLE_OK &&
             curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request_.method.c_str()) == CURLE_OK;
  } else if (request_.method != "GET") {
    is_set = is_set && curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request_.method.c_str()) == CURLE_OK;
  }
  return is_set;
}

bool CurlExchange::set_limits(const CurlOptions& options) {
  CURL* const handle = handle_.get();
  const auto left = std::chrono::duration_cast<milliseconds>(until_ - std::chrono::steady_clock::now());
  const milliseconds connect = std::clamp(left, milliseconds(1), kLongestConnect);
  const bool is_https = request_.url.starts_with("https:");
  bool is_set = curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https") == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2)) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect.count())) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_TCP_KEEPIDLE, 30L) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_TCP_KEEPINTVL, 10L) == CURLE_OK &&
                curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, kBufferBytes) == CURLE_OK;
  // A server may work long at a request that changes something, such as the end of a multipart upload.
  if (request_.method == "GET" || request_.method == "HEAD") {
    is_set =
        is_set && curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, kSlowest) == CURLE_OK &&
        curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.slow_after.count())) == CURLE_OK;
  }
  if (request_.method == "PUT") {
    is_set = is_set && curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, kSlowest) == CURLE_OK &&
             curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, kSlowUpload) == CURLE_OK;
  }
  is_set = is_set && curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, request_.on_new_connection ? 1L : 0L) == CURLE_OK;
  // A libcurl without HTTP/2 refuses the first, an old one the last: both go without.
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  curl_easy_setopt(handle, CURLOPT_PIPEWAIT, is_https ? 1L : 0L);
#if LIBCURL_VERSION_NUM >= 0x075700
  // Otherwise a request that ends while its host name is resolved makes the thread wait for the resolver.
  curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
#endif
  return is_set;
}

bool CurlExchange::set_certificates(const CurlOptions& options) {
  CURL* const handle = handle_.get();
  if (trust_ != nullptr) {
#if LIBCURL_VERSION_NUM >= 0x075700
    // Otherwise libcurl keeps the store for later connections, also when there is another one.
    curl_easy_setopt(handle, CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
    return curl_easy_setopt(handle, CURLOPT_CAINFO, nullptr) == CURLE_OK &&
           curl_easy_setopt(handle, CURLOPT_CAPATH, nullptr) == CURLE_OK &&
           curl_easy_setopt(handle, CURLOPT_SSL_CTX_DATA, this) == CURLE_OK &&
           curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, &CurlExchange::give_certificates) == CURLE_OK;
  }
  if (options.certificates.empty()) return true;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): libcurl does not change what it does not copy
  curl_blob certificates{const_cast<char*>(options.certificates.data()), options.certificates.size(), CURL_BLOB_NOCOPY};
  return curl_easy_setopt(handle, CURLOPT_CAINFO_BLOB, &certificates) == CURLE_OK &&
         curl_easy_setopt(handle, CURLOPT_CAPATH, nullptr) == CURLE_OK;
}

CURLcode CurlExchange::give_certificates(CURL* /*handle*/, void* context, void* exchange) noexcept {
  auto& self = *static_cast<CurlExchange*>(exchange);
  try {
    auto given = self.trust_->use_in(static_cast<SSL_CTX*>(context));
    if (given) return CURLE_OK;
    self.refuse(codec::Failure(given.error()));
    return CURLE_SSL_CACERT_BADFILE;
  } catch (const std::bad_alloc&) {
    return CURLE_OUT_OF_MEMORY;
  }
}

std::size_t CurlExchange::take_header(const char* at, std::size_t size, std::size_t count, void* exchange) noexcept {
  auto& self = *static_cast<CurlExchange*>(exchange);
  try {
    return self.add_header_line(std::string_view(at, size * count)) ? size * count : 0;
  } catch (const std::bad_alloc&) {
    return 0;  // ends the transfer with CURLE_WRITE_ERROR
  }
}

std::size_t CurlExchange::take_body(const char* at, std::size_t size, std::size_t count, void* exchange) noexcept {
  auto& self = *static_cast<CurlExchange*>(exchange);
  try {
    // Bytes fewer than given end the transfer; an empty call must not.
    return size * count == 0 || self.add_body(std::string_view(at, size * count)) ? size * count : 0;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

bool CurlExchange::refuse(codec::Failure failure) {
  refusal_ = std::move(failure.value());
  return false;
}

/// Takes a line of an answer's head: status line, header, continuation of a header, or the empty line at the end.
bool CurlExchange::add_header_line(std::string_view line) {
  header_bytes_ += line.size();
  if (header_bytes_ > kMostHeaderBytes) {
    return refuse(
        codec::unsupported(fmt::format("{}: the headers are longer than {} bytes", doing(), kMostHeaderBytes)));
  }
  if (is_head_complete_) return true;  // trailers: what they say comes too late to be checked
  const std::string_view content = trimmed(line);
  if (content.empty()) {
    long status = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    if (status < 200) return true;  // "100 Continue": the answer follows
    answer_.status = static_cast<int>(status);
    is_head_complete_ = true;
    if (request_.progress && !is_followed()) request_.progress->note_first_byte();
    auto examined = examine_head();
    if (examined && has_body()) round_of_head_ = sockets_->note_head();
    return examined || refuse(codec::Failure(examined.error()));
  }
  if (line.starts_with("HTTP/")) {
    answer_.headers.clear();
    return true;
  }
  if (line.starts_with(' ') || line.starts_with('\t')) {
    if (!answer_.headers.empty()) answer_.headers.back().value.append(" ").append(content);
    return true;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return true;
  answer_.headers.push_back(
      {std::string(trimmed(line.substr(0, colon))), std::string(trimmed(line.substr(colon + 1)))});
  return true;
}

bool CurlExchange::has_body() const {
  return request_.method != "HEAD" && answer_.status != 204 && answer_.status != 304;
}

/// Returns Content-Length; nullopt if there is none or it does not count, because the body is sent in chunks.
Result<std::optional<std::uint64_t>> CurlExchange::stated_length() const {
  std::optional<std::uint64_t> length;
  if (!answer_.header("Transfer-Encoding").empty()) return length;
  for (const HttpHeader& header : answer_.headers) {
    if (!equal_without_case(header.name, "Content-Length")) continue;
    std::uint64_t value = 0;
    const char* const end = header.value.data() + header.value.size();
    const auto parsed = std::from_chars(header.value.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end || (length && *length != value))
      return failure(EPROTO, "Content-Length is no number, or two numbers");
    length = value;
  }
  return length;
}

/// Returns what an answer that is too long says of the server, the beginning of a message.
std::string_view CurlExchange::too_much() const {
  const auto& headers = request_.headers;
  const bool is_range = std::any_of(headers.begin(), headers.end(),
                                    [](const HttpHeader& header) { return equal_without_case(header.name, "Range"); });
  return is_range && answer_.status == 200 ? "the server ignores ranges: " : "the server sends too much: ";
}

/// Refuses, before the body comes, an answer that no reader may use.
Result<void> CurlExchange::examine_head() {
  auto stated = stated_length();
  if (!stated) return codec::Failure(stated.error());
  if (has_body()) length_ = *stated;
  if (answer_.status < 200 || answer_.status > 299) return {};
  const std::string encoding = in_small_letters(answer_.header("Content-Encoding"));
  if (!encoding.empty() && encoding != "identity") {
    return codec::unsupported(fmt::format("{}: the server sends the object compressed (Content-Encoding {})", doing(),
                                          printable(encoding.substr(0, 64))));
  }
  if (length_ && *length_ > request_.most_body) {
    return codec::unsupported(fmt::format("{}: {}it sends {} bytes (status {}), at most {} are read", doing(),
                                          too_much(), *length_, answer_.status, request_.most_body));
  }
  return {};
}

bool CurlExchange::add_body(std::string_view bytes) {
  if (round_of_head_ != 0) sockets_->note_body(std::exchange(round_of_head_, 0));
  body_bytes_ += bytes.size();
  std::vector<std::uint8_t>& body = answer_.body;
  if (answer_.status < 200 || answer_.status > 299) {
    const std::string_view kept = bytes.substr(0, kMostFailureBody - body.size());
    body.insert(body.end(), kept.begin(), kept.end());
    is_enough_ = kept.size() < bytes.size();
    return !is_enough_;
  }
  if (body_bytes_ > request_.most_body) {
    return refuse(codec::unsupported(fmt::format("{}: {}it sends more than {} bytes (status {})", doing(), too_much(),
                                                 request_.most_body, answer_.status)));
  }
  if (body.empty() && length_) body.reserve(static_cast<std::size_t>(*length_));  // at most most_body
  body.insert(body.end(), bytes.begin(), bytes.end());
  return true;
}

codec::Failure CurlExchange::transfer_failure(CURLcode code) const {
  std::string why = printable(std::string_view(error_).substr(0, kMostCurlText));
  if (why.empty()) why = curl_easy_strerror(code);
  if (is_port_refused(code)) {
    return codec::unsupported(
        fmt::format("{}: the sandbox permits no connection to port {}; the option sandbox=off does", doing(), port()));
  }
  if (code == CURLE_URL_MALFORMAT) return codec::invalid(fmt::format("{}: {}", doing(), why));
  if (code == CURLE_PARTIAL_FILE || (is_head_complete_ && errno_of(code) == EIO)) why = received();
  return failure(errno_of(code), why);
}

Result<void> CurlExchange::check_length() const {
  if (!length_ || *length_ == body_bytes_) return {};
  return failure(EIO, received());
}

Result<bool> CurlExchange::end(CURLcode code) {
  if (refusal_) return codec::Failure(*refusal_);
  // The status says all that counts of an answer without the object: such an answer may end early.
  if (is_head_complete_ && answer_.status >= 300 && errno_of(code) == EIO) is_enough_ = true;
  if (code != CURLE_OK && !is_enough_) {
    return code == CURLE_WRITE_ERROR ? failure(ENOMEM, "no memory for the answer") : transfer_failure(code);
  }
  if (!is_head_complete_) return failure(EPROTO, "the answer is no HTTP");
  if (!is_enough_) {
    if (auto whole = check_length(); !whole) return codec::Failure(whole.error());
  }
  if (!is_followed()) return true;
  return follow(std::string(answer_.header("Location")));
}

/// Returns whether the answer is a redirect that is followed.
bool CurlExchange::is_followed() const {
  const int status = answer_.status;
  const bool redirects = status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
  const bool is_read = request_.method == "GET" || request_.method == "HEAD";
  return redirects && request_.follows_redirects && is_read && !answer_.header("Location").empty();
}

/// Makes request_ the one that the server redirects to.
Result<bool> CurlExchange::follow(const std::string& location) {
  if (redirects_ == kMostRedirects)
    return codec::unsupported(fmt::format("{}: more than {} redirects", doing(), kMostRedirects));
  ParsedUrl now;
  ParsedUrl next;
  const bool is_parsed = now.set(request_.url) && next.set(request_.url) && next.set(location);
  const std::string scheme = is_parsed ? next.get(CURLUPART_SCHEME) : "";
  if (scheme != "http" && scheme != "https") {
    return codec::unsupported(
        fmt::format("{}: redirects to {}, which is no http or https address", doing(), shown_url(location)));
  }
  if (scheme == "http" && now.get(CURLUPART_SCHEME) == "https") {
    return codec::unsupported(
        fmt::format("{}: redirects from https to {}, which is not encrypted", doing(), shown_url(location)));
  }
  if (!next.is_same_server(now)) {
    auto& headers = request_.headers;
    headers.erase(std::remove_if(headers.begin(), headers.end(),
                                 [](const HttpHeader& header) { return !tells_no_secret(header); }),
                  headers.end());
  }
  ++redirects_;
  request_.url = next.get(CURLUPART_URL);
  return false;
}

void CurlExchange::report() {
  std::exchange(done_, nullptr)(std::move(answer_));
}

void CurlExchange::report(codec::Failure failure) {
  std::exchange(done_, nullptr)(std::move(failure));
}

}  // namespace cframefs::frame
