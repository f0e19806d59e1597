// A new frame in a temporary file beside an existing one, which it replaces by a rename: FrameWriter::make_beside().
//
// Thread safety: one thread. Ownership: owns the temporary file, which is removed unless it replaces the frame, and the
// lock of the existing frame.
#pragma once

#include <memory>

#include "frame/io/advisory_lock.h"
#include "frame/io/replacement_file.h"
#include "frame/write/frame_writer.h"

namespace cframefs::frame {

struct FrameWriter::Beside {
  std::shared_ptr<const Descriptor> locked;  // keeps the locked file open
  AdvisoryLock lock;
  ReplacementFile file;
  std::unique_ptr<FrameWriter> writer;
};

}  // namespace cframefs::frame
