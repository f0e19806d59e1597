// What a source on a server needs of a process that gives up its rights, and what others do for it from then on.
//
// The files of credentials and tokens are replaced while the mount serves, so rules for them would hold for files that
// are gone: another process, the guard of the mount, opens them by their paths, and runs the program of a profile.
//
// Thread safety: values, and functions. Errors: as the functions say.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frame/remote/remote_source.h"

namespace cframefs::frame {

/// What RemoteSource::confine() takes.
struct RemoteConfinement {
  /// Gives up rights, in the thread that talks to servers: it is called there.
  std::function<Result<void>(const std::vector<std::string>& files, const std::vector<std::uint16_t>& ports)> enter;
  /// Whether `enter` restricts the ports. Used for messages.
  bool restricts_ports = false;
  /// Opens one of credential_files(), for reading. The descriptor belongs to the caller.
  std::function<Result<int>(const std::string& path)> open_file;
  /// As output_of_credential_process(), in another process.
  std::function<Result<std::string>()> run_program;
};

/// Returns the files that may be read for credentials once the source is open, as they are spelled then.
std::vector<std::string> credential_files(const RemoteOptions& options);

/// Returns what the program prints that the profile of the options names for credentials. Takes a minute at most.
Result<std::string> output_of_credential_process(const RemoteOptions& options);

}  // namespace cframefs::frame
