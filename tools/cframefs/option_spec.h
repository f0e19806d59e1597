// An option of a mount: its name, its values, its line of the usage text, and the function that applies it.
//
// Thread safety: plain values. Errors of `apply`: invalid; the reason says what is allowed, for use after the option's
// name.
#pragma once

#include <string_view>

#include "codec/base/error.h"
#include "fs/util/options.h"

namespace cframefs::tools {

using OptionStatus = codec::Result<void>;

struct OptionSpec {
  std::string_view name;
  std::string_view values;  // empty: the option takes no value
  std::string_view help;
  OptionStatus (*apply)(fs::MountOptions&, std::string_view);
};

}  // namespace cframefs::tools
