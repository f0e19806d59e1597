#include "frame/base/library_versions.h"

#include <fmt/core.h>
#include <openssl/crypto.h>
#include <xxhash.h>
#include <zlib.h>

namespace cframefs::frame {

namespace {

std::string xxhash_version() {
  const unsigned number = XXH_versionNumber();
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace

std::vector<codec::LibraryVersion> library_versions() {
  return {{"zlib", zlibVersion()}, {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)}, {"xxHash", xxhash_version()}};
}

}  // namespace cframefs::frame
