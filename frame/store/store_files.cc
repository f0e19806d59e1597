#include "frame/store/store_files.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "frame/base/suffixes.h"
#include "frame/cframe/cframe.h"
#include "frame/io/system_version.h"
#include "frame/open/open.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::io_error;

const char* const kEmbedFile = "embed.b2e";
// Set in inode numbers of things inside stores. The next higher bit marks decoded views.
constexpr std::uint64_t kInsideInode = std::uint64_t{1} << 61;

bool has_store_suffix(std::string_view path) {
  return path.ends_with(kZipStoreSuffix) || path.ends_with(kEmbedStoreSuffix) || path.ends_with(kDirectoryStoreSuffix);
}

std::string join(const std::string& directory, const std::string& path) {
  if (path.empty() || path == ".") return directory;
  return directory.empty() ? path : directory + "/" + path;
}

/// Returns a stable inode number for a path in a store. `holder`: the file that holds the bytes, because the directory
/// of a store may get another embed frame.
std::uint64_t inode_of(const struct stat& holder, const std::string& inside) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ holder.st_ino;
  for (const char c : inside)
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3U;
  return kInsideInode | (hash & (kInsideInode - 1));
}

bool is_unchanged(const struct stat& before, const struct stat& now) {
  return version_of(before) == version_of(now);
}

}  // namespace

// ---- descriptors -------------------------------------------------------------------------------------------------

