#include "frame/remote/access/local_credentials.h"

#include <cerrno>
#include <utility>

#include "frame/base/utf8_sanitize.h"
#include "frame/remote/access/aws_profile.h"
#include "frame/remote/access/credential_answers.h"
#include "frame/remote/access/service_credentials.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::invalid;

FoundCredentials found_or_error(Result<Credentials> credentials) {
  if (!credentials) return Failure(std::move(credentials.error()));
  return std::optional<Credentials>(std::move(*credentials));
}

/// `value_of`: returns the value of a key of a profile.
template <class ValueOf>
FoundCredentials keys_of_profile(const ValueOf& value_of, const std::string& source) {
  auto key_id = value_of("aws_access_key_id");
  auto secret = value_of("aws_secret_access_key");
  if (!key_id && !secret) return std::nullopt;
  if (!key_id) return invalid(source + " has aws_secret_access_key but no aws_access_key_id");
  if (!secret) return invalid(source + " has aws_access_key_id but no aws_secret_access_key");
  Credentials credentials;
  credentials.key_id = std::move(*key_id);
  credentials.secret = std::move(*secret);
  credentials.session_token = value_of("aws_session_token").value_or("");
  return found_or_error(checked_credentials(std::move(credentials), source));
}

/// `line`: of the profile. `source`: its name for messages.
Result<std::string> output_of_line(const Surroundings& surroundings, const std::string& line,
                                   const std::string& source) {
  const auto command = split_command(line);
  if (!command) return Failure(command.error());
  if (command->empty()) return invalid(source + ": credential_process has no command");
  return surroundings.output_of(*command);
}

Result<Credentials> run_credential_process(const Surroundings& surroundings, const std::string& line,
                                           const std::string& source) {
  const auto output = output_of_line(surroundings, line, source);
  if (!output) return Failure(output.error());
  return credentials_of_json(*output, source + ": credential_process");
}

}  // namespace

FoundCredentials environment_credentials(const Surroundings& surroundings) {
  auto key_id = set_variable(surroundings, "AWS_ACCESS_KEY_ID");
  if (!key_id) return std::nullopt;
  auto secret = set_variable(surroundings, "AWS_SECRET_ACCESS_KEY");
  if (!secret) return invalid("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not");
  Credentials credentials;
  credentials.key_id = std::move(*key_id);
  credentials.secret = std::move(*secret);
  credentials.session_token = set_variable(surroundings, "AWS_SESSION_TOKEN").value_or("");
  if (const auto expiration = set_variable(surroundings, "AWS_CREDENTIAL_EXPIRATION")) {
    credentials.expires = parse_time(*expiration);
    if (!credentials.expires) return invalid("AWS_CREDENTIAL_EXPIRATION is no time of ISO 8601");
  }
  return found_or_error(checked_credentials(std::move(credentials), "environment"));
}

FoundCredentials profile_credentials(const Surroundings& surroundings, HttpTransport& transport,
                                     const CredentialChoice& choice, std::string& lacking) {
  const auto profile = AwsProfile::read(surroundings, choice.profile);
  if (!profile) return Failure(profile.error());
  const std::string source = "profile \"" + printable(profile->name()) + "\"";

  const auto role = profile->value("role_arn");
  if (role && (profile->value("source_profile") || profile->value("credential_source"))) {
    return codec::unsupported(source + " assumes a role by source_profile or credential_source; name a profile with " +
                              "credential_process = aws configure export-credentials --profile " +
                              printable(profile->name()));
  }
  if (const auto token_file = profile->value("web_identity_token_file"); role && token_file) {
    const WebIdentity identity{*role, *token_file, profile->value("role_session_name").value_or("")};
    return found_or_error(assume_role(surroundings, transport, identity, choice.region));
  }

  auto found =
      keys_of_profile([&](const char* key) { return profile->credentials_value(key); }, source + " of credentials");
  if (!found || *found) return found;
  if (const auto command = profile->value("credential_process")) {
    return found_or_error(run_credential_process(surroundings, *command, source));
  }
  found = keys_of_profile([&](const char* key) { return profile->value(key); }, source);
  if (!found || *found) return found;
  if (profile->value("sso_session") || profile->value("sso_start_url")) {
    return codec::unsupported(source + " signs in by SSO; name a profile with credential_process = " +
                              "aws configure export-credentials --profile " + printable(profile->name()));
  }
  lacking += source + " has no keys" + (profile->unread().empty() ? "" : " (" + profile->unread() + ")") + "; ";
  return std::nullopt;
}

Result<std::string> output_of_credential_process(const Surroundings& surroundings, const std::string& name) {
  const auto profile = AwsProfile::read(surroundings, name);
  if (!profile) return Failure(profile.error());
  const auto line = profile->value("credential_process");
  if (!line) return codec::io_error(ENOENT, "credential_process", "the profile no longer names one");
  return output_of_line(surroundings, *line, "profile \"" + printable(profile->name()) + "\"");
}

Result<std::vector<std::string>> split_command(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool is_in_word = false;
  char quote = '\0';
  for (std::size_t at = 0; at < command.size(); ++at) {
    const char c = command[at];
    if (quote == '\0' && (c == ' ' || c == '\t')) {
      if (is_in_word) words.push_back(std::exchange(word, {}));
      is_in_word = false;
      continue;
    }
    is_in_word = true;
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && at + 1 < command.size()) {
      const char next = command[++at];
      // Between double quotes a backslash stands for itself, except before these.
      if (quote == '"' && next != '"' && next != '\\') word += c;
      word += next;
    } else {
      word += c;
    }
  }
  if (quote != '\0') return invalid("credential_process has a quotation mark without a partner");
  if (is_in_word) words.push_back(std::move(word));
  return words;
}

}  // namespace cframefs::frame
