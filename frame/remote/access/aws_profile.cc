#include "frame/remote/access/aws_profile.h"

#include <algorithm>
#include <cerrno>

#include <strings.h>

#include "frame/base/utf8_sanitize.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::Result;

constexpr const char* kCredentialsVariable = "AWS_SHARED_CREDENTIALS_FILE";
constexpr const char* kConfigVariable = "AWS_CONFIG_FILE";

bool is_true(const std::optional<std::string>& value) {
  return value && ::strcasecmp(value->c_str(), "true") == 0;
}

/// Returns the file of the variable or else of the home directory; empty if neither exists.
std::string aws_file_path(const Surroundings& surroundings, const std::string& variable, const std::string& name) {
  if (auto path = set_variable(surroundings, variable)) {
    if (path->rfind("~/", 0) == 0) return surroundings.home() + path->substr(1);
    return std::move(*path);
  }
  const std::string home = surroundings.home();
  return home.empty() ? "" : home + "/.aws/" + name;
}

/// `unread`: if it is not null, a file that this user may not read is left out, and the reason is stored there.
Result<IniFile> read_aws_file(const Surroundings& surroundings, const std::string& path, std::string* unread) {
  if (path.empty()) return IniFile();
  const auto text = surroundings.file(path);
  if (!text) {
    if (codec::is_missing(text.error())) return IniFile();
    if (text.error().sys != EACCES || unread == nullptr) return Failure(text.error());
    *unread = codec::describe(text.error());
    return IniFile();
  }
  auto parsed = IniFile::parse(*text);
  if (!parsed && parsed.error().path.empty()) parsed.error().path = path;
  return parsed;
}

IniFile::Section section_or_empty(const IniFile::Section* section) {
  return section == nullptr ? IniFile::Section() : *section;
}

std::optional<std::string> find_value(const IniFile::Section& section, std::string_view key) {
  const auto found = section.find(key);
  if (found == section.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

}  // namespace

std::vector<std::string> aws_files(const Surroundings& surroundings) {
  std::vector<std::string> files = {aws_file_path(surroundings, kCredentialsVariable, "credentials"),
                                    aws_file_path(surroundings, kConfigVariable, "config")};
  files.erase(std::remove(files.begin(), files.end(), std::string()), files.end());
  return files;
}

std::optional<std::string> set_variable(const Surroundings& surroundings, const std::string& name) {
  auto value = surroundings.variable(name);
  if (value && value->empty()) value.reset();
  return value;
}

std::optional<std::string> endpoint_variable(const Surroundings& surroundings, const std::string& service) {
  if (ignores_configured_endpoints(surroundings)) return std::nullopt;
  auto endpoint = set_variable(surroundings, "AWS_ENDPOINT_URL_" + service);
  return endpoint ? endpoint : set_variable(surroundings, "AWS_ENDPOINT_URL");
}

bool ignores_configured_endpoints(const Surroundings& surroundings) {
  return is_true(set_variable(surroundings, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"));
}

std::string aws_domain(const std::string& region) {
  return region.rfind("cn-", 0) == 0 ? "amazonaws.com.cn" : "amazonaws.com";
}

codec::Result<void> check_region(const std::string& region) {
  constexpr std::size_t kMostBytes = 63;
  const bool is_valid = std::all_of(region.begin(), region.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (is_valid && !region.empty() && region.size() <= kMostBytes && region.front() != '-' && region.back() != '-') {
    return {};
  }
  return codec::invalid("the region \"" + printable(region.substr(0, 80)) +
                        "\" is not 1 to 63 letters, digits and '-', such as us-east-1");
}

Result<AwsProfile> AwsProfile::read(const Surroundings& surroundings, const std::string& name) {
  AwsProfile profile;
  std::optional<std::string> named;
  if (!name.empty()) named = name;
  if (!named) named = set_variable(surroundings, "AWS_PROFILE");
  if (!named) named = set_variable(surroundings, "AWS_DEFAULT_PROFILE");
  profile.name_ = named.value_or("default");

  const std::string credentials_path = aws_file_path(surroundings, kCredentialsVariable, "credentials");
  const std::string config_path = aws_file_path(surroundings, kConfigVariable, "config");
  std::string* unread = named ? nullptr : &profile.unread_;
  const auto credentials = read_aws_file(surroundings, credentials_path, unread);
  if (!credentials) return Failure(credentials.error());
  const auto config = read_aws_file(surroundings, config_path, unread);
  if (!config) return Failure(config.error());

  const IniFile::Section* in_config = config->section("profile " + profile.name_);
  if (in_config == nullptr && profile.name_ == "default") in_config = config->section("default");
  const IniFile::Section* in_credentials = credentials->section(profile.name_);
  if (named && in_config == nullptr && in_credentials == nullptr) {
    return codec::invalid("the profile \"" + printable(profile.name_) + "\" is neither in " +
                          printable(credentials_path) + " nor in " + printable(config_path));
  }
  profile.config_ = section_or_empty(in_config);
  profile.credentials_ = section_or_empty(in_credentials);
  return profile;
}

std::optional<std::string> AwsProfile::value(std::string_view key) const {
  auto found = credentials_value(key);
  return found ? found : find_value(config_, key);
}

std::optional<std::string> AwsProfile::credentials_value(std::string_view key) const {
  return find_value(credentials_, key);
}

}  // namespace cframefs::frame