std::shared_ptr<const StoreFiles::Opened> StoreFiles::opened(OpenFile file) const {
  if (opened_count_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::shared_lock lock(opened_mutex_);
  const auto found = opened_.find(file.value);
  return found == opened_.end() ? nullptr : found->second;
}

void StoreFiles::enter(OpenFile file, Opened opened) {
  const std::unique_lock lock(opened_mutex_);
  opened_[file.value] = std::make_shared<const Opened>(std::move(opened));
  opened_count_.store(opened_.size(), std::memory_order_release);
}

void StoreFiles::close(OpenFile file) {
  if (opened_count_.load(std::memory_order_acquire) != 0) {
    // `gone` is destroyed after the lock is released, because its destructor may close descriptors.
    std::shared_ptr<const Opened> gone;
    const std::unique_lock lock(opened_mutex_);
    if (const auto found = opened_.find(file.value); found != opened_.end()) {
      gone = std::move(found->second);
      opened_.erase(found);
      opened_count_.store(opened_.size(), std::memory_order_release);
    }
  }
  base_.close(file);
}

// ---- stores ------------------------------------------------------------------------------------------------------

struct StoreFiles::Candidate {
  struct stat status {};  // of the file or directory with the name
  struct stat holder {};  // of the file that holds the bytes
  std::optional<Descriptor> directory;

  Key key() const { return {static_cast<std::uint64_t>(holder.st_dev), static_cast<std::uint64_t>(holder.st_ino)}; }
  /// Compares both files, because status_inside() shows owner and mode of either.
  template <class Remembered>
  bool still_matches(const Remembered& remembered) const {
    return is_unchanged(remembered.holder, holder) && is_unchanged(remembered.status, status);
  }
};

/// Returns whether the error means that the name is that of no store that this user can read, and not that the disk
/// has failed.
bool tells_no_store(const Error& error) {
  return is_missing(error) || error.sys == ENOTDIR || error.sys == ELOOP || error.sys == EACCES || error.sys == EPERM;
}

Result<std::optional<StoreFiles::Candidate>> StoreFiles::candidate_at(OpenFile dir, const std::string& path) const {
  const auto none = [](const Error& error) -> Result<std::optional<Candidate>> {
    if (tells_no_store(error)) return std::optional<Candidate>();
    return Failure(error);
  };
  const auto status = base_.status_at(dir, path);
  if (!status) return none(status.error());
  const bool on_directory = path.ends_with(kDirectoryStoreSuffix);
  if (on_directory ? !S_ISDIR(status->st_mode) : !S_ISREG(status->st_mode)) return std::optional<Candidate>();
  Candidate candidate;
  candidate.status = *status;
  candidate.holder = *status;
  if (!on_directory) return std::optional(std::move(candidate));
  const auto fd = base_.open_at(dir, path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) return none(fd.error());
  candidate.directory = Descriptor(base_, *fd);
  const auto opened = base_.status(*fd);
  const auto embed = base_.status_at(*fd, kEmbedFile);
  if (!opened) return none(opened.error());
  if (!embed) return none(embed.error());
  if (!S_ISREG(embed->st_mode)) return std::optional<Candidate>();
  candidate.status = *opened;
  candidate.holder = *embed;
  return std::optional(std::move(candidate));
}

/// Returns nullptr if the file cannot be opened.
Result<std::shared_ptr<const StoreFiles::Known>> StoreFiles::open_candidate(OpenFile dir, const std::string& path,
                                                                            const Candidate& candidate) const {
  using Found = std::shared_ptr<const Known>;
  const bool on_directory = candidate.directory.has_value();
  const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
  const auto fd =
      on_directory ? base_.open_at(candidate.directory->handle(), kEmbedFile, flags) : base_.open_at(dir, path, flags);
  if (!fd && tells_no_store(fd.error())) return Found();
  if (!fd) return Failure(fd.error());
  auto known = std::make_shared<Known>();
  known->file = share_descriptor(base_, *fd);
  const auto holder = base_.status(*fd);
  if (!holder) return Failure(holder.error());
  if (!S_ISREG(holder->st_mode)) return Found();
  known->holder = *holder;
  known->status = on_directory ? candidate.status : *holder;
  known->on_directory = on_directory;
  known->is_zip = path.ends_with(kZipStoreSuffix);
  return Found(std::move(known));
}

Result<std::unique_ptr<ByteSource>> StoreFiles::source_of(const Known& known) const {
  const auto status = base_.status(known.file->handle());
  if (!status) return Failure(status.error());
  return file_source(base_, known.file, FileOffset{0}, static_cast<std::uint64_t>(status->st_size));
}

/// Returns false for a zip file without an embed frame, and true for a damaged zip file.
Result<bool> StoreFiles::is_store(const Known& known) const {
  if (!known.is_zip) return true;
  const auto source = source_of(known);
  if (!source) return Failure(source.error());
  auto is_zip_store = Store::is_store_zip(**source);
  if (!is_zip_store && is_zip_store.error().kind != ErrorKind::io) return true;
  return is_zip_store;
}

/// Returns nullptr if the path is not a store.
Result<std::shared_ptr<const StoreFiles::Known>> StoreFiles::store_at(OpenFile dir, const std::string& path,
                                                                      Look look) {
  using Found = std::shared_ptr<const Known>;
  const auto examined = candidate_at(dir, path);
  if (!examined) return Failure(examined.error());
  const auto& candidate = *examined;
  if (!candidate) return Found();
  const Key key = candidate->key();
  const auto kept = known_.find(key);
  if (kept && candidate->still_matches(**kept)) return *kept;
  auto verdict = verdicts_.find(key);
  if (verdict && !candidate->still_matches(*verdict)) verdict.reset();
  if (verdict && !verdict->is_store) return Found();
  if (verdict && look == Look::glance) {
    auto glanced = std::make_shared<Known>();
    glanced->holder = verdict->holder;
    glanced->status = verdict->status;
    glanced->on_directory = candidate->directory.has_value();
    return Found(std::move(glanced));
  }
  auto opened = open_candidate(dir, path, *candidate);
  if (!opened || !*opened) return opened;
  const Found& known = *opened;
  const Result<bool> store = verdict ? Result<bool>(true) : is_store(*known);
  // An io error is not cached as a verdict.
  if (!store) return Failure(store.error());
  verdicts_.replace(key, Verdict{known->status, known->holder, *store}, 1);
  if (!*store) return Found();
  if (look == Look::open) known_.replace(key, known, 1);
  return opened;
}

StoreFiles::Content StoreFiles::content_of(const Known& known) const {
  codec::MutexLock lock(known.mutex);
  if (auto store = known.store.lock()) return {std::move(store), std::nullopt};
  if (known.damage) return {nullptr, known.damage};
  auto source = source_of(known);
  if (!source) return {nullptr, source.error()};
  auto opened =
      known.is_zip ? Store::open_zip(std::move(*source), inflate_memory_) : Store::open_embed(std::move(*source));
  if (opened && *opened) {
    known.store = *opened;
    const Key key{known.holder.st_dev, known.holder.st_ino};
    contents_.replace(key, *opened, (*opened)->footprint());
    return {std::move(*opened), std::nullopt};
  }
  Error error = opened ? codec::stale("the file changed and is not a store any more").value() : opened.error();
  if (error.kind != ErrorKind::io) known.damage = error;
  return {nullptr, std::move(error)};
}

/// Returns the store that the path leads into, or nullopt. `dir` may represent a directory inside a store.
Result<std::optional<StoreFiles::Place>> StoreFiles::place_of(OpenFile dir, const std::string& path, Look look) {
  if (const auto from = opened(dir); from && !from->leaf)
    return std::optional(Place{from->place.known, join(from->place.inside, path)});
  for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const std::string_view part = std::string_view(path).substr(0, end);
    if (has_store_suffix(part)) {
      auto known = store_at(dir, std::string(part), look);
      if (!known) return Failure(known.error());
      if (*known) return std::optional(Place{std::move(*known), end == std::string::npos ? "" : path.substr(end + 1)});
    }
    if (end == std::string::npos) return std::optional<Place>();
  }
}

