// Opens a frame for a subcommand that changes it.
//
// Thread safety: one thread per object. Ownership: owns the directory and the writer. Errors: as FrameWriter, with the
// path.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "frame/write/frame_writer.h"
#include "tools/cframe/cframe.h"

namespace cframefs::tools {

struct OpenedWriter {
  frame::Descriptor directory;  // the writer refers to it
  std::unique_ptr<frame::FrameWriter> writer;
};

/// Opens the frame at `path`; follows symbolic links. Frames of any codec can be opened, because no chunk is encoded.
/// `wait`: seconds to wait for a lock that another program holds.
codec::Result<OpenedWriter> open_writer(const std::string& path, double wait,
                                        frame::Checksums checksums = frame::Checksums::on);

/// Declares --wait.
void add_wait_option(CLI::App& app, double& seconds);

}  // namespace cframefs::tools
