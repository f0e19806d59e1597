// The parameters of frames that are created in the mount.
#include "fs/write/frame_defaults.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Little-endian numbers of 4 bytes that grow slowly.
Bytes numbers(std::size_t count) {
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t value = i * 3 + i % 2;
    for (unsigned shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<std::uint8_t>(value >> shift & 0xffU));
  }
  return bytes;
}

std::int32_t typesize_of(const Bytes& first, const NewFrameOptions& options = {}) {
  return auto_params(options, first).encode.typesize;
}

TEST(FrameDefaults, TheTypesizeIsTriedForDataOfMoreThanADiskBlock) {
  EXPECT_EQ(typesize_of(numbers(2000)), 4);
  EXPECT_EQ(typesize_of(numbers(900)), 1);
  EXPECT_EQ(typesize_of({}), 1);
}

TEST(FrameDefaults, ASmallFileHasTheTypesizeThatItDeclares) {
  const std::string head = "{'descr': '<f8', 'fortran_order': False, 'shape': (10,), }";
  Bytes npy{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
  npy.insert(npy.end(), head.begin(), head.end());
  npy.resize(127, ' ');
  npy.push_back('\n');
  npy.resize(128 + 80, 7);
  EXPECT_EQ(typesize_of(npy), 8);
  NewFrameOptions options;
  options.typesize = 2;
  EXPECT_EQ(typesize_of(npy, options), 2);
}

}  // namespace
}  // namespace cframefs::fs
