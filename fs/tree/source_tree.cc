#include "fs/tree/source_tree.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include <dirent.h>
#include <fcntl.h>

#include "frame/base/suffixes.h"
#include "frame/cframe/sparse_frame.h"
#include "frame/io/posix_acl.h"
#include "frame/numpy/bloscpack_numpy.h"
#include "fs/caller/acting_as.h"

namespace cframefs::fs {
namespace {

using frame::kSparseIndexName;

// Whatever has come into the place of a file since it was looked at, opening it must not wait: a pipe for its writer,
// for instance.
constexpr int kNeverWait = O_NONBLOCK | O_NOCTTY;

// How often, and how far apart, a container that has just been changed is looked at before it counts as damaged.
constexpr int kTornLooks = 20;
constexpr auto kTornPause = std::chrono::milliseconds(1);

bool is_missing(const codec::Error& error) {
  return error.sys == ENOENT || error.sys == ENOTDIR;
}

/// The daemon may not read the file, as long as its owner and mode stay what they are.
bool is_refused(const codec::Error& error) {
  return error.sys == EACCES || error.sys == EPERM;
}

/// Whether the error says something of the bytes that were read, and so holds for as long as the file stays the same. A
/// lack of descriptors or memory, or a disk that fails, is the answer to one call.
bool tells_of_the_file(const codec::Error& error) {
  return error.kind == codec::ErrorKind::corruption || error.kind == codec::ErrorKind::unsupported;
}

/// The error with what it is about.
codec::Failure of(codec::Error error, const std::string& path) {
  if (error.path.empty()) error.path = path;
  return codec::Failure(std::move(error));
}

codec::Failure no_entry(const std::string& name) {
  return of(codec::io_error(ENOENT, "lookup").value(), name);
}

EntryKind kind_of_mode(mode_t mode) {
  if (S_ISDIR(mode)) return EntryKind::directory;
  if (S_ISREG(mode)) return EntryKind::plain;
  return S_ISLNK(mode) ? EntryKind::symlink : EntryKind::other;
}

/// The rights that programs have to a file in a directory of its own, for each class of users what both allow. A class
/// of the file's that is another one for the directory has there what `others` says: what all classes have, or with an
/// access control list its bounds.
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

/// An empty frame: what a power cut leaves of one that was made just before. Sparse ones are never made here.
bool is_blank(const std::string& path, const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_size == 0 && frame::is_frame_name(path);
}

}  // namespace

bool leads_elsewhere(const codec::Error& error) {
  return is_missing(error) || error.sys == ELOOP || error.sys == EISDIR || error.sys == ENXIO;
}

SourceTree::SourceTree(frame::FileOps& files, const MountOptions& options)
    : files_(files),
      options_(options),
      rules_(options.names, options.b2nd),
      spelling_(std::make_unique<NameSpelling>(files)) {}

codec::Result<void> SourceTree::open() {
  char* resolved = realpath(options_.source.c_str(), nullptr);
  if (resolved == nullptr) return of(codec::io_error(errno, "open").value(), options_.source);
  root_path_ = resolved;
  std::free(resolved);

  auto fd = files_.open_named(root_path_, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return of(fd.error(), root_path_);
  auto opened = std::make_shared<const frame::Descriptor>(files_, *fd);
  auto status = files_.status(opened->fd());
  if (!status) return of(status.error(), root_path_);
  const bool is_directory = S_ISDIR(status->st_mode);
  const bool is_sparse = is_directory && rules_.has_container_suffix(root_path_) &&
                         files_.status_at(opened->fd(), kSparseIndexName).has_value();
  if (is_directory && !is_sparse) {
    if (options_.offset == 0) {
      root_ = std::move(opened);
      return {};
    }
    return of(codec::invalid("offset= is for a source that is one file, and this is a directory").value(), root_path_);
  }
  if (!is_directory && !S_ISREG(status->st_mode)) {
    return of(codec::invalid("the source is neither a directory nor a regular file").value(), root_path_);
  }
  // One file: the tree is the directory that holds it, with nothing else in it.
  const std::size_t slash = root_path_.rfind('/');
  single_name_ = root_path_.substr(slash + 1);
  root_path_.resize(slash == 0 ? 1 : slash);
  auto directory = files_.open_named(root_path_, O_RDONLY | O_DIRECTORY);
  if (!directory) return of(directory.error(), root_path_);
  root_ = std::make_shared<const frame::Descriptor>(files_, *directory);
  return {};
}

bool SourceTree::may_be_container(const std::string& name) const {
  if (is_single_file()) return name == single_name_;
  return options_.detect == Detect::content || rules_.has_container_suffix(name);
}

codec::Result<EntryKind> SourceTree::kind_of(int directory, const std::string& name) const {
  auto status = files_.status_at(directory, name);
  if (status) return kind_from(directory, name, status->st_mode);
  return is_missing(status.error()) ? codec::Result<EntryKind>(EntryKind::none) : of(status.error(), name);
}

bool SourceTree::keeps_kind(EntryKind kind, const std::string& name) const {
  if (is_container(kind)) return may_be_container(name);
  return kind != EntryKind::plain || !rules_.has_container_suffix(name);
}

/// Whether a directory is a sparse frame. False if the daemon may not look into it.
codec::Result<bool> SourceTree::has_index(int directory, const std::string& name) const {
  const auto answer = [](const codec::Error& error) {
    return leads_elsewhere(error) || is_refused(error) ? codec::Result<bool>(false) : codec::Failure(error);
  };
  auto fd = files_.open_at(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) return answer(fd.error());
  const frame::Descriptor entry(files_, *fd);
  const auto index = files_.status_at(entry.fd(), kSparseIndexName);
  return index ? codec::Result<bool>(true) : answer(index.error());
}

/// Of a sparse frame what its index says, with the rights that programs have.
codec::Result<struct stat> SourceTree::sparse_status(int directory, const std::string& name) const {
  auto fd = files_.open_at(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) return codec::Failure(fd.error());
  const frame::Descriptor entry(files_, *fd);
  auto index = files_.status_at(entry.fd(), kSparseIndexName);
  const auto status = index ? files_.status(entry.fd()) : index;
  if (!status) return status;
  std::optional<mode_t> listed;
  if (const auto acl = files_.get_attribute(entry.fd(), std::string(frame::kAccessAcl))) {
    // The daemon looks as the caller when the frame is opened, if it can.
    const frame::AclBounds bounds = frame::bounds_of(*acl);
    listed = ActingAs::is_possible() ? bounds.most : bounds.least;
  }
  index->st_mode = joint_rights(*index, *status, listed);
  return index;
}

codec::Result<EntryKind> SourceTree::kind_from(int directory, const std::string& name, mode_t mode) const {
  const EntryKind kind = kind_of_mode(mode);
  if (kind == EntryKind::symlink) return link_kind(directory, name);
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
  const bool by_suffix = options_.detect == Detect::suffix && !frame::is_shared_suffix(rules_.suffix_of(name));
  if (by_suffix || is_single_file()) return EntryKind::frame;
  auto fd = open_to_look(directory, name);
  // What the daemon may not look into is passed through, and fails there in its own way.
  if (!fd) return is_refused(fd.error()) ? codec::Result<EntryKind>(kind) : codec::Failure(fd.error());
  const frame::Descriptor file(files_, *fd);
  auto summary = frame::summarise(files_, file.fd());
  if (!summary && !tells_of_the_file(summary.error())) return codec::Failure(summary.error());
  const auto status = files_.status(file.fd());
  if (status && is_blank(name, *status)) return EntryKind::frame;
  return summary && summary->kind == frame::ContainerKind::none ? kind : EntryKind::frame;
}

/// Without a trace in the times of access, where the daemon may do so.
codec::Result<int> SourceTree::open_to_look(int directory, const std::string& name) const {
  auto fd = files_.open_at(directory, name, O_RDONLY | kNeverWait | O_NOATIME);
  return !fd && fd.error().sys == EPERM ? files_.open_at(directory, name, O_RDONLY | kNeverWait) : fd;
}

/// A file that cannot be read, or is damaged, shows as any other Bloscpack file, and fails there in its own way.
codec::Result<bool> SourceTree::is_packed_array(int directory, const std::string& name) const {
  auto fd = open_to_look(directory, name);
  if (!fd) return is_refused(fd.error()) ? codec::Result<bool>(false) : codec::Failure(fd.error());
  const auto file = std::make_shared<const frame::Descriptor>(files_, *fd);
  const auto container = frame::open_container(files_, file, nullptr, frame_begin());
  if (!container) {
    return tells_of_the_file(container.error()) ? codec::Result<bool>(false) : codec::Failure(container.error());
  }
  const auto pack = frame::numpy_pack_of(**container);
  if (!pack && !tells_of_the_file(pack.error())) return codec::Failure(pack.error());
  return pack && *pack;
}

codec::Result<EntryStat> SourceTree::probe(int directory, const std::string& name) const {
  return revalidate(directory, name, EntryStat{});
}

codec::Result<EntryStat> SourceTree::probe_entry(int directory, const std::string& name) const {
  auto status = files_.status_at(directory, name);
  if (!status) return of(status.error(), name);
  auto kind = name == "." ? EntryKind::directory : kind_from(directory, name, status->st_mode);
  if (!kind) return of(kind.error(), name);

  EntryStat probe;
  // That a link leads to a frame is a matter of its name alone.
  probe.kind = *kind == EntryKind::frame_link ? EntryKind::symlink : *kind;
  probe.status = *status;
  probe.entry_inode = status->st_ino;
  if (*kind == EntryKind::sparse_frame) {
    auto index = sparse_status(directory, name);
    if (!index) return of(index.error(), name);
    probe.status = *index;
  }
  probe.identity = frame::FileVersion::of(probe.status);
  probe.size = static_cast<std::uint64_t>(probe.status.st_size);
  return probe;
}

codec::Result<EntryStat> SourceTree::revalidate(int directory, const std::string& name, const EntryStat& known) const {
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
    if (!looked || !looked->damage || looked->identity.settled || attempt == kTornLooks) return looked;
    std::this_thread::sleep_for(kTornPause);
  }
}

codec::Result<EntryStat> SourceTree::probe_container(int directory, const std::string& name, EntryStat probe) const {
  auto fd = open_to_look(directory, name);
  if (!fd) {
    // Removed or renamed since it was looked at, or too many open files: no damage.
    if (!is_refused(fd.error())) return of(fd.error(), name);
    probe.damage = fd.error();
    return probe;
  }
  const auto file = std::make_shared<const frame::Descriptor>(files_, *fd);
  auto opened = files_.status(file->fd());
  if (!opened) return of(opened.error(), name);
  // What is learnt from another file must not be remembered as this one's.
  if (opened->st_dev != probe.status.st_dev || opened->st_ino != probe.entry_inode) {
    return of(codec::stale("another file has taken its place").value(), name);
  }
  // A mount of that one file alone is refused, as for any file that is no frame.
  if (probe.kind == EntryKind::frame && !is_single_file() && is_blank(name, probe.status)) return probe;
  auto summary = frame::summarise(files_, file->fd(), frame_begin());
  if (!summary) {
    if (!tells_of_the_file(summary.error())) return of(summary.error(), name);
    probe.damage = summary.error();
  } else if (summary->kind == frame::ContainerKind::none) {
    const std::string what(frame::kNoContainer);
    probe.damage = codec::corrupt(is_single_file() ? what : what + ", in spite of its name").value();
  } else {
    probe.size = summary->nbytes;
    probe.chunksize = summary->chunksize;
    const bool is_array = NameMapper::has_array_suffix(name);
    // Programs take a file of 0 bytes for one that they need not open: what cannot be opened must not look like one.
    const bool looks_empty = summary->nbytes == 0;
    if (looks_empty || (options_.b2nd != ArrayView::chunks && (is_array || summary->has_metalayers))) {
      if (auto done = probe_view(is_array, file, probe); !done) return of(done.error(), name);
    }
  }
  return probe;
}

/// The size of what may be an array, which only its metalayer knows.
codec::Result<void> SourceTree::probe_view(bool is_array, const std::shared_ptr<const frame::Descriptor>& file,
                                           EntryStat& probe) const {
  auto container = frame::open_container(files_, file, nullptr, frame_begin());
  if (!container && !tells_of_the_file(container.error())) return codec::Failure(container.error());
  // A frame that is no array has the size that its header says, and opening it will give the error.
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

codec::Result<std::string> SourceTree::resolve(int directory, const std::string& shown) const {
  if (is_single_file()) {
    auto entries = list(directory);
    if (!entries) return codec::Failure(entries.error());
    if (entries->front().shown == shown) return single_name_;
    return no_entry(shown);
  }
  const bool folds_case = spelling_->folds_case(directory, NameMapper::on_disk(shown));
  auto owner = rules_.resolve_shown(folds_case ? NameSpelling::with_known_suffix(shown) : shown,
                                    [&](const std::string& name) { return kind_of(directory, name); });
  if (!owner) return of(owner.error(), shown);
  if (owner->kind == EntryKind::none) return no_entry(shown);
  if (!spelling_->folds_case(directory, owner->name)) return owner->name;
  auto name = spelling_->of(directory, owner->name);
  return name ? name : of(name.error(), shown);
}

codec::Result<std::vector<ShownEntry>> SourceTree::list(int directory) const {
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
  const bool folds_case = !entries->empty() && spelling_->folds_case(directory, entries->front().name);
  for (frame::DirectoryEntry& entry : *entries) {
    if (folds_case) entry.name = NameSpelling::with_known_suffix(entry.name);
    // Names need the kind only where the name could be shortened, and types where a directory may be a frame; the rest
    // is told by the directory itself.
    EntryKind kind = kind_of_mode(DTTOIF(entry.type));
    const bool by_content = options_.detect == Detect::content && kind == EntryKind::directory;
    if (by_content || rules_.has_container_suffix(entry.name)) {
      auto looked = kind_from(directory, entry.name, DTTOIF(entry.type));
      if (looked) kind = *looked;
    }
    stored.push_back({std::move(entry.name), kind, entry.inode});
  }
  return rules_.show(std::move(stored), folds_case);
}

codec::Result<std::shared_ptr<const frame::Descriptor>> SourceTree::open_entry(int directory, const std::string& name,
                                                                               int flags) const {
  auto fd = files_.open_at(directory, name, flags | kNeverWait);
  if (!fd) return of(fd.error(), name);
  return std::make_shared<const frame::Descriptor>(files_, *fd);
}

codec::Result<frame::FileVersion> SourceTree::identity(int fd, EntryKind kind) const {
  auto status = kind == EntryKind::sparse_frame ? files_.status_at(fd, kSparseIndexName) : files_.status(fd);
  if (!status) return codec::Failure(status.error());
  return frame::FileVersion::of(*status);
}

codec::Result<std::string> SourceTree::target_of(int directory, const std::string& name) const {
  auto fd = files_.open_at(directory, name, O_PATH | O_NOFOLLOW);
  if (!fd) return codec::Failure(fd.error());
  return files_.read_link(frame::Descriptor(files_, *fd).fd());
}

/// Where an open directory lies now; empty if it cannot be told.
std::string SourceTree::path_of(int fd) const {
  const auto link = files_.open_named("/proc/self/fd/" + std::to_string(fd), O_PATH | O_NOFOLLOW);
  if (!link) return {};
  const auto path = files_.read_link(frame::Descriptor(files_, *link).fd());
  return path ? *path : std::string();
}

/// By the text alone: a link does not change its name when what it leads to comes or goes.
std::optional<std::string> SourceTree::place_in_source(int directory, const std::string& target) const {
  const std::filesystem::path root = path_of(root_->fd());
  std::filesystem::path place = target;
  if (place.is_relative()) place = std::filesystem::path(path_of(directory)) / place;
  place = place.lexically_normal();
  // The source may have been given by way of a link, as the target is.
  for (const std::filesystem::path& top : {root, std::filesystem::path(options_.source).lexically_normal()}) {
    if (!top.is_absolute()) continue;
    const std::string inner = place.lexically_relative(top).string();
    if (!inner.empty() && inner != "." && inner != ".." && !inner.starts_with("../")) return inner;
  }
  return std::nullopt;
}

EntryKind SourceTree::link_kind(int directory, const std::string& name) const {
  if (is_single_file() || !rules_.has_container_suffix(name)) return EntryKind::symlink;
  const auto target = target_of(directory, name);
  const bool shortened =
      target && rules_.shortens_link(name, *target) && place_in_source(directory, *target).has_value();
  return shortened ? EntryKind::frame_link : EntryKind::symlink;
}

std::string SourceTree::link_name(int directory, const std::string& shown, const std::string& target) const {
  const bool shortened = rules_.shortens_link(shown, target) && place_in_source(directory, target).has_value();
  return shortened ? rules_.new_name(shown) : shown;
}

/// Not every container shows without its suffix, and not everything with a container's suffix is one.
std::string SourceTree::shown_target(const std::string& target, const NameMapper::KindOf& kind_of_neighbour) const {
  const std::size_t slash = target.rfind('/');
  const std::string before = slash == std::string::npos ? "" : target.substr(0, slash + 1);
  const std::string name = target.substr(before.size());
  if (target.starts_with('/') || !rules_.has_container_suffix(name)) return target;
  const auto kind = kind_of_neighbour(name);
  // What is not there is shown as it will be when it is made; what lies outside of the source, as it is.
  if (!kind && !is_missing(kind.error())) return target;
  if (!kind || *kind == EntryKind::none) return rules_.shown_target(target);
  if (!is_shortened(*kind)) return target;
  std::string short_name = rules_.short_name_of(name, *kind);
  const auto owner = rules_.resolve_shown(short_name, kind_of_neighbour);
  return owner && owner->name == name ? before + short_name : target;
}

}  // namespace cframefs::fs
