// The certificates that vouch for servers, parsed once for all connections.
//
// Left to itself libcurl parses them for each connection, in the thread that carries all requests: 60 ms of processor
// time for the 140 certificates of a system, so that 16 connections begin a second later.
//
// Thread safety: one thread at a time. Ownership: owns the store; each connection shares it.
// Errors: invalid if the user's text holds no certificate; io EPROTO if the system's certificates cannot be read.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <openssl/types.h>

#include "codec/base/error.h"
#include "frame/io/file_version.h"

namespace cframefs::frame {

class TrustStore {
 public:
  /// Where a system has its certificates. An empty path: it has none there.
  struct Places {
    std::string file;       // all in PEM format
    std::string directory;  // one in each file, found by the digest of its name
  };

  /// The certificates of a text in PEM format.
  explicit TrustStore(std::string text);
  explicit TrustStore(Places places);

  /// Returns where libcurl looks for the system's certificates.
  static Places of_system();
  /// Returns whether libcurl verifies by the OpenSSL of this process, so that it can be given a store.
  static bool is_usable();

  /// Makes connections of the context be verified by the certificates, which are read again if the system's have
  /// changed.
  codec::Result<void> use_in(SSL_CTX* context);

 private:
  struct FreeStore {
    void operator()(X509_STORE* store) const;
  };
  using Store = std::unique_ptr<X509_STORE, FreeStore>;

  using Versions = std::pair<FileVersion, FileVersion>;  // of file and directory

  static Store empty_store();
  codec::Result<Store> parse_text() const;
  codec::Result<Store> load_places() const;

  const std::string text_;
  const Places places_;
  Store store_;  // null until the first use
  Versions loaded_;
};

}  // namespace cframefs::frame
