// Opening a frame that a subcommand is going to change.
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

/// `path` as people give it: links are followed. Chunks will not be encoded, so that a frame of any codec opens.
/// `wait`: seconds for a lock that somebody else holds.
codec::Result<OpenedWriter> open_writer(const std::string& path, double wait);

/// Declares --wait.
void add_wait_option(CLI::App& app, double& seconds);

}  // namespace cframefs::tools
