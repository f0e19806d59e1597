#include "frame/base/library_versions.h"

#include <openssl/crypto.h>
#include <zlib.h>

namespace cframefs::frame {

std::vector<codec::LibraryVersion> library_versions() {
  return {{"zlib", zlibVersion()}, {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)}};
}

}  // namespace cframefs::frame
