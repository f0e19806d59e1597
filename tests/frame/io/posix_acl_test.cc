#include "frame/io/posix_acl.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codec/base/bytes.h"

namespace cframefs::frame {
namespace {

struct Entry {
  std::uint16_t tag = 0;
  std::uint16_t permissions = 0;
  std::uint32_t id = 0xffffffff;
};

/// Returns a list in the form that setfacl(1) stores.
std::string acl_of(const std::vector<Entry>& entries) {
  std::vector<std::uint8_t> value(4 + entries.size() * 8);
  codec::store_le(value.data(), std::uint32_t{2});
  for (std::size_t i = 0; i < entries.size(); ++i) {
    codec::store_le(&value[4 + i * 8], entries[i].tag);
    codec::store_le(&value[6 + i * 8], entries[i].permissions);
    codec::store_le(&value[8 + i * 8], entries[i].id);
  }
  return {value.begin(), value.end()};
}

constexpr std::uint16_t kOwner = 1, kNamedUser = 2, kGroup = 4, kNamedGroup = 8, kMask = 16, kOther = 32;

TEST(PosixAcl, TheMaskBoundsAllButOwnerAndOthers) {
  const AclBounds bounds = bounds_of(
      acl_of({{kOwner, 6}, {kNamedUser, 7, 1000}, {kGroup, 7}, {kNamedGroup, 5, 1000}, {kMask, 4}, {kOther, 4}}));
  EXPECT_EQ(bounds.most, 6U);
  EXPECT_EQ(bounds.least, 4U);
}

TEST(PosixAcl, AUserWithoutPermissionsMakesLeastZero) {
  const AclBounds bounds = bounds_of(acl_of({{kOwner, 7}, {kNamedUser, 0, 1}, {kGroup, 7}, {kMask, 7}, {kOther, 5}}));
  EXPECT_EQ(bounds.most, 7U);
  EXPECT_EQ(bounds.least, 0U);
}

TEST(PosixAcl, EveryEntryIsMapped) {
  const std::string mapped = with_permissions(
      acl_of({{kOwner, 6}, {kNamedUser, 2, 7}, {kGroup, 0}, {kMask, 4}, {kOther, 1}}), enter_if_readable);
  EXPECT_EQ(mapped, acl_of({{kOwner, 5}, {kNamedUser, 0, 7}, {kGroup, 0}, {kMask, 5}, {kOther, 0}}));
}

TEST(PosixAcl, AnotherLayoutIsUnchangedAndGrantsNothing) {
  std::string cut = acl_of({{kOwner, 7}, {kGroup, 7}, {kOther, 7}});
  cut.pop_back();
  std::string of_another_version = acl_of({{kOwner, 7}, {kGroup, 7}, {kOther, 7}});
  of_another_version[0] = 3;
  for (const std::string& value : {cut, of_another_version, std::string(), std::string("\2\0\0", 3)}) {
    EXPECT_EQ(with_permissions(value, enter_if_readable), value);
    EXPECT_EQ(bounds_of(value).most, 0U);
    EXPECT_EQ(bounds_of(value).least, 0U);
  }
}

}  // namespace
}  // namespace cframefs::frame
