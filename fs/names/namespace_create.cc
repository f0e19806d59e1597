#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "frame/cframe/b2nd_meta.h"
#include "frame/io/free_name.h"
#include "frame/io/system_version.h"
#include "frame/io/unread_file.h"
#include "fs/names/namespace.h"
#include "fs/util/no_memory.h"
#include "fs/write/frame_defaults.h"

namespace cframefs::fs {
namespace {

constexpr const char* kDefaultAcl = "system.posix_acl_default";
constexpr mode_t kRights = 0777;

/// Returns whether a created file may be shown with another inode number under its name than by the descriptor that was
/// opened under its temporary name, as sshfs does after a link. The caller of create() has the rights to both.
bool may_be_one_file(const struct stat& made, const struct stat& named) {
  return S_ISREG(named.st_mode) && made.st_dev == named.st_dev && made.st_mode == named.st_mode &&
         made.st_uid == named.st_uid && made.st_gid == named.st_gid && made.st_size == named.st_size &&
         made.st_mtim.tv_sec == named.st_mtim.tv_sec && made.st_mtim.tv_nsec == named.st_mtim.tv_nsec;
}

/// Returns whether the daemon may open a new file of this mode for reading and writing.
bool opens_by_name(mode_t mode) {
  constexpr mode_t kBoth = S_IRUSR | S_IWUSR;
  return (mode & kBoth) == kBoth || ActingAs::is_possible();
}

/// Returns true for errors that a filesystem which can make such files returns, too.
bool lacks_resources(const codec::Error& error) {
  return error.sys == EMFILE || error.sys == ENFILE || error.sys == ENOMEM || error.sys == ENOSPC ||
         error.sys == EDQUOT;
}

/// Removes a file on destruction unless it has got its name.
class TemporaryFile {
 public:
  TemporaryFile(frame::FileOps& files, frame::OpenFile directory, const std::string& name)
      : files_(files), directory_(directory), name_(&name) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (name_ != nullptr) try_in_memory([this] { static_cast<void>(files_.remove_at(directory_, *name_, false)); });
  }
  void has_name() { name_ = nullptr; }

 private:
  frame::FileOps& files_;
  const frame::OpenFile directory_;
  const std::string* name_;
};

}  // namespace

codec::Result<CreatedFile> Namespace::create(NodeId parent, const std::string& name, int flags, mode_t mode,
                                             const Caller& caller, ChangePermit& permit) {
  auto entry = create_entry(parent, name, flags, mode, caller, permit);
  if (!entry) return codec::Failure(entry.error());
  auto opened = or_no_memory([&] { return open_created(*entry, flags & ~(O_CREAT | O_EXCL | O_TRUNC)); });
  if (opened) {
    entry->attributes.attr_timeout = std::max(entry->attributes.attr_timeout, kCreatedTimeout);
    return CreatedFile{entry->attributes, std::move(*opened)};
  }
  lookups_.forget(entry->attributes.node, 1);
  codec::MutexLock lock(mount_.changes);
  take_back(entry->directory, entry->name, entry->status);
  return codec::Failure(opened.error());
}

codec::Result<Namespace::NewEntry> Namespace::create_entry(NodeId parent, const std::string& name, int flags,
                                                           mode_t mode, const Caller& caller, ChangePermit& permit) {
  codec::MutexLock lock(mount_.changes);
  if (auto begun = permit.begin(); !begun) return codec::Failure(begun.error());
  auto directory = entries_.directory_for_new(parent, name);
  if (!directory) return not_created(directory.error(), flags);
  NewEntry entry;
  entry.directory = std::move(*directory);
  entry.name = mount_.tree.rules().new_name(name);
  entry.is_frame = NameMapper::has_container_suffix(entry.name);
  // With names=keep, the suffix of an array or of another container format.
  if (entry.is_frame && !mount_.tree.rules().names_new_frame(entry.name)) return codec::io_error(EOPNOTSUPP, "create");
  mode = mode_for_new(entry.directory, mode & 07777U, caller);
  auto file = as_caller(caller, mode, [&]() NO_THREAD_SAFETY_ANALYSIS {
    return entry.is_frame ? create_frame(entry.directory, entry.name, mode)
                          : create_plain(entry.directory, entry.name, mode);
  });
  if (!file) return not_created(file.error(), flags);
  entry.status = file->entry.status;
  entry.file = std::move(file->file);
  entry.written = std::move(file->written);
  auto attributes = or_no_memory([&] { return lookups_.enter_created({parent, entry.name}, file->entry); });
  if (!attributes) {
    take_back(entry.directory, entry.name, entry.status);
    return codec::Failure(attributes.error());
  }
  entry.attributes = std::move(*attributes);
  return entry;
}