Result<struct stat> StoreFiles::status_inside(const Place& place) const {
  const Known& known = *place.known;
  struct stat status = known.status;
  const bool itself = place.inside.empty();
  const Content content = itself ? Content{} : content_of(known);
  const Store::Leaf* leaf = content.store ? content.store->find(place.inside) : nullptr;
  if (leaf == nullptr && !itself && !(content.store && content.store->has_directory(place.inside))) {
    if (content.damage) return Failure(*content.damage);
    return io_error(ENOENT, "lookup");
  }
  if (!itself) {
    // Owner and mode come from the file that holds the bytes, because its rights decide who can read them.
    status.st_mode = known.holder.st_mode;
    status.st_uid = known.holder.st_uid;
    status.st_gid = known.holder.st_gid;
  }
  const mode_t rights = status.st_mode & 0777U;
  if (leaf != nullptr) {
    status.st_mode = S_IFREG | (rights & 0444U);
    status.st_size = static_cast<off_t>(leaf->size);
    status.st_nlink = 1;
    status.st_blocks = static_cast<blkcnt_t>((leaf->stored + 511) / 512);
  } else {
    // Directories get an x bit for each r bit.
    status.st_mode = S_IFDIR | (rights & 0444U) | (rights & 0444U) >> 2U;
    status.st_nlink = 2;
  }
  if (!itself) status.st_ino = inode_of(known.holder, place.inside);
  return status;
}

Result<OpenFile> StoreFiles::open_inside(const Place& place, int flags) {
  if ((flags & O_ACCMODE) != O_RDONLY) return refused("open");
  if (auto status = status_inside(place); !status) return Failure(status.error());
  const Known& known = *place.known;
  Opened opened{place, nullptr, false};
  const Content content = place.inside.empty() ? Content{} : content_of(known);
  if (const Store::Leaf* leaf = content.store ? content.store->find(place.inside) : nullptr) {
    if ((flags & O_DIRECTORY) != 0) return io_error(ENOTDIR, "open");
    auto source = content.store->open(*leaf);
    if (!source) return Failure(source.error());
    opened.leaf = std::move(*source);
  }
  auto fd = base_.reopen(known.file->handle(), O_RDONLY | (flags & O_NOATIME));
  if (!fd) return fd;
  enter(*fd, std::move(opened));
  return fd;
}

// ---- the operations ----------------------------------------------------------------------------------------------

Result<OpenFile> StoreFiles::open_at(OpenFile dir, const std::string& path, int flags) {
  if (path.empty()) return io_error(ENOENT, "open");
  const auto found = place_of(dir, path, Look::open);
  if (!found) return Failure(found.error());
  return *found ? open_place(dir, path, **found, flags) : base_.open_at(dir, path, flags);
}

