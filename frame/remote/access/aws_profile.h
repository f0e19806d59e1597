// A profile of the AWS tools: the values of its sections in ~/.aws/credentials and ~/.aws/config
// (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE).
//
// Thread safety: a value, and functions. Errors: invalid, with the name, if a profile that was named is in neither
// file; io and corruption with the path of the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frame/remote/access/ini_file.h"
#include "frame/remote/access/surroundings.h"

namespace cframefs::frame {

/// Returns the value of a variable of the environment; nullopt if it is not set or empty, as the AWS tools see it.
std::optional<std::string> set_variable(const Surroundings& surroundings, const std::string& name);

/// Returns the paths of both files. A file that cannot be named, because there is no home directory, is left out.
std::vector<std::string> aws_files(const Surroundings& surroundings);

/// Returns AWS_ENDPOINT_URL_<service> or else AWS_ENDPOINT_URL; `service`: in upper case.
std::optional<std::string> endpoint_variable(const Surroundings& surroundings, const std::string& service);
/// Returns true if the environment asks the AWS tools to ignore endpoints of the environment and of profiles.
bool ignores_configured_endpoints(const Surroundings& surroundings);

/// Returns the domain of the services of AWS in a region: "amazonaws.com", in China "amazonaws.com.cn".
std::string aws_domain(const std::string& region);
/// Refuses text that cannot stand in the host name of a service.
codec::Result<void> check_region(const std::string& region);

class AwsProfile {
 public:
  /// Reads the profile of the name; if that is empty, of AWS_PROFILE, AWS_DEFAULT_PROFILE, else "default". The last one
  /// may be missing, and its files may be unreadable for this user. A file may be missing.
  static codec::Result<AwsProfile> read(const Surroundings& surroundings, const std::string& name);

  const std::string& name() const { return name_; }
  /// Returns why a file was left out, for messages; empty if none was.
  const std::string& unread() const { return unread_; }
  /// Returns a value that is not empty, of ~/.aws/credentials or else of ~/.aws/config. `key`: in lower case.
  std::optional<std::string> value(std::string_view key) const;
  /// As value(), only of ~/.aws/credentials.
  std::optional<std::string> credentials_value(std::string_view key) const;

 private:
  std::string name_;
  std::string unread_;
  IniFile::Section credentials_;
  IniFile::Section config_;
};

}  // namespace cframefs::frame
