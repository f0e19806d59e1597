// Certificates are parsed once for all connections, and again when those of the system have changed.
#include "frame/remote/http/trust_store.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "tests/support/temp_dir.h"

namespace cframefs::test {
namespace {

using frame::TrustStore;

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(BIO* text) const { BIO_free(text); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, Free>;

/// Returns a certificate in PEM format that has signed itself.
std::string certificate_of(const std::string& name) {
  const std::unique_ptr<EVP_PKEY, Free> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  const std::unique_ptr<X509, Free> certificate(X509_new());
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const auto* const text = reinterpret_cast<const unsigned char*>(name.c_str());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, text, -1, -1, 0);
  X509_set_issuer_name(certificate.get(), subject);
  EXPECT_GT(X509_sign(certificate.get(), key.get(), nullptr), 0);
  const std::unique_ptr<BIO, Free> output(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_X509(output.get(), certificate.get()), 1);
  char* bytes = nullptr;
  const long length = BIO_get_mem_data(output.get(), &bytes);
  return {bytes, static_cast<std::size_t>(length)};
}

Context new_context() {
  return Context(SSL_CTX_new(TLS_client_method()));
}

X509_STORE* store_of(const Context& context) {
  return SSL_CTX_get_cert_store(context.get());
}

int count_of(const Context& context) {
  return sk_X509_OBJECT_num(X509_STORE_get0_objects(store_of(context)));
}

void replace(const std::string& path, const std::string& content) {
  std::ofstream(path + ".new") << content;
  std::filesystem::rename(path + ".new", path);
}

TEST(TrustStore, ConnectionsShareWhatWasParsedOnce) {
  TrustStore trust(certificate_of("one") + "a remark\n" + certificate_of("two"));
  const Context first = new_context();
  const Context second = new_context();
  ASSERT_TRUE(trust.use_in(first.get()));
  ASSERT_TRUE(trust.use_in(second.get()));
  EXPECT_EQ(store_of(first), store_of(second));
  EXPECT_EQ(count_of(first), 2);
}

TEST(TrustStore, ATextWithoutACertificateIsRefused) {
  for (const std::string& text :
       {std::string("no certificate"), std::string(1000, '\0'), std::string("-----BEGIN CERTIFICATE-----\nAAAA\n")}) {
    TrustStore trust(text);
    const Context context = new_context();
    const auto used = trust.use_in(context.get());
    ASSERT_FALSE(used);
    EXPECT_EQ(used.error().kind, codec::ErrorKind::invalid);
    EXPECT_NE(used.error().reason.find("ca_file"), std::string::npos);
  }
}

TEST(TrustStore, CertificatesOfTheSystemAreReadAgainWhenTheyHaveChanged) {
  const TempDir directory;
  const std::string file = directory.path() / "certificates.crt";
  const std::string one = certificate_of("one");
  replace(file, one);
  TrustStore trust(TrustStore::Places{file, ""});
  const Context first = new_context();
  const Context second = new_context();
  ASSERT_TRUE(trust.use_in(first.get()));
  ASSERT_TRUE(trust.use_in(second.get()));
  EXPECT_EQ(store_of(first), store_of(second));
  EXPECT_EQ(count_of(first), 1);

  replace(file, one + certificate_of("two"));
  ASSERT_TRUE(trust.use_in(second.get()));
  EXPECT_NE(store_of(first), store_of(second));
  EXPECT_EQ(count_of(second), 2);
  EXPECT_EQ(count_of(first), 1);  // of a connection from before
}

TEST(TrustStore, WhileTheCertificatesOfTheSystemAreMissingThoseFromBeforeCount) {
  const TempDir directory;
  const std::string file = directory.path() / "certificates.crt";
  TrustStore trust(TrustStore::Places{file, ""});
  const Context context = new_context();
  const auto missing = trust.use_in(context.get());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().sys, EPROTO);
  replace(file, certificate_of("one"));
  ASSERT_TRUE(trust.use_in(context.get()));
  std::filesystem::remove(file);
  const Context other = new_context();
  ASSERT_TRUE(trust.use_in(other.get()));
  EXPECT_EQ(store_of(context), store_of(other));
  // The next file counts again.
  replace(file, certificate_of("one") + certificate_of("two"));
  ASSERT_TRUE(trust.use_in(other.get()));
  EXPECT_EQ(count_of(other), 2);
}

TEST(TrustStore, ADirectoryAloneIsEnough) {
  const TempDir directory;
  TrustStore trust(TrustStore::Places{"", directory.path()});
  const Context first = new_context();
  const Context second = new_context();
  ASSERT_TRUE(trust.use_in(first.get()));
  ASSERT_TRUE(trust.use_in(second.get()));
  EXPECT_EQ(store_of(first), store_of(second));
}

// Debian's libcurl is built with the OpenSSL that this program uses. With another one each connection parses all
// certificates.
TEST(TrustStore, LibcurlOfThisSystemTakesAStore) {
  EXPECT_TRUE(TrustStore::is_usable());
  const TrustStore::Places places = TrustStore::of_system();
  EXPECT_FALSE(places.file.empty() && places.directory.empty());
}

}  // namespace
}  // namespace cframefs::test
