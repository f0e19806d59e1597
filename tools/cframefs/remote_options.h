// The options of a mount whose source is an address: the service, its credentials, caches and patience.
//
// Thread safety: constants. Errors: invalid.
#pragma once

#include <span>

#include "tools/cframefs/option_spec.h"

namespace cframefs::tools {

/// Returns the options, in the order of the usage text.
std::span<const OptionSpec> remote_options();

}  // namespace cframefs::tools
