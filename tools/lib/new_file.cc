#include "tools/lib/new_file.h"

#include <cerrno>
#include <chrono>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "frame/io/free_name.h"
#include "frame/io/replacement_file.h"

namespace cframefs::tools {

using codec::Failure;
using codec::Result;

namespace {

constexpr int kMaxNames = 1000;  // files that can be written concurrently in one directory
/// A younger unlocked file may be one that a program has just created and not locked yet.
constexpr std::chrono::hours kLeftAlone(1);

const std::string kPrefix = std::string(frame::kTemporaryPrefix) + "pack.";
constexpr std::size_t kLongestSuffix = 16;

/// Returns the suffix of a name. A temporary name keeps it, because a mount chooses the stored form by the suffix.
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
  auto ready = made.open_directory();
  if (ready) ready = made.check_place();
  if (ready) ready = made.make_file(mode);
  if (!ready) return at_path(ready.error(), path);
  return made;
}

NewFile::~NewFile() {
  if (file_.is_open() && !temporary_.empty())
    static_cast<void>(files_->remove_at(directory_.handle(), temporary_, false));
}

Failure NewFile::refused(const std::string& why) const {
  codec::Error error{codec::ErrorKind::invalid, 0, why};
  error.path = path_;
  return Failure(std::move(error));
}

Result<void> NewFile::open_directory() {
  const std::size_t slash = path_.rfind('/');
  name_ = slash == std::string::npos ? path_ : path_.substr(slash + 1);
  if (name_.empty() || name_ == "." || name_ == "..") return refused("is not a file name");
  const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path_.substr(0, slash);
  const auto fd = files_->open_named(directory, O_RDONLY | O_DIRECTORY);
  if (!fd) return Failure(fd.error());
  directory_ = frame::Descriptor(*files_, *fd);
  return {};
}

Result<void> NewFile::check_place() const {
  const auto there = files_->status_at(directory_.handle(), name_);
  if (!there) {
    if (there.error().sys == ENOENT) return {};
    return Failure(there.error());
  }
  if (!S_ISREG(there->st_mode)) return refused("exists and is not a regular file");
  if (!replace_) return refused(std::string("exists already") + remedy_);
  return {};
}

Result<void> NewFile::make_file(mode_t mode) {
  return make_unnamed(mode) ? Result<void>() : make_temporary(mode);
}

Result<void> NewFile::make_unnamed(mode_t mode) {
  const auto fd = files_->create_at(directory_.handle(), ".", O_RDWR | O_TMPFILE, mode);
  if (!fd) return Failure(fd.error());
  frame::Descriptor file(*files_, *fd);
  // publish() names the file through /proc, which may be missing.
  const auto again = files_->reopen(*fd, O_PATH);
  if (!again) return Failure(again.error());
  files_->close(*again);
  file_ = std::move(file);
  static_cast<void>(files_->try_lock(file_.handle(), LOCK_EX));
  return {};
}

Result<void> NewFile::make_temporary(mode_t mode) {
  return with_free_name([&]() -> Result<void> {
    const auto fd = files_->create_at(directory_.handle(), temporary_, O_RDWR | O_EXCL, mode);
    if (!fd) return Failure(fd.error());
    file_ = frame::Descriptor(*files_, *fd);
    // Ignore errors: remove_left_over() removes only files that it can lock.
    static_cast<void>(files_->try_lock(file_.handle(), LOCK_EX));
    return {};
  });
}

/// Calls `make` with temporary_ set to the first free name. There are few possible names, so that later programs find
/// the files of killed ones.
Result<void> NewFile::with_free_name(const std::function<Result<void>()>& make) {
  const std::string suffix = suffix_of(name_);
  for (int number = 0; number < kMaxNames; ++number) {
    // Short, because a prefix to the final name could exceed the limit of names.
    temporary_ = std::string(kPrefix).append(std::to_string(number)).append(suffix);
    auto made = make();
    if (!made && made.error().sys == EEXIST && remove_left_over()) made = make();
    if (made) return {};
    if (made.error().sys != EEXIST) {
      temporary_.clear();
      return made;
    }
  }
  temporary_.clear();
  return codec::io_error(EEXIST, "create a temporary file");
}

/// Removes the file temporary_ if no program is writing it. Returns false if the file still exists.
bool NewFile::remove_left_over() const {
  const auto fd = files_->open_at(directory_.handle(), temporary_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) return fd.error().sys == ENOENT;
  const frame::Descriptor file(*files_, *fd);
  const auto status = files_->status(file.handle());
  if (!status || !S_ISREG(status->st_mode) || status->st_uid != ::geteuid()) return false;
  const auto age = std::chrono::system_clock::now() - std::chrono::system_clock::from_time_t(status->st_mtim.tv_sec);
  if (age < kLeftAlone) return false;
  const auto locked = files_->try_lock(file.handle(), LOCK_EX);
  if (!locked || !*locked) return false;
  // Another program may have replaced it before this one had the lock.
  const auto named = files_->status_at(directory_.handle(), temporary_);
  if (!named || named->st_ino != status->st_ino || named->st_dev != status->st_dev) return false;
  return files_->remove_at(directory_.handle(), temporary_, false).has_value();
}

Result<void> NewFile::take_place() {
  const frame::OpenFile directory = directory_.handle();
  const bool unnamed = temporary_.empty();
  Result<void> named;
  if (unnamed && !replace_) {
    named = files_->link_at(handle(), directory, name_);
  } else if (unnamed) {
    named = with_free_name([&] { return files_->link_at(handle(), directory, temporary_); });
  }
  if (named && replace_) return files_->rename_at(directory, temporary_, directory, name_, 0);
  if (named && !unnamed) {
    if (const auto given = frame::give_free_name(*files_, directory, temporary_, name_); !given)
      named = codec::Failure(given.error());
  }
  if (!named && !replace_ && named.error().sys == EEXIST) return refused(std::string("exists already") + remedy_);
  return named;
}

Result<void> NewFile::publish() {
  auto done = files_->sync(handle(), false);
  if (done && times_) done = files_->set_times(handle(), *times_);
  if (done) done = take_place();
  if (!done) return at_path(done.error(), path_);
  temporary_.clear();
  file_.reset();
  if (auto synced = frame::sync_directory(*files_, directory_.handle()); !synced) return at_path(synced.error(), path_);
  return {};
}

}  // namespace cframefs::tools
