// Credentials that lie on this machine: in the environment, in a profile of ~/.aws, or printed by the program that a
// profile names (credential_process).
//
// Thread safety: functions only. Errors: as CredentialChain. `lacking`: why a source has none is appended for messages,
// ended by "; ".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frame/remote/access/credentials.h"

namespace cframefs::frame {

/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_CREDENTIAL_EXPIRATION.
FoundCredentials environment_credentials(const Surroundings& surroundings);

/// A profile's web identity, keys, or program. unsupported for a profile with another way to sign in.
FoundCredentials profile_credentials(const Surroundings& surroundings, HttpTransport& transport,
                                     const CredentialChoice& choice, std::string& lacking);

/// Returns what the program prints that a profile (empty: AWS_PROFILE, "default") names. io ENOENT if it names none.
Result<std::string> output_of_credential_process(const Surroundings& surroundings, const std::string& profile);

/// Splits a command as a shell does, with its quotation marks and backslashes but nothing else of a shell. invalid for
/// a quotation mark without a partner.
Result<std::vector<std::string>> split_command(std::string_view command);

}  // namespace cframefs::frame
