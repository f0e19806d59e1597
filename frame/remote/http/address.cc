#include "frame/remote/http/address.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "frame/base/utf8_sanitize.h"
#include "frame/remote/http/percent_encoding.h"

namespace cframefs::frame {

using codec::Result;

namespace {

using codec::Failure;
using codec::invalid;

constexpr std::size_t kMostHostBytes = 253;
constexpr std::size_t kMostLabelBytes = 63;
constexpr std::size_t kMostKeyBytes = 1024;

struct SchemeName {
  std::string_view prefix;
  Address::Scheme scheme;
};
constexpr std::array<SchemeName, 3> kSchemes{
    {{"http://", Address::Scheme::http}, {"https://", Address::Scheme::https}, {"s3://", Address::Scheme::s3}}};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower_case(std::string_view text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), lower);
  return lowered;
}

bool is_lower_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_control_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

bool has_control_byte(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_control_byte);
}

/// Returns the scheme that the text begins with, or nullptr.
const SchemeName* scheme_of(std::string_view text) {
  const auto* found = std::find_if(kSchemes.begin(), kSchemes.end(), [text](const SchemeName& name) {
    return lower_case(text.substr(0, name.prefix.size())) == name.prefix;
  });
  return found == kSchemes.end() ? nullptr : found;
}

bool is_of_bucket(std::string_view address) {
  const SchemeName* name = scheme_of(address);
  return name != nullptr && name->scheme == Address::Scheme::s3;
}

/// Returns the address up to its query or fragment. A key may hold '?' and '#'.
std::string_view without_query(std::string_view address) {
  return is_of_bucket(address) ? address : address.substr(0, address.find_first_of("?#"));
}

/// Encodes what must not stand in a path or query; '%' stays.
std::string encode_forbidden(std::string_view text) {
  constexpr std::string_view kForbidden = " \"<>\\^`{|}";
  std::string encoded;
  for (const char c : text) {
    const bool is_forbidden = static_cast<unsigned char>(c) >= 0x80 || kForbidden.find(c) != std::string_view::npos;
    encoded += is_forbidden ? percent_encode(std::string_view(&c, 1)) : std::string(1, c);
  }
  return encoded;
}

bool has_dot_segment(std::string_view path) {
  while (true) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view segment = path.substr(0, end);
    if (segment == "." || segment == "..") return true;
    if (end == path.size()) return false;
    path.remove_prefix(end + 1);
  }
}

Result<void> set_user(std::string_view text, Address& address) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  auto user = percent_decode(text.substr(0, colon));
  auto password = percent_decode(text.substr(std::min(colon + 1, text.size())));
  if (!user || !password) return invalid("the user or password in the address is not percent-encoded");
  if (user->empty()) return invalid("the address has an '@' but no user before it");
  // HTTP joins the two by a colon.
  if (user->find(':') != std::string::npos) return invalid("the user in the address has a ':'");
  if (has_control_byte(*user) || has_control_byte(*password)) {
    return invalid("the user or password in the address has a control character");
  }
  address.user = std::move(*user);
  address.password = std::move(*password);
  return {};
}

Result<void> check_host_name(const std::string& host) {
  if (host.size() > kMostHostBytes) {
    return invalid("the host name has " + std::to_string(host.size()) + " bytes, at most " +
                   std::to_string(kMostHostBytes));
  }
  std::size_t label = 0;  // bytes
  for (const char c : host) {
    if (c == '.' && label == 0) return invalid("the host name \"" + host + "\" has an empty part");
    if (c == '.') {
      label = 0;
      continue;
    }
    if (!is_lower_alphanumeric(c) && c != '-' && c != '_') {
      return invalid("the host name \"" + printable(host) +
                     "\" has other characters than letters, digits, '-', '_' and '.' (an international name is "
                     "written in its form with xn--)");
    }
    if (++label > kMostLabelBytes) {
      return invalid("a part of the host name \"" + host + "\" has more than " + std::to_string(kMostLabelBytes) +
                     " bytes");
    }
  }
  return {};
}

