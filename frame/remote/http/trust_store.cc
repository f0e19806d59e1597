#include "frame/remote/http/trust_store.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <utility>

#include <curl/curl.h>
#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include "frame/io/system_version.h"

namespace cframefs::frame {
namespace {

std::string text_or_empty(const char* text) {
  return text != nullptr ? text : "";
}

const char* path_or_null(const std::string& path) {
  return path.empty() ? nullptr : path.c_str();
}

/// Returns the version of a path; that of no file if nothing is there.
FileVersion version_at(const std::string& path) {
  struct stat status {};
  return !path.empty() && stat(path.c_str(), &status) == 0 ? version_of(status) : FileVersion();
}

}  // namespace

void TrustStore::FreeStore::operator()(X509_STORE* store) const {
  X509_STORE_free(store);
}

TrustStore::TrustStore(std::string text) : text_(std::move(text)) {}

TrustStore::TrustStore(Places places) : places_(std::move(places)) {}

TrustStore::Places TrustStore::of_system() {
  const curl_version_info_data* const curl = curl_version_info(CURLVERSION_NOW);
  return {text_or_empty(curl->cainfo), text_or_empty(curl->capath)};
}

bool TrustStore::is_usable() {
  const curl_version_info_data* const curl = curl_version_info(CURLVERSION_NOW);
  return text_or_empty(curl->ssl_version) == fmt::format("OpenSSL/{}", OpenSSL_version(OPENSSL_VERSION_STRING));
}

TrustStore::Store TrustStore::empty_store() {
  Store store(X509_STORE_new());
  // As libcurl: a certificate that the user names is trusted also if another one has signed it.
  if (store) X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  return store;
}

codec::Result<TrustStore::Store> TrustStore::parse_text() const {
  struct FreeEntries {
    void operator()(STACK_OF(X509_INFO) * entries) const { sk_X509_INFO_pop_free(entries, X509_INFO_free); }
  };
  Store store = empty_store();
  const std::unique_ptr<BIO, decltype(&BIO_free)> input(
      BIO_new_mem_buf(text_.data(), static_cast<int>(std::min<std::size_t>(text_.size(), INT_MAX))), BIO_free);
  const std::unique_ptr<STACK_OF(X509_INFO), FreeEntries> entries(
      input ? PEM_X509_INFO_read_bio(input.get(), nullptr, nullptr, nullptr) : nullptr);
  int certificates = 0;
  for (int i = 0; store && entries && i < sk_X509_INFO_num(entries.get()); ++i) {
    X509* const certificate = sk_X509_INFO_value(entries.get(), i)->x509;
    if (certificate != nullptr && X509_STORE_add_cert(store.get(), certificate) == 1) ++certificates;
  }
  if (certificates == 0) return codec::invalid("ca_file holds no certificate in PEM format");
  return store;
}

codec::Result<TrustStore::Store> TrustStore::load_places() const {
  Store store = empty_store();
  if (store && X509_STORE_load_locations(store.get(), path_or_null(places_.file), path_or_null(places_.directory)) == 1)
    return store;
  return codec::io_error(EPROTO, "read " + (places_.file.empty() ? places_.directory : places_.file),
                         "the system's certificates are missing or damaged (package ca-certificates)");
}

codec::Result<void> TrustStore::use_in(SSL_CTX* context) {
  const Versions now{version_at(places_.file), version_at(places_.directory)};
  if (!store_ || loaded_ != now) {
    auto read = text_.empty() ? load_places() : parse_text();
    ERR_clear_error();  // libcurl takes what is left there as its own
    // While the system's are being replaced, those from before are good.
    if (!read && !store_) return codec::Failure(read.error());
    if (read) {
      store_ = std::move(*read);
      loaded_ = now;
    }
  }
  SSL_CTX_set1_cert_store(context, store_.get());
  return {};
}

}  // namespace cframefs::frame
