// A frame that is written beside another one and takes its place whole: FrameWriter::make_beside().
//
// Thread safety: one thread. Ownership: owns the file, which is removed if it does not take the place, and the lock of
// the frame that it is to replace.
#pragma once

#include <memory>

#include "frame/io/advisory_lock.h"
#include "frame/io/replacement_file.h"
#include "frame/write/frame_writer.h"

namespace cframefs::frame {

struct FrameWriter::Beside {
  std::shared_ptr<const Descriptor> locked;  // open for as long as it is
  AdvisoryLock lock;
  ReplacementFile file;
  std::unique_ptr<FrameWriter> writer;
};

}  // namespace cframefs::frame
