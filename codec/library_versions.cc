#include "codec/library_versions.h"

#include <fmt/core.h>
#include <libdeflate.h>
#include <lz4.h>
#include <snappy.h>
#include <zstd.h>
#ifndef CFRAMEFS_WITHOUT_ZFP
#include <zfp.h>
#endif

namespace cframefs::codec {
namespace {

#ifdef CFRAMEFS_WITHOUT_ZFP
constexpr const char* kZfp = "none";
#else
constexpr const char* kZfp = ZFP_VERSION_STRING;
#endif

}  // namespace

std::vector<LibraryVersion> library_versions() {
  return {{"zstd", ZSTD_versionString()},
          {"lz4", LZ4_versionString()},
          {"libdeflate", LIBDEFLATE_VERSION_STRING},
          {"snappy", fmt::format("{}.{}.{}", SNAPPY_MAJOR, SNAPPY_MINOR, SNAPPY_PATCHLEVEL)},
          {"zfp", kZfp}};
}

}  // namespace cframefs::codec
