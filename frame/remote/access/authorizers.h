// The ways to prove to a server that a request may be answered: a signature for a bucket, a user and password, a token.
//
// Each authorizes only requests for one origin (scheme, host and port), so that neither a redirect nor an address in a
// listing takes a secret to another server. Users, passwords and tokens are sent over https, and over plain http only
// within this machine. A signature is sent over plain http, too, which shows requests, data and the session token, but
// no secret: a service without TLS has no better way.
//
// Thread safety: internally synchronised. Ownership: borrow the surroundings and the transport. Errors: those of
// Authorizer; io EACCES for a secret that plain http would show, and for a token file that others may read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "codec/base/mutex.h"
#include "frame/remote/access/credentials.h"
#include "frame/remote/access/surroundings.h"
#include "frame/remote/http/address.h"
#include "frame/remote/http/authorizer.h"

namespace cframefs::frame {

/// Signs with the credentials of the AWS tools, with the time of each call. Signed requests follow no redirects,
/// because the host is signed.
class S3Authorizer final : public Authorizer {
 public:
  /// `origin`: S3Service::origin(). `choice`: its region is that of the service.
  S3Authorizer(const Surroundings& surroundings, HttpTransport& transport, std::string origin, CredentialChoice choice);

  Result<void> authorize(HttpRequest& request) override;
  bool may_renew(const HttpAnswer& answer) override;

 private:
  const Surroundings& surroundings_;
  const std::string origin_;
  const std::string region_;
  CredentialChain chain_;
};

/// Sends a user and a password.
class BasicAuthorizer final : public Authorizer {
 public:
  static Result<std::unique_ptr<Authorizer>> make(const Address& address, const std::string& user,
                                                  const std::string& password);

  Result<void> authorize(HttpRequest& request) override;
  bool may_renew(const HttpAnswer&) override { return false; }

 private:
  BasicAuthorizer(std::string origin, std::string header);

  const std::string origin_;
  const std::string header_;
};

/// Sends the bearer token of a file. A server that refuses it makes the file be read again.
class TokenAuthorizer final : public Authorizer {
 public:
  static Result<std::unique_ptr<Authorizer>> make(const Address& address, const std::string& file,
                                                  const Surroundings& surroundings);

  Result<void> authorize(HttpRequest& request) override;
  bool may_renew(const HttpAnswer& answer) override;

 private:
  TokenAuthorizer(std::string origin, std::string file, const Surroundings& surroundings, std::string token);

  const std::string origin_;
  const std::string file_;
  const Surroundings& surroundings_;
  codec::Mutex mutex_;
  std::string token_ GUARDED_BY(mutex_);
  std::optional<std::int64_t> changed_at_ GUARDED_BY(mutex_);  // seconds since 1970
};

/// Returns what authorizes requests for an address of a web server: the token file if one is named, else the user of
/// the address, else the entry of the host in ~/.netrc (or the file that NETRC names), else nullptr.
Result<std::unique_ptr<Authorizer>> web_authorizer(const Address& address, const std::string& token_file,
                                                   const Surroundings& surroundings);

}  // namespace cframefs::frame
