// Addresses of objects and directories on servers: "http(s)://[USER[:PASSWORD]@]HOST[:PORT]/PATH[?QUERY]" and
// "s3://BUCKET[/KEY]".
//
// The key of an s3 address is taken as it is, as the AWS tools take it: '%', '?' and '#' are characters of the key.
// The path of a web address is percent-encoded; characters that must not stand in one, such as a space or an 'ü', are
// encoded. A fragment is dropped, because it is never sent.
//
// Thread safety: values and pure functions. Errors: invalid, with what is wrong; no message holds a user, a password or
// a query.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codec/base/error.h"

namespace cframefs::frame {

/// Returns whether the text is an address of a server ("http://", "https://", "s3://", in any case) rather than a path.
bool is_address(std::string_view text);

/// Returns the address of an entry of a directory, without the query of the directory's. `name`: as a listing has it.
std::string address_of_entry(std::string_view directory, std::string_view name);

/// Returns what follows the address of the directory and '/' in an address that address_of_entry() made, for it or for
/// a directory in it; nullopt for another one.
std::optional<std::string_view> part_below(std::string_view address, std::string_view directory);

/// Returns an address without user, password and query, for tables of mounts and messages; it need not be well-formed.
std::string shown_address(std::string_view address);

struct Address {
  static constexpr std::size_t kMostBytes = 8192;

  enum class Scheme : std::uint8_t { http, https, s3 };
  Scheme scheme = Scheme::https;

  // Of http and https.
  std::string host;        // lower-case; an IPv6 address has its brackets
  std::uint16_t port = 0;  // 0: that of the scheme
  std::string path = "/";  // percent-encoded, no segment is "." or ".."
  std::string query;       // percent-encoded, without '?'; may prove rights, as a presigned address does
  std::string user;        // decoded; empty if there is none
  std::string password;    // decoded

  // Of s3.
  std::string bucket;
  std::string key;  // decoded, no segment is "." or ".."; empty: the whole bucket

  bool is_directory() const;
  /// Returns "https://HOST[:PORT]", of http and https.
  std::string origin() const;
  /// Returns what a request of http or https asks for: origin, path and query.
  std::string url() const;
  /// Returns the address for messages, without user, password and query.
  std::string shown() const;
};

codec::Result<Address> parse_address(std::string_view text);

/// Refuses what is no name of a bucket in S3: 3 to 63 lower-case letters, digits, '-' and '.'.
codec::Result<void> check_bucket_name(std::string_view bucket);

/// Returns whether the host is an IP address in its usual form; `host` as in Address.
bool is_ip_address(const std::string& host);
/// Returns whether requests to the host stay in this machine: "localhost", 127.0.0.0/8 or [::1].
bool is_loopback(const std::string& host);

}  // namespace cframefs::frame
