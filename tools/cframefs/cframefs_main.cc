// The program cframefs: parses the command line and mounts; an error is one line on standard error.
#include <cstdio>
#include <string>
#include <vector>

#include "frame/base/utf8_sanitize.h"
#include "fs/fuse/daemon.h"
#include "fs/fuse/remount.h"
#include "tools/cframefs/mount_options.h"
#include "tools/lib/io.h"
#include "tools/version.h"

int main(int argc, char** argv) {
  using namespace cframefs;
  const auto command = tools::parse_mount_command({argv + 1, argv + argc});
  if (!command) {
    std::fprintf(stderr, "cframefs: %s\n", frame::printable(command.error().reason).c_str());
    return tools::kUsageError;
  }
  switch (command->action) {
    case tools::MountAction::show_help:
      std::fputs(tools::mount_usage().c_str(), stdout);
      return tools::done;
    case tools::MountAction::show_version:
      std::printf("cframefs %s\n", tools::kVersion);
      return tools::done;
    case tools::MountAction::mount:
      break;
  }
  const auto served =
      command->options.daemon.remount ? fs::remount(command->options) : fs::mount_and_serve(command->options);
  if (!served) {
    std::fprintf(stderr, "cframefs: %s\n", frame::printable(codec::describe(served.error())).c_str());
    return tools::status_of(served.error());
  }
  return tools::done;
}
