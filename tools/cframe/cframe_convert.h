// Shared by pack and convert: arrays from .npy files.
//
// Thread safety and errors: as cframe.h.
#pragma once

#include "tools/cframe/batch.h"
#include "tools/cframe/encode_options.h"

namespace cframefs::tools {

/// Converts the .npy file `task.in` to the array `task.out`. Returns the exit status.
int pack_array(const FileTask& task, const EncodeOptions& wishes, MadeFile& made, Io& io);

}  // namespace cframefs::tools