mode_t Namespace::mode_for_new(const HeldDirectory& directory, mode_t mode, const Caller& caller) {
  if (caller.umask == 0 || CallersUmask::is_possible()) return mode;
  const bool has_default = mount_.files.get_attribute(directory->handle(), kDefaultAcl).has_value();
  return has_default ? mode : mode & ~caller.umask;
}

codec::Result<Namespace::NewFile> Namespace::create_frame(const HeldDirectory& directory, const std::string& name,
                                                          mode_t mode) {
  frame::NewFrame empty = placeholder_params(mount_.options.new_frames);
  if (NameMapper::has_array_suffix(name)) empty.metalayers.push_back(frame::file_bytes_layer());
  std::vector<std::uint8_t> image = frame::empty_frame(empty);
  auto given = publish(directory, name, mode, image);
  if (!given) return codec::Failure(given.error());
  auto& [file, made, named] = *given;
  if (!named) {
    take_back(directory, name, made);
    return codec::Failure(named.error());
  }
  if (named->st_ino != made.st_ino || named->st_dev != made.st_dev) {
    if (!may_be_one_file(made, *named)) return codec::stale("another file has taken its name");
    file.reset();
  }
  return NewFile{SourceTree::new_entry(EntryKind::frame, *named, empty.chunksize), std::move(file),
                 NewContent{std::move(image), frame::version_of(made)}};
}

codec::Result<Namespace::PublishedFile> Namespace::publish(const HeldDirectory& directory, const std::string& name,
                                                           mode_t mode, codec::ByteView content) {
  if (!has_unnamed_files_ || !opens_by_name(mode)) return publish_temporary(directory, name, mode, content);
  auto unnamed = publish_unnamed(directory, name, mode, content);
  if (unnamed || unnamed.error().sys == EEXIST || unnamed.error().kind == codec::ErrorKind::stale) return unnamed;
  auto given = publish_temporary(directory, name, mode, content);
  if (given && !lacks_resources(unnamed.error())) has_unnamed_files_ = false;
  return given;
}

codec::Result<Namespace::PublishedFile> Namespace::publish_unnamed(const HeldDirectory& directory,
                                                                   const std::string& name, mode_t mode,
                                                                   codec::ByteView content) {
  auto fd = frame::create_unread_unnamed(mount_.files, directory->handle(), mode & kRights);
  if (!fd) return codec::Failure(fd.error());
  const frame::Descriptor unnamed(mount_.files, *fd);
  const auto made = fill(unnamed.handle(), mode, content);
  if (!made) return codec::Failure(made.error());
  if (auto linked = mount_.files.link_at(unnamed.handle(), directory->handle(), name); !linked)
    return codec::Failure(linked.error());
  // The system reports writes by the name under which the file was opened, and that of an unnamed file is unknown to
  // the programs that watch the directory.
  auto file = or_no_memory([&]() -> codec::Result<std::shared_ptr<const frame::Descriptor>> {
    const auto named = frame::open_unread(mount_.files, directory->handle(), name);
    if (named) return frame::share_descriptor(mount_.files, *named);
    return leads_elsewhere(named.error()) ? codec::stale("another file has taken its name")
                                          : codec::Failure(named.error());
  });
  if (!file) {
    take_back(directory, name, *made);
    return codec::Failure(file.error());
  }
  auto status = mount_.files.status((*file)->handle());
  return PublishedFile{std::move(*file), *made, std::move(status)};
}