/// `path`: of the place, relative to `dir`.
Result<OpenFile> StoreFiles::open_place(OpenFile dir, const std::string& path, const Place& place, int flags) {
  if (!place.known->on_directory) return open_inside(place, flags);
  if ((flags & O_ACCMODE) != O_RDONLY) return refused("open");
  auto fd = base_.open_at(dir, path, flags);
  // The directory of the store itself exists only on disk.
  const bool may_be_embedded = !fd && is_missing(fd.error()) && !place.inside.empty();
  auto embedded = may_be_embedded ? open_inside(place, flags) : fd;
  // What is on disk, but of another kind, is not embedded.
  if (!fd) return embedded || embedded.error().sys != ENOENT ? embedded : fd;
  const auto status = base_.status(*fd);
  const struct stat& store = place.known->status;
  const bool is_other =
      place.inside.empty() && status && (status->st_ino != store.st_ino || status->st_dev != store.st_dev);
  if (!status || is_other) {
    base_.close(*fd);
    return status ? codec::stale("another directory replaced the store") : Failure(status.error());
  }
  enter(*fd, Opened{place, nullptr, !S_ISDIR(status->st_mode)});
  return fd;
}

Result<OpenFile> StoreFiles::reopen(OpenFile file, int flags) {
  const auto known = opened(file);
  if (!known) return base_.reopen(file, flags);
  if ((flags & O_ACCMODE) != O_RDONLY) return refused("open");
  // Callers see a store that is a file as a directory, so they may pass O_DIRECTORY.
  const bool is_directory_of_file = !known->leaf && !known->place.known->on_directory;
  auto again = base_.reopen(file, is_directory_of_file ? flags & ~O_DIRECTORY : flags);
  if (again) enter(*again, *known);
  return again;
}

Result<OpenFile> StoreFiles::open_named(const std::string& path, int flags) {
  if ((flags & O_ACCMODE) != O_RDONLY) return base_.open_named(path, flags);
  for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const std::string_view part = std::string_view(path).substr(0, end);
    if (has_store_suffix(part)) {
      const std::size_t slash = part.rfind('/');
      const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
      auto directory = base_.open_named(begin == 0 ? "." : path.substr(0, begin), O_PATH | O_DIRECTORY);
      if (!directory) return directory;
      const Descriptor opened(base_, *directory);
      const auto store = store_at(opened.handle(), std::string(part.substr(begin)), Look::open);
      if (!store) return Failure(store.error());
      const Place place{*store, end == std::string::npos ? "" : path.substr(end + 1)};
      if (*store) return open_place(opened.handle(), path.substr(begin), place, flags);
    }
    if (end == std::string::npos) return base_.open_named(path, flags);
  }
}

Result<std::vector<std::uint8_t>> StoreFiles::handle_of(OpenFile file) {
  // A handle would refer to the file on disk, not to what the descriptor represents.
  if (opened(file)) return io_error(EOPNOTSUPP, "handle");
  return base_.handle_of(file);
}

Result<std::size_t> StoreFiles::pread(OpenFile file, ByteSpan into, FileOffset at) {
  const auto known = opened(file);
  if (!known || !known->leaf) return base_.pread(file, into, at);
  const std::uint64_t size = known->leaf->size();
  if (at.value >= size) return std::size_t{0};
  const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size - at.value));
  if (auto done = known->leaf->read(at, into.first(step)); !done) return Failure(done.error());
  return step;
}

void StoreFiles::prefetch(OpenFile file, FileOffset at, std::uint64_t length) {
  const auto known = opened(file);
  if (known && known->leaf) {
    known->leaf->prefetch(at, length);
  } else {
    base_.prefetch(file, at, length);
  }
}

void StoreFiles::expect(OpenFile file, FileOffset at, std::uint64_t length) {
  const auto known = opened(file);
  if (known && known->leaf) {
    known->leaf->expect(at, length);
  } else {
    base_.expect(file, at, length);
  }
}

Result<void> StoreFiles::fetch(OpenFile file, FileOffset at, std::uint64_t length) {
  const auto known = opened(file);
  return known && known->leaf ? known->leaf->fetch(at, length) : base_.fetch(file, at, length);
}

Result<struct stat> StoreFiles::status(OpenFile file) {
  const auto known = opened(file);
  if (!known || known->is_member) return base_.status(file);
  // Directories on disk keep their own status.
  if (!known->leaf && known->place.known->on_directory) {
    auto status = base_.status(file);
    if (status && S_ISDIR(status->st_mode)) return status;
  }
  return status_inside(known->place);
}

