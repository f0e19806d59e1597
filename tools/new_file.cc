#include "tools/new_file.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "frame/free_name.h"
#include "frame/replacement_file.h"

namespace cframefs::tools {

using codec::Failure;
using codec::Result;

namespace {

constexpr int kAttempts = 100;  // at a name that no file has

constexpr std::size_t kLongestSuffix = 16;

/// A mount stores a file by its suffix; under a temporary name it has to be stored as under its own.
std::string suffix_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const bool has_one = dot != std::string::npos && dot > 0 && name.size() - dot <= kLongestSuffix;
  return has_one ? name.substr(dot) : std::string();
}

Failure at_path(codec::Error error, const std::string& path) {
  if (error.path.empty()) error.path = path;
  return Failure(std::move(error));
}

}  // namespace

Result<NewFile> NewFile::create(frame::FileOps& files, const std::string& path, bool replace, mode_t mode,
                                const char* remedy) {
  NewFile made(files, path, replace, remedy);
  auto ready = made.open_folder();
  if (ready) ready = made.check_place();
  if (ready) ready = made.make_temporary(mode);
  if (!ready) return at_path(ready.error(), path);
  return made;
}

NewFile::~NewFile() {
  if (file_.is_open()) static_cast<void>(files_->remove_at(folder_.fd(), temporary_, false));
}

Failure NewFile::refused(const std::string& why) const {
  codec::Error error{codec::ErrorKind::invalid, 0, why};
  error.path = path_;
  return Failure(std::move(error));
}

Result<void> NewFile::open_folder() {
  const std::size_t slash = path_.rfind('/');
  name_ = slash == std::string::npos ? path_ : path_.substr(slash + 1);
  if (name_.empty() || name_ == "." || name_ == "..") return refused("is no name for a file");
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path_.substr(0, slash);
  const auto fd = files_->open_named(folder, O_RDONLY | O_DIRECTORY);
  if (!fd) return Failure(fd.error());
  folder_ = frame::Descriptor(*files_, *fd);
  return {};
}

Result<void> NewFile::check_place() const {
  const auto there = files_->status_at(folder_.fd(), name_);
  if (!there) {
    if (there.error().sys == ENOENT) return {};
    return Failure(there.error());
  }
  if (!S_ISREG(there->st_mode)) return refused("is there already, and no regular file");
  if (!replace_) return refused(std::string("is there already") + remedy_);
  return {};
}

Result<void> NewFile::make_temporary(mode_t mode) {
  const std::string suffix = suffix_of(name_);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // Short, because the name itself may be as long as names can be.
    temporary_ = frame::kTemporaryPrefix + std::to_string(::getpid()) + "." + std::to_string(attempt) + suffix;
    const auto fd = files_->create_at(folder_.fd(), temporary_, O_RDWR | O_EXCL, mode);
    if (fd) {
      file_ = frame::Descriptor(*files_, *fd);
      return {};
    }
    if (fd.error().sys != EEXIST) return Failure(fd.error());
  }
  return codec::io_error(EEXIST, "create a temporary file");
}

Result<void> NewFile::take_place() {
  const int folder = folder_.fd();
  if (replace_) return files_->rename_at(folder, temporary_, folder, name_, 0);
  auto named = frame::give_free_name(*files_, folder, temporary_, name_);
  if (!named && named.error().sys == EEXIST) return refused(std::string("is there already") + remedy_);
  return named;
}

Result<void> NewFile::publish() {
  auto done = files_->sync(fd(), false);
  if (done) done = take_place();
  if (!done) return at_path(done.error(), path_);
  file_.reset();
  if (auto synced = frame::sync_directory(*files_, folder_.fd()); !synced) return at_path(synced.error(), path_);
  return {};
}

}  // namespace cframefs::tools
