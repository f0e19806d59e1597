#include "frame/remote/remote_confinement.h"

#include "frame/remote/access/aws_profile.h"
#include "frame/remote/access/local_credentials.h"
#include "frame/remote/access/system_surroundings.h"

namespace cframefs::frame {

std::vector<std::string> credential_files(const RemoteOptions& options) {
  const SystemSurroundings surroundings;
  std::vector<std::string> files = aws_files(surroundings);
  if (!options.token_file.empty()) files.push_back(options.token_file);
  for (const char* const name : {"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"}) {
    if (auto file = set_variable(surroundings, name)) files.push_back(std::move(*file));
  }
  // A profile that cannot be read is an error later, if it is needed.
  if (const auto profile = AwsProfile::read(surroundings, options.profile)) {
    if (auto file = profile->value("web_identity_token_file")) files.push_back(std::move(*file));
  }
  return files;
}

Result<std::string> output_of_credential_process(const RemoteOptions& options) {
  return output_of_credential_process(SystemSurroundings(), options.profile);
}

}  // namespace cframefs::frame