Result<FileVersion> StoreFiles::version(OpenFile file) {
  return opened(file) ? ReadOnlyFiles::version(file) : base_.version(file);
}

Result<struct stat> StoreFiles::status_at(OpenFile dir, const std::string& path) {
  if (path.empty()) return io_error(ENOENT, "lookup");
  auto found = place_of(dir, path, Look::glance);
  if (!found) return Failure(found.error());
  const auto& place = *found;
  if (!place) return base_.status_at(dir, path);
  if (place->known->on_directory) {
    const std::size_t slash = path.rfind('/');
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    if (Store::is_hidden(name)) return io_error(ENOENT, "lookup");
    auto status = base_.status_at(dir, path);
    if (status || !is_missing(status.error())) return status;
  }
  if (!place->inside.empty() && !place->known->file) found = place_of(dir, path, Look::open);
  if (!found) return Failure(found.error());
  if (!place) return io_error(ENOENT, "lookup");
  return status_inside(*place);
}

Result<std::vector<DirectoryEntry>> StoreFiles::list(OpenFile dir_fd) {
  if (const auto known = opened(dir_fd); known && !known->leaf && !known->is_member)
    return list_inside(dir_fd, known->place);
  auto entries = base_.list(dir_fd);
  if (!entries) return entries;
  for (DirectoryEntry& entry : *entries) {
    if (entry.type != DT_REG || !has_store_suffix(entry.name)) continue;
    const auto store = store_at(dir_fd, entry.name, Look::glance);
    if (!store || *store) entry.type = store ? DT_DIR : DT_UNKNOWN;
  }
  return entries;
}

Result<std::vector<DirectoryEntry>> StoreFiles::list_inside(OpenFile dir_fd, const Place& place) {
  const Known& known = *place.known;
  std::vector<DirectoryEntry> entries;
  const auto status = base_.status(dir_fd);
  if (!status) return Failure(status.error());
  if (S_ISDIR(status->st_mode)) {
    auto on_disk = base_.list(dir_fd);
    if (!on_disk) return on_disk;
    entries = std::move(*on_disk);
    std::erase_if(entries, [](const DirectoryEntry& entry) { return Store::is_hidden(entry.name); });
  }
  const Content content = content_of(known);
  if (!content.store) {
    if (entries.empty()) return Failure(*content.damage);
    return entries;  // a damaged embed frame does not hide the files on disk
  }
  std::set<std::string> taken;
  for (const DirectoryEntry& entry : entries)
    taken.insert(entry.name);
  for (const auto& [name, is_directory] : content.store->list(place.inside)) {
    if (taken.contains(name)) continue;
    const std::uint64_t inode = inode_of(known.holder, join(place.inside, name));
    entries.push_back({name, inode, static_cast<unsigned char>(is_directory ? DT_DIR : DT_REG)});
  }
  return entries;
}

Result<std::vector<std::pair<std::string, std::uint64_t>>> StoreFiles::leaves(OpenFile file) {
  const auto known = opened(file);
  if (!known || known->leaf || !known->place.inside.empty())
    return codec::invalid("the descriptor is not that of a store");
  if (const auto listed = list_inside(file, known->place); !listed) return Failure(listed.error());
  const Content content = content_of(*known->place.known);
  if (!content.store) return std::vector<std::pair<std::string, std::uint64_t>>();
  return content.store->leaves();
}

Result<std::string> StoreFiles::read_link(OpenFile file) {
  const auto known = opened(file);
  if (known && !known->is_member) return io_error(EINVAL, "readlink");
  return base_.read_link(file);
}

Result<FileOffset> StoreFiles::seek(OpenFile file, FileOffset from, int whence) {
  const auto known = opened(file);
  if (!known || !known->leaf) return base_.seek(file, from, whence);
  const FileOffset end{known->leaf->size()};
  if (from >= end) return io_error(ENXIO, "lseek");
  if (whence == SEEK_HOLE) return end;
  const FileOffset data{from.value + known->leaf->zeros(from)};
  if (data >= end) return io_error(ENXIO, "lseek");
  return data;
}

}  // namespace cframefs::frame
