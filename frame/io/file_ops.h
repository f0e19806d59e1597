// The interface of all file operations. Tests replace it by implementations that fail, tear or stop at any step.
//
// Code that only reads takes ReadFileOps. Threads, ownership, errors: as read_file_ops.h.
#pragma once

#include "frame/io/change_file_ops.h"
#include "frame/io/descriptor.h"
#include "frame/io/read_file_ops.h"

namespace cframefs::frame {

class FileOps : public ReadFileOps, public ChangeFileOps {};

/// Returns the implementation that calls the operating system.
FileOps& system_files();
/// Returns the same without openat2(2), as on kernels before 5.6. For tests.
FileOps& portable_files();
/// Returns the OpenFile of system_files() for a descriptor of the kernel.
inline OpenFile system_file(int descriptor) {
  return {descriptor};
}

}  // namespace cframefs::frame
