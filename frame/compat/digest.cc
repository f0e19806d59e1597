#include "frame/compat/digest.h"

#include <string>

#include <libdeflate.h>
#include <openssl/evp.h>

namespace cframefs::frame {

namespace {

const EVP_MD* algorithm(DigestKind kind) {
  switch (kind) {
    case DigestKind::md5:
      return EVP_md5();
    case DigestKind::sha1:
      return EVP_sha1();
    case DigestKind::sha224:
      return EVP_sha224();
    case DigestKind::sha256:
      return EVP_sha256();
    case DigestKind::sha384:
      return EVP_sha384();
    case DigestKind::sha512:
      return EVP_sha512();
    case DigestKind::none:
    case DigestKind::adler32:
    case DigestKind::crc32:
      break;
  }
  return nullptr;
}

}  // namespace

struct Digest::Hash {
  struct Free {
    void operator()(EVP_MD_CTX* made) const { EVP_MD_CTX_free(made); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

std::optional<DigestKind> digest_kind(std::uint8_t id) {
  if (id > static_cast<std::uint8_t>(DigestKind::sha512)) return std::nullopt;
  return static_cast<DigestKind>(id);
}

std::size_t digest_size(DigestKind kind) {
  switch (kind) {
    case DigestKind::none:
      return 0;
    case DigestKind::adler32:
    case DigestKind::crc32:
      return 4;
    case DigestKind::md5:
      return 16;
    case DigestKind::sha1:
      return 20;
    case DigestKind::sha224:
      return 28;
    case DigestKind::sha256:
      return 32;
    case DigestKind::sha384:
      return 48;
    case DigestKind::sha512:
      return 64;
  }
  return 0;
}

const char* digest_name(DigestKind kind) {
  static constexpr const char* names[] = {"none",   "adler32", "crc32",  "md5",   "sha1",
                                          "sha224", "sha256",  "sha384", "sha512"};
  return names[static_cast<std::size_t>(kind)];
}

Digest::Digest(DigestKind kind) : kind_(kind) {
  if (kind == DigestKind::adler32) sum_ = libdeflate_adler32(0, nullptr, 0);
  if (const EVP_MD* known = algorithm(kind)) {
    hash_ = std::make_unique<Hash>();
    if (!hash_->context || EVP_DigestInit_ex(hash_->context.get(), known, nullptr) != 1) hash_.reset();
  }
}

Digest::~Digest() = default;

void Digest::add(codec::ByteView bytes) {
  if (bytes.empty()) return;
  if (kind_ == DigestKind::adler32) sum_ = libdeflate_adler32(sum_, bytes.data(), bytes.size());
  if (kind_ == DigestKind::crc32) sum_ = libdeflate_crc32(sum_, bytes.data(), bytes.size());
  if (hash_ && EVP_DigestUpdate(hash_->context.get(), bytes.data(), bytes.size()) != 1) hash_.reset();
}

codec::Result<std::vector<std::uint8_t>> Digest::finish() {
  std::vector<std::uint8_t> result(digest_size(kind_));
  if (kind_ == DigestKind::none) return result;
  if (kind_ == DigestKind::adler32 || kind_ == DigestKind::crc32) {
    codec::store_le(result.data(), sum_);
    return result;
  }
  if (!hash_ || EVP_DigestFinal_ex(hash_->context.get(), result.data(), nullptr) != 1) {
    return codec::unsupported(std::string("digest ") + digest_name(kind_) + " is not available on this system");
  }
  return result;
}

}  // namespace cframefs::frame
