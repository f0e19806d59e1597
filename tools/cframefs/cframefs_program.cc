#include "tools/cframefs/cframefs_program.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <unistd.h>

#include "frame/base/utf8_sanitize.h"
#include "fs/fuse/daemon.h"
#include "fs/fuse/remount.h"
#include "tools/cframefs/mount_options.h"
#include "tools/lib/io.h"
#include "tools/lib/version_text.h"
#include "tools/version.h"

namespace cframefs::tools {
namespace {

int fail(const codec::Error& error) {
  std::fprintf(stderr, "cframefs: %s\n", frame::printable(codec::describe(error)).c_str());
  return status_of(error);
}

/// Returns `done` also if the reader has closed the pipe.
int print_out(const std::string& text) {
  const std::atomic<bool> stop = false;
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  const auto written = DescriptorOutput(STDOUT_FILENO, stop).write(bytes);
  if (written || written.error().sys == EPIPE) return done;
  codec::Error error = written.error();
  error.path = "standard output";
  return fail(error);
}

}  // namespace

int run_cframefs_program(int argc, char** argv) {
  auto command = parse_mount_command({argv + 1, argv + argc});
  if (!command) {
    std::fprintf(stderr, "cframefs: %s\n", frame::printable(command.error().reason).c_str());
    return kUsageError;
  }
  switch (command->action) {
    case MountAction::show_help:
      return print_out(mount_usage());
    case MountAction::show_version:
      return print_out(version_text("cframefs", {fs::fuse_library()}));
    case MountAction::mount:
      break;
  }
  command->options.daemon.build = {kVersion, fs::fuse_library().version};
  const auto served =
      command->options.daemon.remount ? fs::remount(command->options) : fs::mount_and_serve(command->options);
  return served ? done : fail(served.error());
}

}  // namespace cframefs::tools
