// AWS Signature Version 4 in the header Authorization, computed by libcrypto.
//
// Thread safety: functions only. Errors: invalid for a URL that is not percent-encoded; unsupported if the crypto
// policy of the system forbids SHA-256. No message holds a secret.
#pragma once

#include <cstdint>
#include <string>

#include "frame/remote/access/credentials.h"
#include "frame/remote/http/http.h"

namespace cframefs::frame {

enum class PayloadHash : std::uint8_t {
  of_body,  // of the request's body
  none      // UNSIGNED-PAYLOAD: the signature does not protect the body, so over https only
};

struct SigningScope {
  std::string region;
  std::string service = "s3";  // only for s3 is x-amz-content-sha256 sent and the path encoded once
};

/// Returns the time as "20130524T000000Z". `now`: seconds since 1970.
std::string signing_time(std::int64_t now);

/// Returns what is hashed for the signature, of a request with all its headers but Host, which is taken from the URL.
/// `hash`: of the body, in hexadecimal, or UNSIGNED-PAYLOAD.
Result<std::string> canonical_request(const HttpRequest& request, const std::string& hash, const SigningScope& scope);

/// Adds the headers of the signature, in place of those of an earlier one. Signs all other headers but those that
/// libcurl or a proxy may change, such as User-Agent.
Result<void> sign_request(HttpRequest& request, const Credentials& credentials, const SigningScope& scope,
                          PayloadHash payload, std::int64_t now);

}  // namespace cframefs::frame
