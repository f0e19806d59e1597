#include "tools/lib/temporary_file.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace cframefs::tools {

using codec::Failure;
using codec::Result;

namespace {

constexpr int kAttempts = 100;  // to find a free name

/// Creates a file and removes its name, for filesystems without unnamed files.
Result<frame::OpenFile> make_and_remove(frame::FileOps& files, frame::OpenFile directory) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string name = ".cframe-" + std::to_string(::getpid()) + "." + std::to_string(attempt);
    auto fd = files.create_at(directory, name, O_RDWR | O_EXCL, 0600);
    if (!fd && fd.error().sys == EEXIST) continue;
    if (fd) static_cast<void>(files.remove_at(directory, name, false));
    return fd;
  }
  return codec::io_error(EEXIST, "create a temporary file");
}

}  // namespace

Result<frame::Descriptor> make_unnamed_file(frame::FileOps& files) {
  const char* chosen = std::getenv("TMPDIR");
  std::vector<std::string> directories;
  if (chosen != nullptr && *chosen != '\0') directories.emplace_back(chosen);
  directories.insert(directories.end(), {"/var/tmp", "/tmp"});
  codec::Error error;
  for (const std::string& path : directories) {
    const auto directory = files.open_named(path, O_RDONLY | O_DIRECTORY);
    if (!directory) {
      error = directory.error();
      error.path = path;
      continue;
    }
    const frame::Descriptor opened(files, *directory);
    auto fd = files.create_at(*directory, ".", O_RDWR | O_TMPFILE, 0600);
    if (!fd) fd = make_and_remove(files, *directory);
    if (fd) return frame::Descriptor(files, *fd);
    error = fd.error();
    error.path = path;
  }
  return Failure(std::move(error));
}

}  // namespace cframefs::tools
