// Shared by pack and convert: arrays from .npy files.
//
// Thread safety and errors: as cframe.h.
#pragma once

#include <string>

#include "tools/cframe/cframe.h"
#include "tools/cframe/encode_options.h"

namespace cframefs::tools {

/// Converts the .npy file `in` to the array `out`. Returns the exit status. `workers`: 0: one for each CPU.
int pack_array(const std::string& in, const std::string& out, const EncodeOptions& wishes, bool force, unsigned workers,
               Io& io);

}  // namespace cframefs::tools
