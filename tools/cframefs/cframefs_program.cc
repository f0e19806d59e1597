#include "tools/cframefs/cframefs_program.h"

#include <cstdio>
#include <string>
#include <vector>

#include "frame/base/utf8_sanitize.h"
#include "fs/fuse/daemon.h"
#include "fs/fuse/remount.h"
#include "tools/cframefs/mount_options.h"
#include "tools/lib/io.h"
#include "tools/lib/version_text.h"
#include "tools/version.h"

namespace cframefs::tools {

int run_cframefs_program(int argc, char** argv) {
  auto command = parse_mount_command({argv + 1, argv + argc});
  if (!command) {
    std::fprintf(stderr, "cframefs: %s\n", frame::printable(command.error().reason).c_str());
    return kUsageError;
  }
  switch (command->action) {
    case MountAction::show_help:
      std::fputs(mount_usage().c_str(), stdout);
      return done;
    case MountAction::show_version:
      std::fputs(version_text("cframefs", {fs::fuse_library()}).c_str(), stdout);
      return done;
    case MountAction::mount:
      break;
  }
  command->options.daemon.build = {kVersion, fs::fuse_library().version};
  const auto served =
      command->options.daemon.remount ? fs::remount(command->options) : fs::mount_and_serve(command->options);
  if (!served) {
    std::fprintf(stderr, "cframefs: %s\n", frame::printable(codec::describe(served.error())).c_str());
    return status_of(served.error());
  }
  return done;
}

}  // namespace cframefs::tools
