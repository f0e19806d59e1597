#include "tools/cframe/open_writer.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fcntl.h>

#include "tools/cframe/cframe.h"

namespace cframefs::tools {

namespace {

constexpr double kMaxSeconds = 1e6;

}  // namespace

codec::Result<OpenedWriter> open_writer(const std::string& path, double wait, frame::Checksums checksums) {
  if (path == kStandardStream) {
    return codec::invalid("standard input cannot be changed: name a file (./- for a file called -)");
  }
  if (auto fine = check_no_directory(path, path); !fine) return codec::Failure(fine.error());
  frame::FileOps& files = frame::system_files();
  const auto fd = files.open_named(path, O_PATH);
  if (!fd) return codec::Failure(with_path(fd.error(), path));
  const auto file = std::make_shared<const frame::Descriptor>(files, *fd);
  std::error_code code;
  const std::filesystem::path real = std::filesystem::canonical(path, code);
  if (code) return codec::Failure(with_path(codec::io_error(code.value(), "open").value(), path));
  const auto directory = files.open_named(real.parent_path().string(), O_RDONLY | O_DIRECTORY);
  if (!directory) return codec::Failure(with_path(directory.error(), path));
  OpenedWriter opened;
  opened.directory = frame::Descriptor(files, *directory);
  // Another user may have exchanged directories while the path was being resolved.
  const auto named = files.status(file->handle());
  const auto found = files.status_at(*directory, real.filename().string());
  if (!named || !found || named->st_ino != found->st_ino || named->st_dev != found->st_dev) {
    return codec::Failure(with_path(codec::stale("another file has replaced it").value(), path));
  }
  frame::WriterOptions options;
  options.stores_chunks = false;
  options.checksums = checksums;
  // Refuse a frame that a mount has open for writing: the mount may hold uncommitted data, which a new file would lose.
  options.alone = true;
  options.lock_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(wait * 1000));
  auto writer = frame::FrameWriter::open(files, *directory, real.filename().string(), file, nullptr, options);
  if (!writer) return codec::Failure(with_path(writer.error(), path));
  opened.writer = std::move(*writer);
  return opened;
}

void add_wait_option(CLI::App& app, double& seconds) {
  app.add_option("--wait", seconds, "How long to wait for a frame that another program has locked or writes (5)")
      ->check(CLI::Range(0.0, kMaxSeconds))
      ->type_name("SECONDS");
}

}  // namespace cframefs::tools