codec::Result<Namespace::PublishedFile> Namespace::publish_temporary(const HeldDirectory& directory,
                                                                     const std::string& name, mode_t mode,
                                                                     codec::ByteView content) {
  const std::string temporary = entries_.temporary_name(NameMapper::suffix_of(name));
  auto fd = frame::create_unread(mount_.files, directory->handle(), temporary, mode & kRights);
  if (!fd) return codec::Failure(fd.error());
  TemporaryFile unfinished(mount_.files, directory->handle(), temporary);
  auto file = frame::share_descriptor(mount_.files, *fd);
  const auto made = fill(file->handle(), mode, content);
  if (!made) return codec::Failure(made.error());
  const auto given = frame::give_free_name(mount_.files, directory->handle(), temporary, name);
  if (!given) return codec::Failure(given.error());
  unfinished.has_name();
  // What is written through this descriptor may not show in what the name shows, as on bindfs.
  if (*given == frame::NameGiven::by_link) file.reset();
  return PublishedFile{std::move(file), *made, mount_.files.status_at(directory->handle(), name)};
}

codec::Result<struct stat> Namespace::fill(frame::OpenFile file, mode_t mode, codec::ByteView content) {
  if (auto done = mount_.files.pwrite(file, content, frame::FileOffset{0}); !done) return codec::Failure(done.error());
  auto made = mount_.files.status(file);
  if (!made || (mode & ~kRights) == 0) return made;
  // Set these bits after the write, which would have cleared them.
  if (auto done = mount_.files.change_mode(file, (made->st_mode & kRights) | (mode & ~kRights)); !done)
    return codec::Failure(done.error());
  return mount_.files.status(file);
}

codec::Result<Namespace::NewFile> Namespace::create_plain(const HeldDirectory& directory, const std::string& name,
                                                          mode_t mode) {
  auto fd = mount_.files.create_at(directory->handle(), name, O_WRONLY | O_EXCL, mode);
  if (!fd) return codec::Failure(fd.error());
  const frame::Descriptor file(mount_.files, *fd);
  const auto status = mount_.files.status(file.handle());
  if (!status) return codec::Failure(status.error());
  return NewFile{SourceTree::new_entry(EntryKind::plain, *status, 0), nullptr};
}

/// Returns the error of a failed create. stale if the name was taken: the kernel then looks it up, and checks whether
/// the caller may open that file.
codec::Failure Namespace::not_created(const codec::Error& error, int flags) {
  const bool is_taken = error.sys == EEXIST && (flags & O_EXCL) == 0;
  return is_taken ? codec::stale("another file with this name was created") : codec::Failure(error);
}

codec::Result<std::unique_ptr<FileHandle>> Namespace::open_created(NewEntry& entry, int flags) {
  auto handle = std::make_unique<FileHandle>();
  handle->node = mount_.nodes.find(entry.attributes.node);
  // Open only the created file: the kernel does not check the caller's rights to a file that has replaced it.
  if (!handle->node || !handle->node->is_at(entry.status)) return codec::stale("another file has replaced it");
  if (!entry.is_frame) return files_.open(entry.attributes.node, flags);
  // Without the descriptor, opening frees descriptors that are not in use.
  if (entry.file && mount_.reserve.is_kept_back(mount_.files, entry.file->handle())) entry.file.reset();
  return files_.open_new_frame(std::move(handle), flags, {true, std::move(entry.file), std::move(entry.written)});
}

void Namespace::take_back(const HeldDirectory& directory, const std::string& name, const struct stat& created) {
  const auto there = mount_.files.status_at(directory->handle(), name);
  if (!there || there->st_ino != created.st_ino || there->st_dev != created.st_dev) return;
  static_cast<void>(mount_.files.remove_at(directory->handle(), name, false));
}

}  // namespace cframefs::fs