/// Parses "[ADDRESS]"; the rest is left in *text.
Result<std::string> parse_ipv6(std::string_view* text) {
  const std::size_t end = text->find(']');
  if (end == std::string_view::npos) return invalid("the host has a '[' but no ']'");
  std::string host = lower_case(text->substr(0, end + 1));
  if (!is_ip_address(host)) return invalid("\"" + printable(host) + "\" is no IPv6 address");
  text->remove_prefix(end + 1);
  return host;
}

Result<std::uint16_t> parse_port(std::string_view text) {
  unsigned value = 0;
  for (const char c : text) {
    // The characters are not shown: they may be those of a password.
    if (c < '0' || c > '9') {
      return invalid("the port is no number of 1 to 65535 (a '/', '?', '#' or '@' in a password is written as %XX)");
    }
    value = std::min(value * 10 + static_cast<unsigned>(c - '0'), 65536U);
  }
  if (value == 0 || value > 65535) {
    return invalid("the port " + std::string(text.substr(0, 16)) + " is not one of 1 to 65535");
  }
  return static_cast<std::uint16_t>(value);
}

Result<void> set_authority(std::string_view text, Address& address) {
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    if (auto set = set_user(text.substr(0, at), address); !set) return set;
    text.remove_prefix(at + 1);
  }
  if (!text.empty() && text.front() == '[') {
    auto host = parse_ipv6(&text);
    if (!host) return Failure(host.error());
    address.host = std::move(*host);
  } else {
    address.host = lower_case(text.substr(0, text.find(':')));
    text.remove_prefix(address.host.size());
    if (address.host.empty()) return invalid("the address has no host");
    if (auto checked = check_host_name(address.host); !checked) return checked;
  }
  if (text.empty()) return {};
  if (text.front() != ':') return invalid("the address has other characters than a port after the host");
  if (text.size() == 1) return {};
  const auto port = parse_port(text.substr(1));
  if (!port) return Failure(port.error());
  const std::uint16_t usual = address.scheme == Address::Scheme::https ? 443 : 80;
  address.port = *port == usual ? std::uint16_t{0} : *port;
  return {};
}

Result<Address> parse_web_address(Address address, std::string_view rest) {
  rest = rest.substr(0, rest.find('#'));
  const std::size_t authority = std::min(rest.find_first_of("/?"), rest.size());
  if (const auto set = set_authority(rest.substr(0, authority), address); !set) return Failure(set.error());
  rest.remove_prefix(authority);

  const std::size_t path = std::min(rest.find('?'), rest.size());
  if (path != 0) address.path = encode_forbidden(rest.substr(0, path));
  address.query = encode_forbidden(rest.substr(std::min(path + 1, rest.size())));
  const auto decoded = percent_decode(address.path);
  if (!decoded) return invalid("the path of the address has " + decoded.error().reason);
  if (has_dot_segment(*decoded)) return invalid(R"(the path of the address has a segment "." or "..")");
  return address;
}

Result<Address> parse_s3_address(Address address, std::string_view rest) {
  const std::size_t bucket = std::min(rest.find('/'), rest.size());
  address.bucket = rest.substr(0, bucket);
  address.key = rest.substr(std::min(bucket + 1, rest.size()));
  if (const auto checked = check_bucket_name(address.bucket); !checked) return Failure(checked.error());
  if (address.key.size() > kMostKeyBytes) {
    return invalid("the key has " + std::to_string(address.key.size()) + " bytes, at most " +
                   std::to_string(kMostKeyBytes));
  }
  if (!is_utf8(address.key)) return invalid("the key is not UTF-8");
  if (has_dot_segment(address.key)) return invalid(R"(the key has a segment "." or "..")");
  address.path.clear();
  return address;
}

}  // namespace

bool Address::is_directory() const {
  if (scheme == Scheme::s3) return key.empty() || key.back() == '/';
  return path.empty() || path.back() == '/';
}

std::string Address::origin() const {
  std::string text = (scheme == Scheme::http ? "http://" : "https://") + host;
  if (port != 0) text += ":" + std::to_string(port);
  return text;
}

