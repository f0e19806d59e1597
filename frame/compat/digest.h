// The digests of Bloscpack chunks, computed by libdeflate and OpenSSL.
//
// Thread safety: one thread per object. Errors: unsupported if the crypto policy of the system forbids an algorithm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::frame {

/// The values are those of the format (bloscpack.md section 3).
enum class DigestKind : std::uint8_t { none, adler32, crc32, md5, sha1, sha224, sha256, sha384, sha512 };

/// Returns nullopt for an unknown id.
std::optional<DigestKind> digest_kind(std::uint8_t id);
/// Returns the length of a digest in bytes.
std::size_t digest_size(DigestKind kind);
const char* digest_name(DigestKind kind);

class Digest {
 public:
  explicit Digest(DigestKind kind);
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(codec::ByteView bytes);
  /// Returns the digest of all added bytes in its stored form. Call it once, last.
  codec::Result<std::vector<std::uint8_t>> finish();

 private:
  struct Hash;

  const DigestKind kind_;
  std::uint32_t sum_ = 0;       // adler32, crc32
  std::unique_ptr<Hash> hash_;  // other kinds; null after a failure
};

}  // namespace cframefs::frame
