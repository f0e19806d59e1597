#include "tools/lib/spent_input.h"

#include <utility>

#include <fcntl.h>

namespace cframefs::tools {

using codec::Failure;
using codec::Result;

namespace {

bool is_same_time(const struct timespec& a, const struct timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool is_same_state(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size && is_same_time(a.st_mtim, b.st_mtim) &&
         is_same_time(a.st_ctim, b.st_ctim);
}

}  // namespace

Failure SpentInput::failure(codec::Error error) const {
  error.path = path_;
  return Failure(std::move(error));
}

Result<SpentInput> SpentInput::remember(frame::FileOps& files, const std::string& path) {
  SpentInput input(files, path);
  const std::size_t slash = path.rfind('/');
  input.name_ = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const auto fd = files.open_named(directory, O_RDONLY | O_DIRECTORY);
  if (!fd) return input.failure(fd.error());
  input.directory_ = frame::Descriptor(files, *fd);
  const auto status = files.status_at(input.directory_.handle(), input.name_);
  if (!status) return input.failure(status.error());
  if (!S_ISREG(status->st_mode))
    return input.failure(codec::invalid("is not a regular file, and --rm removes only regular files").value());
  input.before_ = *status;
  return input;
}

Result<void> SpentInput::remove() {
  const auto now = files_->status_at(directory_.handle(), name_);
  if (!now) return failure(now.error());
  if (!is_same_state(before_, *now))
    return failure(codec::stale("has changed since it was read, so --rm keeps it").value());
  if (auto removed = files_->remove_at(directory_.handle(), name_, false); !removed) return failure(removed.error());
  return {};
}

}  // namespace cframefs::tools
