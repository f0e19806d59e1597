#include "fs/fuse/confinement.h"

#include <cerrno>
#include <string>
#include <vector>

#include "frame/io/lock_holders.h"
#include "frame/remote/remote_confinement.h"
#include "fs/util/log_sinks.h"

namespace cframefs::fs {
namespace {

/// What the threads of the daemon may open if the source is on a server: the disk cache.
std::vector<PermittedPath> paths_of_cache(const frame::RemoteOptions& options) {
  if (options.cache_dir.empty()) return {};
  // A disk cache that cannot be made is none.
  return {{.path = options.cache_dir, .is_writable = true, .may_be_missing = true}};
}

codec::Result<void> confine_fetcher(const Sandbox& sandbox, MountGuard& guard, frame::RemoteSource& source) {
  frame::RemoteConfinement confinement;
  confinement.enter = [&sandbox](const std::vector<std::string>& files, const std::vector<std::uint16_t>& ports) {
    Permissions permissions;
    for (const std::string& path : files)
      permissions.paths.push_back({.path = path, .may_be_missing = true});
    permissions.ports = ports;
    return sandbox.enter_fetcher(permissions);
  };
  confinement.restricts_ports = sandbox.restricts_ports();
  confinement.open_file = [&guard](const std::string& path) { return guard.open_file(path); };
  confinement.run_program = [&guard] { return guard.run_program(); };
  return source.confine(std::move(confinement));
}

}  // namespace

GuardDuties guard_duties(const MountOptions& options, const LogSettings& log) {
  GuardDuties duties;
  duties.log = log;
  if (!frame::is_address(options.source)) return duties;
  duties.files = frame::credential_files(options.remote);
  duties.run_program = [remote = options.remote] { return frame::output_of_credential_process(remote); };
  return duties;
}

codec::Result<void> enter_sandbox(const Sandbox& sandbox, MountGuard& guard, const ConfinedSource& source) {
  open_log_files_by([&guard] { return guard.open_log(); });
  frame::examine_locks_by([&guard](const struct stat& file) { return guard.only_readers_lock(file); });
  Permissions permissions;
  if (source.remote != nullptr) {
    permissions.paths = paths_of_cache(source.options.remote);
    if (auto confined = confine_fetcher(sandbox, guard, *source.remote); !confined) return confined;
  } else {
    if (source.descriptor < 0) return codec::io_error(EBADF, "enter the sandbox");
    auto directory = Sandbox::directory_of(source.descriptor);
    if (!directory) return codec::Failure(directory.error());
    permissions.paths = {
        {.path = std::move(*directory), .is_writable = source.is_written, .is_executable = source.passes_files}};
  }
  return sandbox.enter(permissions);
}

}  // namespace cframefs::fs
