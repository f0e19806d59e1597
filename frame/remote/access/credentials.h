// Credentials of AWS and what finds them, in the order of the AWS tools: the environment, a web identity (STS), a
// profile of ~/.aws, the endpoint of a container, the metadata of an instance.
//
// A source that is not set up is passed over. One that is set up and fails ends the search, because the next one would
// give the rights of another identity.
//
// Thread safety: CredentialChain is internally synchronised; one thread fetches, and others wait only if they have
// nothing valid. Ownership: borrows the surroundings and the transport. Errors: io EACCES if there are no credentials,
// with what each source lacks; invalid for a named profile that is missing; io, corruption or unsupported if a source
// fails. No message holds a secret.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codec/base/mutex.h"
#include "frame/remote/access/surroundings.h"
#include "frame/remote/http/http.h"

namespace cframefs::frame {

struct Credentials {
  std::string key_id;
  std::string secret;
  std::string session_token;            // empty: none
  std::optional<std::int64_t> expires;  // seconds since 1970
};

/// What one source gives: nullopt if it is not set up.
using FoundCredentials = Result<std::optional<Credentials>>;

struct CredentialChoice {
  std::string profile;               // of ~/.aws, which then goes before the environment; empty: AWS_PROFILE, "default"
  std::string region = "us-east-1";  // of the STS service
};

class CredentialChain {
 public:
  CredentialChain(const Surroundings& surroundings, HttpTransport& transport, CredentialChoice choice);
  CredentialChain(const CredentialChain&) = delete;
  CredentialChain& operator=(const CredentialChain&) = delete;

  /// Returns valid credentials. Fetches them if there are none, or if they expire within 5 minutes; while that fails,
  /// the old ones are used until they expire. A fetch takes some seconds at most, or a minute if it runs a command.
  Result<Credentials> get();
  /// Drops the credentials, because a server calls them expired; unless they were fetched a moment ago, so that many
  /// refused requests fetch once.
  void drop_refused();

 private:
  class Fetching;

  Result<Credentials> fetch() const;
  /// Waits while another thread fetches what this one needs. Returns what get() returns, or nullopt if the calling
  /// thread must fetch.
  std::optional<Result<Credentials>> wait_for_known() REQUIRES(mutex_);
  /// Returns what get() returns, if it need not fetch.
  std::optional<Result<Credentials>> known(std::int64_t now) const REQUIRES(mutex_);
  void note_fetched(Result<Credentials> fetched, std::int64_t now) REQUIRES(mutex_);

  const Surroundings& surroundings_;
  HttpTransport& transport_;
  const CredentialChoice choice_;

  codec::Mutex mutex_;  // not held while fetching
  codec::CondVar fetched_;
  bool is_fetching_ GUARDED_BY(mutex_) = false;
  std::optional<Credentials> current_ GUARDED_BY(mutex_);
  std::int64_t fetched_at_ GUARDED_BY(mutex_) = 0;
  std::int64_t renew_at_ GUARDED_BY(mutex_) = 0;            // of current_, if that expires
  std::optional<codec::Error> failure_ GUARDED_BY(mutex_);  // of the last fetch
  std::int64_t failed_at_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::frame
