// Credentials that a service gives: STS for a web identity, the endpoint of a container (ECS, EKS), the metadata
// service of an instance (IMDSv2).
//
// Redirects are not followed. Plain http is used only to hosts of this machine or its link, since it shows the secrets;
// the metadata service may be another host if AWS_EC2_METADATA_SERVICE_ENDPOINT says so.
//
// Thread safety: functions only. Errors: as CredentialChain. `lacking`: why a source has none is appended for messages,
// ended by "; ".
#pragma once

#include <string>
#include <vector>

#include "frame/remote/access/credentials.h"

namespace cframefs::frame {

/// Returns the addresses that may be asked for credentials, as far as the environment names them well.
std::vector<std::string> credential_addresses(const Surroundings& surroundings);

struct WebIdentity {
  std::string role;          // its ARN
  std::string token_file;    // is read at each call, because it is replaced before it expires
  std::string session_name;  // empty: "cframefs"
};

/// Asks STS of the region (or AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL) for the credentials of the role.
Result<Credentials> assume_role(const Surroundings& surroundings, HttpTransport& transport, const WebIdentity& identity,
                                const std::string& region);

/// AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN.
FoundCredentials web_identity_credentials(const Surroundings& surroundings, HttpTransport& transport,
                                          const std::string& region);

/// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or AWS_CONTAINER_CREDENTIALS_FULL_URI.
FoundCredentials container_credentials(const Surroundings& surroundings, HttpTransport& transport,
                                       std::string& lacking);

/// The role of the instance, unless AWS_EC2_METADATA_DISABLED is true.
FoundCredentials instance_credentials(const Surroundings& surroundings, HttpTransport& transport, std::string& lacking);

}  // namespace cframefs::frame
