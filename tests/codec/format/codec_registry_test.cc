// Names of codecs and filters: id to name, and name to id.
#include "codec/format/codec_registry.h"

#include <gtest/gtest.h>

namespace cframefs {
namespace {

using codec::filters_named;
using codec::FilterSlots;
using codec::find_codec;

TEST(Names, OfCodecs) {
  for (const std::uint8_t compcode : {0, 1, 2, 4, 5}) {
    const auto named = find_codec(codec::codec_name(compcode));
    ASSERT_TRUE(named);
    EXPECT_EQ(*named, compcode);
  }
  EXPECT_EQ(codec::codec_name(5), "zstd");
  EXPECT_EQ(codec::codec_name(36), "openhtj2k");
  EXPECT_EQ(codec::codec_name(170), "codec 170");
  // Codecs that cannot be written are not accepted.
  for (const char* name : {"snappy", "ndlz", "zfp_acc", "", "ZSTD", "zstd ", "codec 5"})
    EXPECT_FALSE(find_codec(name)) << name;
  EXPECT_EQ(find_codec("x").error().reason, "must be one of blosclz, lz4, lz4hc, zlib, zstd");
}

TEST(Names, OfPipelines) {
  EXPECT_EQ(*filters_named("none"), FilterSlots{});
  EXPECT_EQ(*filters_named("shuffle"), (FilterSlots{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(*filters_named("delta+shuffle"), (FilterSlots{0, 0, 0, 0, 3, 1}));
  EXPECT_EQ(*filters_named("delta+bitshuffle+bytedelta"), (FilterSlots{0, 0, 0, 3, 2, 35}));
  EXPECT_EQ(*filters_named("delta+shuffle+shuffle+shuffle+shuffle+bitshuffle"), (FilterSlots{3, 1, 1, 1, 1, 2}));
  for (const char* names :
       {"", "+", "shuffle+", "+shuffle", "none+shuffle", "shuffle+none", "shuffel", "trunc_prec", "int_trunc", "ndmean",
        "delta+shuffle+shuffle+shuffle+shuffle+shuffle+shuffle", "delta+delta", "delta+shuffle+delta"})
    EXPECT_FALSE(filters_named(names)) << names;
}

}  // namespace
}  // namespace cframefs
