// What names one state of one object among all objects of a mount, and among all mounts.
//
// Thread safety: values and functions only. Ownership: values. Errors: none.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

#include "frame/remote/objects/object_state.h"

namespace cframefs::frame {

/// The first 128 bits of a SHA-256, so that no server can choose tags by which its object takes the place of another.
struct ObjectId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 in the generated code for a null pointer
  auto operator<=>(const ObjectId&) const = default;
};

using Sha256 = std::array<std::uint8_t, 32>;
Sha256 sha256_of(const std::string& text);

/// Returns the text that names the object at `url` in this state, the same in all processes.
std::string state_text(const std::string& url, const ObjectState& state);

/// Returns the identifier of what state_text() names.
ObjectId object_id(const std::string& text);

/// Returns an identifier that no other call returns: for an object whose state nothing identifies.
ObjectId unshared_object_id();

}  // namespace cframefs::frame
