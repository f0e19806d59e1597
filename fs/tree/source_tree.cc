#include "fs/tree/source_tree.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include <dirent.h>
#include <fcntl.h>

#include "codec/base/malloc_ptr.h"
#include "frame/base/suffixes.h"
#include "frame/cframe/sparse_frame.h"
#include "frame/io/posix_acl.h"
#include "frame/io/system_version.h"
#include "frame/numpy/bloscpack_numpy.h"
#include "fs/caller/acting_as.h"

namespace cframefs::fs {
namespace {

using frame::kSparseIndexName;

// Flags that keep open(2) from blocking: another program may have replaced the file by a pipe, for instance, which
// waits for its writer.
constexpr int kNeverWait = O_NONBLOCK | O_NOCTTY;

// How often, and at what interval, a recently changed container is examined before it counts as damaged.
constexpr int kTornLooks = 20;
constexpr auto kTornPause = std::chrono::milliseconds(1);

// Size of a directory whose names a look-up lists: some 300,000 names. More would take too much time and memory.
constexpr off_t kMostListedBytes = off_t{16} << 20;

/// Returns whether the daemon lacks permission, which holds until owner or mode change.
bool is_refused(const codec::Error& error) {
  return error.sys == EACCES || error.sys == EPERM;
}

/// Returns whether the error describes the content, and so holds as long as the file does not change. A lack of
/// descriptors or memory, or a failing disk, concerns one call only.
bool tells_of_the_file(const codec::Error& error) {
  return error.kind == codec::ErrorKind::corruption || error.kind == codec::ErrorKind::unsupported;
}

/// Returns the error with `path` as its path, if it has none.
codec::Failure of(codec::Error error, const std::string& path) {
  if (error.path.empty()) error.path = path;
  return codec::Failure(std::move(error));
}

EntryKind kind_of_mode(mode_t mode) {
  if (S_ISDIR(mode)) return EntryKind::directory;
  if (S_ISREG(mode)) return EntryKind::plain;
  return S_ISLNK(mode) ? EntryKind::symlink : EntryKind::other;
}

/// Returns the mode of a file that is reached through its own directory: for each class of users the permissions that
/// both grant. If a class of the file is another class for the directory, the directory grants it only what all its
/// classes have, or `listed` if the directory has an access control list.
mode_t joint_rights(const struct stat& file, const struct stat& directory, std::optional<mode_t> listed) {
  const mode_t others = listed.value_or(directory.st_mode >> 6U & directory.st_mode >> 3U & directory.st_mode);
  const bool same_user = file.st_uid == directory.st_uid;
  const bool same_classes = same_user && file.st_gid == directory.st_gid && !listed;
  mode_t rights = file.st_mode & ~mode_t{0777};
  for (const unsigned shift : {6U, 3U, 0U}) {
    const bool same = shift == 6U ? same_user : same_classes;
    const mode_t in_directory = (same ? directory.st_mode >> shift : others) & 07U;
    mode_t allowed = 0;
    if ((in_directory & 01U) != 0) allowed = 05;
    if ((in_directory & 03U) == 03) allowed = 07;
    rights |= (file.st_mode & allowed << shift);
  }
  return rights;
}

/// Returns whether the file is an empty frame, which a power cut leaves of a frame that was created just before. Such
/// frames are never sparse.
bool is_blank(const std::string& path, const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_size == 0 && frame::is_frame_name(path);
}

}  // namespace

codec::Failure no_entry(const std::string& name) {
  return of(codec::io_error(ENOENT, "lookup").value(), name);
}

bool leads_elsewhere(const codec::Error& error) {
  return is_missing(error) || error.sys == ELOOP || error.sys == EISDIR || error.sys == ENXIO;
}

SourceTree::SourceTree(frame::ReadFileOps& files, const MountOptions& options)
    : files_(files),
      options_(options),
      rules_(options.names, options.b2nd, options.new_frames.npy_as_array),
      links_(files, rules_, options.source),
      spelling_(std::make_unique<NameSpelling>(files)) {}

codec::Result<void> SourceTree::open(const std::string& remote_root) {
  root_path_ = remote_root;
  if (root_path_.empty()) {
    const codec::MallocPtr<char> resolved(realpath(options_.source.c_str(), nullptr));
    if (!resolved) return of(codec::io_error(errno, "open").value(), options_.source);
    root_path_ = resolved.get();
  }
  auto fd = files_.open_named(root_path_, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return of(fd.error(), root_path_);
  auto opened = frame::share_descriptor(files_, *fd);
  auto status = files_.status(opened->handle());
  if (!status) return of(status.error(), root_path_);
  const bool is_directory = S_ISDIR(status->st_mode);
  const bool is_sparse = is_directory && NameMapper::has_container_suffix(root_path_) &&
                         files_.status_at(opened->handle(), kSparseIndexName).has_value();
  if (is_directory && !is_sparse) {
    if (options_.offset == 0) {
      root_ = std::move(opened);
      links_.open(root_);
      return {};
    }
    return of(codec::invalid("offset= requires a source that is one file; this is a directory").value(), root_path_);
  }
  if (!is_directory && !S_ISREG(status->st_mode)) {
    return of(codec::invalid("the source is neither a directory nor a regular file").value(), root_path_);
  }
  // A single file: the tree is its directory, with no other entry.
  const std::size_t slash = root_path_.rfind('/');
  single_name_ = root_path_.substr(slash + 1);
  root_path_.resize(slash == 0 ? 1 : slash);
  auto directory = files_.open_named(root_path_, O_RDONLY | O_DIRECTORY);
  if (!directory) return of(directory.error(), root_path_);
  root_ = frame::share_descriptor(files_, *directory);
  links_.open(root_);
  return {};
}

bool SourceTree::may_be_container(const std::string& name) const {
  if (is_single_file()) return name == single_name_;
  return options_.detect == Detect::content || NameMapper::has_container_suffix(name);
}

codec::Result<EntryKind> SourceTree::kind_of(frame::OpenFile directory, const std::string& name) const {
  auto status = files_.status_at(directory, name);
  if (status) return kind_from(directory, name, status->st_mode);
  return is_missing(status.error()) ? codec::Result<EntryKind>(EntryKind::none) : of(status.error(), name);
}

bool SourceTree::keeps_kind(EntryKind kind, const std::string& name) const {
  if (is_container(kind)) return may_be_container(name);
  return kind != EntryKind::plain || !NameMapper::has_container_suffix(name);
}

/// Returns whether a directory is a sparse frame. Returns false if the daemon lacks permission.
codec::Result<bool> SourceTree::has_index(frame::OpenFile directory, const std::string& name) const {
  const auto answer = [](const codec::Error& error) {
    return leads_elsewhere(error) || is_refused(error) ? codec::Result<bool>(false) : codec::Failure(error);
  };
  auto fd = files_.open_at(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) return answer(fd.error());
  const frame::Descriptor entry(files_, *fd);
  const auto index = files_.status_at(entry.handle(), kSparseIndexName);
  return index ? codec::Result<bool>(true) : answer(index.error());
}

/// Returns the status of a sparse frame's index, with the mode that programs see.
codec::Result<struct stat> SourceTree::sparse_status(frame::OpenFile directory, const std::string& name) const {
  auto fd = files_.open_at(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) return codec::Failure(fd.error());
  const frame::Descriptor entry(files_, *fd);
  auto index = files_.status_at(entry.handle(), kSparseIndexName);
  auto status = index ? files_.status(entry.handle()) : index;
  if (!status) return status;
  std::optional<mode_t> listed;
  if (const auto acl = files_.get_attribute(entry.handle(), std::string(frame::kAccessAcl))) {
    // If the daemon can act as the caller, it checks the caller's own rights when the frame is opened.
    const frame::AclBounds bounds = frame::bounds_of(*acl);
    listed = ActingAs::is_possible() ? bounds.most : bounds.least;
  }
  index->st_mode = joint_rights(*index, *status, listed);
  return index;
}

bool SourceTree::kind_depends_on_content(const std::string& name) const {
  if (is_single_file() || !may_be_container(name)) return false;
  return rules_.needs_content_probe(name) || options_.detect == Detect::content ||
         frame::is_shared_suffix(NameMapper::suffix_of(name));
}

codec::Result<EntryKind> SourceTree::kind_from(frame::OpenFile directory, const std::string& name, mode_t mode) const {
  const EntryKind kind = kind_of_mode(mode);
  if (kind == EntryKind::symlink) {
    return !is_single_file() && links_.shows_shortened(directory, name) ? EntryKind::frame_link : kind;
  }
  if (!may_be_container(name)) return kind;
  if (kind == EntryKind::directory) {
    const auto is_sparse = has_index(directory, name);
    if (!is_sparse) return codec::Failure(is_sparse.error());
    return *is_sparse ? EntryKind::sparse_frame : kind;
  }
  if (kind != EntryKind::plain) return kind;
  if (rules_.needs_content_probe(name)) {
    const auto is_array = is_packed_array(directory, name);
    if (!is_array) return codec::Failure(is_array.error());
    if (*is_array) return EntryKind::packed_array;
  }
  const bool by_suffix = options_.detect == Detect::suffix && !frame::is_shared_suffix(NameMapper::suffix_of(name));
  if (by_suffix || is_single_file()) return EntryKind::frame;
  auto fd = open_to_look(directory, name);
  // A file that the daemon may not read is passed through; opening it fails with the system's error.
  if (!fd) return is_refused(fd.error()) ? codec::Result<EntryKind>(kind) : codec::Failure(fd.error());
  const frame::Descriptor file(files_, *fd);
  auto summary = frame::summarise(files_, file.handle());
  if (!summary && !tells_of_the_file(summary.error())) return codec::Failure(summary.error());
  const auto status = files_.status(file.handle());
  if (status && is_blank(name, *status)) return EntryKind::frame;
  return summary && summary->kind == frame::ContainerKind::none ? kind : EntryKind::frame;
}

/// Opens a file without updating its access time, where the daemon may do so.
codec::Result<frame::OpenFile> SourceTree::open_to_look(frame::OpenFile directory, const std::string& name) const {
  auto fd = files_.open_at(directory, name, O_RDONLY | kNeverWait | O_NOATIME);
  return !fd && fd.error().sys == EPERM ? files_.open_at(directory, name, O_RDONLY | kNeverWait) : fd;
}

/// Returns false for a file that cannot be read or is damaged: it shows as any other Bloscpack file, and opening it
/// reports the error.
codec::Result<bool> SourceTree::is_packed_array(frame::OpenFile directory, const std::string& name) const {
  auto fd = open_to_look(directory, name);
  if (!fd) return is_refused(fd.error()) ? codec::Result<bool>(false) : codec::Failure(fd.error());
  const auto file = frame::share_descriptor(files_, *fd);
  const auto container = frame::open_container(files_, file, nullptr, frame_begin());
  if (!container) {
    return tells_of_the_file(container.error()) ? codec::Result<bool>(false) : codec::Failure(container.error());
  }
  const auto pack = frame::numpy_pack_of(**container);
  if (!pack && !tells_of_the_file(pack.error())) return codec::Failure(pack.error());
  return pack && *pack;
}

codec::Result<EntryStat> SourceTree::probe(frame::OpenFile directory, const std::string& name) const {
  return revalidate(directory, name, EntryStat{});
}

codec::Result<EntryStat> SourceTree::probe_entry(frame::OpenFile directory, const std::string& name) const {
  auto status = files_.status_at(directory, name);
  if (!status) return of(status.error(), name);
  auto kind = name == "." ? EntryKind::directory : kind_from(directory, name, status->st_mode);
  if (!kind) return of(kind.error(), name);
  return entry_from(directory, name, *kind, *status);
}

codec::Result<EntryStat> SourceTree::entry_from(frame::OpenFile directory, const std::string& name, EntryKind kind,
                                                const struct stat& status) const {
  EntryStat probe;
  // Attributes do not distinguish frame_link, which matters for names only.
  probe.kind = kind == EntryKind::frame_link ? EntryKind::symlink : kind;
  probe.status = status;
  probe.entry_inode = status.st_ino;
  if (kind == EntryKind::sparse_frame) {
    auto index = sparse_status(directory, name);
    if (!index) return of(index.error(), name);
    probe.status = *index;
  }
  probe.identity = frame::version_of(probe.status);
  probe.size = static_cast<std::uint64_t>(probe.status.st_size);
  return probe;
}

EntryStat SourceTree::new_entry(EntryKind kind, const struct stat& status, std::int32_t chunksize) {
  EntryStat entry;
  entry.kind = kind;
  entry.status = status;
  entry.entry_inode = status.st_ino;
  entry.chunksize = chunksize;
  entry.identity = frame::version_of(status);
  return entry;
}

codec::Result<EntryStat> SourceTree::revalidate(frame::OpenFile directory, const std::string& name,
                                                const EntryStat& known) const {
  for (int attempt = 1;; ++attempt) {
    auto probe = probe_entry(directory, name);
    if (!probe || !is_container(probe->kind)) return probe;
    if (known.kind == probe->kind && known.identity.still_matches(probe->identity)) {
      probe->size = known.size;
      probe->chunksize = known.chunksize;
      probe->damage = known.damage;
      return probe;
    }
    auto looked = probe_container(directory, name, std::move(*probe));
    // A frame that another program is appending to looks damaged between two of its writes.
    if (!looked || !looked->damage || !looked->identity.racy || attempt == kTornLooks) return looked;
    std::this_thread::sleep_for(kTornPause);
  }
}

codec::Result<EntryStat> SourceTree::probe_container(frame::OpenFile directory, const std::string& name,
                                                     EntryStat probe) const {
  auto fd = open_to_look(directory, name);
  if (!fd) {
    // The file was removed or renamed, or there are too many open files: the container is not damaged.
    if (!is_refused(fd.error())) return of(fd.error(), name);
    probe.damage = fd.error();
    return probe;
  }
  const auto file = frame::share_descriptor(files_, *fd);
  auto opened = files_.status(file->handle());
  if (!opened) return of(opened.error(), name);
  // The result for another file must not be stored as this one's.
  if (opened->st_dev != probe.status.st_dev || opened->st_ino != probe.entry_inode) {
    return of(codec::stale("another file has replaced it").value(), name);
  }
  // A single-file mount of a blank frame is refused below, as for any file that is no container.
  if (probe.kind == EntryKind::frame && !is_single_file() && is_blank(name, probe.status)) return probe;
  auto summary = frame::summarise(files_, file->handle(), frame_begin());
  if (!summary) {
    if (!tells_of_the_file(summary.error())) return of(summary.error(), name);
    probe.damage = summary.error();
  } else if (summary->kind == frame::ContainerKind::none) {
    const std::string what(frame::kNoContainer);
    probe.damage = codec::corrupt(is_single_file() ? what : what + ", despite the suffix of its name").value();
  } else {
    probe.size = summary->nbytes;
    probe.chunksize = summary->chunksize;
    const bool is_array = NameMapper::has_array_suffix(name);
    // Programs need not open a file of 0 bytes to read it: a damaged container must not show as one.
    const bool looks_empty = summary->nbytes == 0;
    if (looks_empty || (options_.b2nd != ArrayView::chunks && (is_array || summary->has_metalayers))) {
      if (auto done = probe_view(is_array, file, probe); !done) return of(done.error(), name);
    }
  }
  return probe;
}

/// Determines the size of a file that may be an array. Only the array's metalayer contains it.
codec::Result<void> SourceTree::probe_view(bool is_array, const std::shared_ptr<const frame::Descriptor>& file,
                                           EntryStat& probe) const {
  auto container = frame::open_container(files_, file, nullptr, frame_begin());
  if (!container && !tells_of_the_file(container.error())) return codec::Failure(container.error());
  // A frame that is no array has the size of its header; opening the frame reports the error.
  if (!container && !is_array && probe.size > 0) return {};
  auto view = container ? frame::make_view(std::move(*container), options_.b2nd, is_array)
                        : codec::Result<std::shared_ptr<const frame::FlatView>>(codec::Failure(container.error()));
  if (view) {
    probe.size = (*view)->size();
  } else {
    if (!tells_of_the_file(view.error())) return codec::Failure(view.error());
    probe.damage = view.error();
  }
  return {};
}

codec::Result<FoundEntry> SourceTree::find(frame::OpenFile directory, const std::string& shown,
                                           const Lacks& lacks) const {
  const auto probed = [&](const std::string& name) -> codec::Result<FoundEntry> {
    auto entry = probe_entry(directory, name);
    if (!entry) return codec::Failure(entry.error());
    return FoundEntry{name, std::move(*entry)};
  };
  if (is_single_file()) {
    auto entries = list(directory);
    if (!entries) return codec::Failure(entries.error());
    return entries->front().shown == shown ? probed(single_name_) : no_entry(shown);
  }
  std::optional<bool> folds_case = spelling_->folds_case(directory, NameMapper::on_disk(shown));
  // Most names are their owner's, so that one look at the entry tells all.
  struct Look {
    std::string name;
    struct stat status {};
  };
  Look last;
  const auto kind_of_candidate = [&](const std::string& name) -> codec::Result<EntryKind> {
    if (lacks && lacks(name)) return EntryKind::none;
    const auto status = files_.status_at(directory, name);
    if (!status)
      return is_missing(status.error()) ? codec::Result<EntryKind>(EntryKind::none) : of(status.error(), name);
    last = {name, *status};
    return kind_from(directory, name, status->st_mode);
  };
  auto owner = rules_.resolve_shown(folds_case.value_or(false) ? NameSpelling::with_known_suffix(shown) : shown,
                                    kind_of_candidate);
  if (!owner) return of(owner.error(), shown);
  if (owner->kind == EntryKind::none) return no_entry(shown);
  if (!folds_case) folds_case = spelling_->folds_case(directory, owner->name);
  if (folds_case.value_or(false)) {
    const auto name = spelling_->of(directory, owner->name);
    return name ? probed(*name) : of(name.error(), shown);
  }
  if (last.name != owner->name) return probed(owner->name);
  auto entry = entry_from(directory, owner->name, owner->kind, last.status);
  if (!entry) return codec::Failure(entry.error());
  return FoundEntry{std::move(owner->name), std::move(*entry)};
}

std::optional<std::vector<std::string>> SourceTree::exact_names(frame::OpenFile directory) const {
  const auto status = files_.status(directory);
  if (!status || status->st_size > kMostListedBytes) return std::nullopt;
  auto entries = files_.list(directory);
  if (!entries) return std::nullopt;
  std::vector<std::string> names;
  names.reserve(entries->size());
  for (frame::DirectoryEntry& entry : *entries)
    names.push_back(std::move(entry.name));
  if (spelling_->folds_in(directory, names).value_or(true)) return std::nullopt;
  return names;
}

codec::Result<std::vector<ShownEntry>> SourceTree::list(frame::OpenFile directory) const {
  std::vector<StoredEntry> stored;
  if (is_single_file()) {
    auto kind = kind_of(directory, single_name_);
    if (!kind) return of(kind.error(), single_name_);
    if (*kind == EntryKind::none) return no_entry(single_name_);
    return rules_.show({StoredEntry{single_name_, *kind}});
  }
  auto entries = files_.list(directory);
  if (!entries) return codec::Failure(entries.error());
  stored.reserve(entries->size());
  const bool folds_case = !entries->empty() && spelling_->folds_case(directory, entries->front().name).value_or(false);
  for (frame::DirectoryEntry& entry : *entries) {
    if (folds_case) entry.name = NameSpelling::with_known_suffix(entry.name);
    // The name depends on the content only where it could be shortened, and the type where a directory may be a sparse
    // frame. For other entries the type in the directory is enough.
    EntryKind kind = kind_of_mode(DTTOIF(entry.type));
    const bool by_content = options_.detect == Detect::content && kind == EntryKind::directory;
    if (by_content || NameMapper::has_container_suffix(entry.name)) {
      auto looked = kind_from(directory, entry.name, DTTOIF(entry.type));
      if (looked) kind = *looked;
    }
    stored.push_back({std::move(entry.name), kind, entry.inode});
  }
  return rules_.show(std::move(stored), folds_case);
}

codec::Result<std::shared_ptr<const frame::Descriptor>> SourceTree::open_entry(frame::OpenFile directory,
                                                                               const std::string& name,
                                                                               int flags) const {
  auto fd = files_.open_at(directory, name, flags | kNeverWait);
  if (!fd) return of(fd.error(), name);
  return frame::share_descriptor(files_, *fd);
}

codec::Result<frame::FileVersion> SourceTree::identity(frame::OpenFile file, EntryKind kind) const {
  auto status = kind == EntryKind::sparse_frame ? files_.status_at(file, kSparseIndexName) : files_.status(file);
  if (!status) return codec::Failure(status.error());
  frame::FileVersion version = frame::version_of(*status);
  if (!version.racy || !files_.is_remote()) return version;
  // The time of an object is that of its upload, in seconds; a tag tells more.
  const auto object = version_of_object(file, kind);
  version.racy = !object || object->racy;
  return version;
}

codec::Result<frame::FileVersion> SourceTree::version_of_object(frame::OpenFile file, EntryKind kind) const {
  if (kind != EntryKind::sparse_frame) return files_.version(file);
  const auto index = open_entry(file, kSparseIndexName, O_PATH);
  return index ? files_.version((*index)->handle()) : codec::Failure(index.error());
}

}  // namespace cframefs::fs