std::string Address::url() const {
  return origin() + path + (query.empty() ? "" : "?" + query);
}

std::string Address::shown() const {
  return scheme == Scheme::s3 ? "s3://" + bucket + "/" + key : origin() + path;
}

codec::Result<Address> parse_address(std::string_view text) {
  if (text.size() > Address::kMostBytes) {
    return invalid("the address has " + std::to_string(text.size()) + " bytes, at most " +
                   std::to_string(Address::kMostBytes));
  }
  const SchemeName* name = scheme_of(text);
  if (name == nullptr) return invalid("the address does not begin with http://, https:// or s3://");
  if (has_control_byte(text)) return invalid("the address has a control character");
  Address address;
  address.scheme = name->scheme;
  const std::string_view rest = text.substr(name->prefix.size());
  return name->scheme == Address::Scheme::s3 ? parse_s3_address(std::move(address), rest)
                                             : parse_web_address(std::move(address), rest);
}

codec::Result<void> check_bucket_name(std::string_view bucket) {
  if (bucket.empty()) return invalid("the address has no bucket");
  if (bucket.find('@') != std::string_view::npos) {
    return invalid("an s3 address has no user or password: the bucket follows s3:// at once");
  }
  const std::string quoted = "the bucket name \"" + printable(bucket.substr(0, 80)) + "\" ";
  if (bucket.size() < 3 || bucket.size() > 63) {
    return invalid(quoted + "has " + std::to_string(bucket.size()) + " bytes, of 3 to 63");
  }
  for (const char c : bucket) {
    if (!is_lower_alphanumeric(c) && c != '-' && c != '.') {
      return invalid(quoted + "has other characters than lower-case letters, digits, '-' and '.'");
    }
  }
  if (!is_lower_alphanumeric(bucket.front()) || !is_lower_alphanumeric(bucket.back())) {
    return invalid(quoted + "does not begin and end with a letter or digit");
  }
  if (bucket.find("..") != std::string_view::npos) return invalid(quoted + "has two dots in a row");
  if (is_ip_address(std::string(bucket))) return invalid(quoted + "is an IP address");
  return {};
}

bool is_ip_address(const std::string& host) {
  std::array<unsigned char, sizeof(struct in6_addr)> binary{};
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    return ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), binary.data()) == 1;
  }
  return ::inet_pton(AF_INET, host.c_str(), binary.data()) == 1;
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  std::array<unsigned char, sizeof(struct in6_addr)> binary{};
  if (::inet_pton(AF_INET, host.c_str(), binary.data()) == 1) return binary[0] == 127;
  if (host.size() < 2 || host.front() != '[') return false;
  if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), binary.data()) != 1) return false;
  return std::all_of(binary.begin(), binary.end() - 1, [](unsigned char byte) { return byte == 0; }) &&
         binary.back() == 1;
}

bool is_address(std::string_view text) {
  return scheme_of(text) != nullptr;
}

std::string address_of_entry(std::string_view directory, std::string_view name) {
  std::string address(without_query(directory));
  if (!address.ends_with('/')) address += '/';
  return address + (is_of_bucket(directory) ? std::string(name) : percent_encode(name));
}

std::optional<std::string_view> part_below(std::string_view address, std::string_view directory) {
  directory = without_query(directory);
  if (directory.ends_with('/')) directory.remove_suffix(1);
  if (address.size() <= directory.size() + 1 || !address.starts_with(directory) || address[directory.size()] != '/')
    return std::nullopt;
  return address.substr(directory.size() + 1);
}

std::string shown_address(std::string_view address) {
  if (const auto parsed = parse_address(address)) return parsed->shown();
  const std::size_t scheme_end = address.find("://");
  const std::size_t begin = scheme_end == std::string_view::npos ? 0 : scheme_end + 3;
  const std::string_view rest = address.substr(begin, address.find_first_of("?#", begin) - begin);
  const std::size_t user_end = rest.rfind('@');
  return std::string(address.substr(0, begin)) +
         std::string(rest.substr(user_end == std::string_view::npos ? 0 : user_end + 1));
}

}  // namespace cframefs::frame
