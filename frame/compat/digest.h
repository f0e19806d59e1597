// The digests that Bloscpack keeps of its chunks, computed by libraries.
//
// Thread safety: one thread per object. Errors: unsupported, if the system's policy forbids an algorithm.
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

/// nullopt: there is no such kind.
std::optional<DigestKind> digest_kind(std::uint8_t id);
std::size_t digest_size(DigestKind kind);
const char* digest_name(DigestKind kind);

class Digest {
 public:
  explicit Digest(DigestKind kind);
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(codec::ByteView bytes);
  /// Of all that was added, as it is stored. Nothing can be added afterwards.
  codec::Result<std::vector<std::uint8_t>> finish();

 private:
  struct Hash;

  const DigestKind kind_;
  std::uint32_t sum_ = 0;       // adler32, crc32
  std::unique_ptr<Hash> hash_;  // the others; null once it has failed
};

}  // namespace cframefs::frame
