// Names of filters: id to name, and name to id.
#include "codec/format/filter_registry.h"

#include <gtest/gtest.h>

namespace cframefs {
namespace {

using codec::filters_named;
using codec::FilterSlots;

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
