// What services and programs answer that are asked for credentials: JSON, or the XML of STS.
//
// Thread safety: functions only. Errors: corruption for an answer that is none; io EACCES for one that refuses.
// `source` names the service in messages. No message holds a part of the answer but its error code.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frame/remote/access/credentials.h"

namespace cframefs::frame {

/// Returns the seconds since 1970 of a time of ISO 8601, "2026-01-02T03:04:05Z", also with a fraction or an offset.
std::optional<std::int64_t> parse_time(std::string_view text);

/// Parses AccessKeyId, SecretAccessKey, Expiration, and SessionToken or Token.
Result<Credentials> credentials_of_json(std::string_view text, const std::string& source);

/// Parses the answer of AssumeRoleWithWebIdentity.
Result<Credentials> credentials_of_sts(std::string_view text, const std::string& source);
/// Returns the error code of an answer of STS that refuses, such as "ExpiredTokenException"; empty if it has none.
std::string error_code_of_sts(std::string_view text);

/// Refuses credentials that cannot stand in the headers of a request.
Result<Credentials> checked_credentials(Credentials credentials, const std::string& source);

}  // namespace cframefs::frame
