#include "frame/io/posix_acl.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/base/bytes.h"

namespace cframefs::frame {
namespace {

constexpr std::uint32_t kAclVersion = 2;
constexpr std::size_t kHeaderSize = 4;
constexpr std::size_t kEntrySize = 8;
constexpr std::size_t kPermissionsAt = 2;
// Tags.
constexpr unsigned kNamedUser = 0x02;
constexpr unsigned kOwningGroup = 0x04;
constexpr unsigned kNamedGroup = 0x08;
constexpr unsigned kMask = 0x10;

bool is_acl(codec::ByteView value) {
  return value.size() >= kHeaderSize && (value.size() - kHeaderSize) % kEntrySize == 0 &&
         codec::load_le<std::uint32_t>(value.data()) == kAclVersion;
}

/// Calls `look` with tag and permissions of each entry, and stores the permissions that it returns.
template <class Look>
void for_each_entry(std::vector<std::uint8_t>& value, Look look) {
  for (std::size_t at = kHeaderSize; at + kEntrySize <= value.size(); at += kEntrySize) {
    const unsigned tag = codec::load_le<std::uint16_t>(&value[at]);
    const unsigned permissions = codec::load_le<std::uint16_t>(&value[at + kPermissionsAt]);
    codec::store_le(&value[at + kPermissionsAt], static_cast<std::uint16_t>(look(tag, permissions)));
  }
}

bool is_masked(unsigned tag) {
  return tag == kNamedUser || tag == kOwningGroup || tag == kNamedGroup;
}

}  // namespace

std::string with_permissions(const std::string& acl, const MapPermissions& map) {
  std::vector<std::uint8_t> value(acl.begin(), acl.end());
  if (!is_acl(value)) return acl;
  for_each_entry(value, [&map](unsigned /*tag*/, unsigned permissions) { return map(permissions); });
  return {value.begin(), value.end()};
}

AclBounds bounds_of(const std::string& acl) {
  std::vector<std::uint8_t> value(acl.begin(), acl.end());
  if (!is_acl(value)) return {};
  unsigned mask = 07;
  for_each_entry(value, [&mask](unsigned tag, unsigned permissions) {
    if (tag == kMask) mask = permissions;
    return permissions;
  });
  AclBounds bounds{0, 07};
  for_each_entry(value, [&](unsigned tag, unsigned permissions) {
    if (tag == kMask) return permissions;
    const unsigned allowed = is_masked(tag) ? permissions & mask : permissions;
    bounds.most |= allowed;
    bounds.least &= allowed;
    return permissions;
  });
  return bounds;
}

}  // namespace cframefs::frame
