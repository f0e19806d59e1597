#include "fs/source_tree.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include <dirent.h>
#include <fcntl.h>

#include "frame/advisory_lock.h"
#include "frame/numpy_pack.h"
#include "frame/sparse_frame.h"
#include "frame/suffixes.h"

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

codec::Failure no_entry(const std::string& path) {
  codec::Failure failure = codec::io_error(ENOENT, "lookup");
  failure.value().path = path;
  return failure;
}

template <class T>
codec::Result<T> at_path(codec::Result<T> result, const std::string& path) {
  if (!result && result.error().path.empty()) result.error().path = path;
  return result;
}

EntryKind kind_of_mode(mode_t mode) {
  if (S_ISDIR(mode)) return EntryKind::directory;
  if (S_ISREG(mode)) return EntryKind::plain;
  return S_ISLNK(mode) ? EntryKind::symlink : EntryKind::other;
}

/// An empty frame: what a power cut leaves of one that was made just before. Sparse ones are never made here.
bool is_blank(const std::string& path, const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_size == 0 && frame::is_frame_name(path);
}

}  // namespace

SourceTree::SourceTree(frame::FileOps& files, const MountOptions& options)
    : files_(files), options_(options), rules_(options.names, options.b2nd) {}

std::string SourceTree::join(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

codec::Result<void> SourceTree::open() {
  char* resolved = realpath(options_.source.c_str(), nullptr);
  if (resolved == nullptr) return at_path<void>(codec::io_error(errno, "open"), options_.source);
  root_path_ = resolved;
  std::free(resolved);

  auto fd = files_.open_named(root_path_, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return at_path<void>(codec::Failure(fd.error()), root_path_);
  frame::Descriptor opened(files_, *fd);
  auto status = files_.status(opened.fd());
  if (!status) return at_path<void>(codec::Failure(status.error()), root_path_);
  const bool is_folder = S_ISDIR(status->st_mode);
  const bool is_sparse = is_folder && rules_.has_container_suffix(root_path_) &&
                         files_.status_at(opened.fd(), kSparseIndexName).has_value();
  if (is_folder && !is_sparse) {
    if (options_.offset == 0) {
      root_ = std::move(opened);
      return {};
    }
    return at_path<void>(codec::invalid("offset= is for a source that is one file, and this is a folder"), root_path_);
  }
  if (!is_folder && !S_ISREG(status->st_mode)) {
    return at_path<void>(codec::invalid("the source is neither a folder nor a regular file"), root_path_);
  }
  // One file: the tree is the folder that holds it, with nothing else in it.
  const std::size_t slash = root_path_.rfind('/');
  single_name_ = root_path_.substr(slash + 1);
  root_path_.resize(slash == 0 ? 1 : slash);
  auto folder = files_.open_named(root_path_, O_RDONLY | O_DIRECTORY);
  if (!folder) return at_path<void>(codec::Failure(folder.error()), root_path_);
  root_ = frame::Descriptor(files_, *folder);
  return {};
}

bool SourceTree::may_be_container(const std::string& path) const {
  if (is_single_file()) return path == single_name_;
  return options_.detect == Detect::content || rules_.has_container_suffix(path);
}

codec::Result<EntryKind> SourceTree::kind_of(const std::string& path) const {
  auto status = files_.status_at(root_.fd(), path);
  if (!status)
    return is_missing(status.error()) ? codec::Result<EntryKind>(EntryKind::none) : codec::Failure(status.error());
  return kind_from(path, status->st_mode);
}

bool SourceTree::keeps_kind(EntryKind kind, const std::string& path) const {
  if (is_container(kind)) return may_be_container(path);
  return kind != EntryKind::plain || !rules_.has_container_suffix(path);
}

std::string SourceTree::attribute_path(const std::string& path, EntryKind kind) {
  return kind == EntryKind::sparse_frame ? join(path, kSparseIndexName) : path;
}

std::string SourceTree::lock_path(const std::string& path, EntryKind kind) {
  return frame::side_car_path(path, kind == EntryKind::sparse_frame);
}

codec::Result<EntryKind> SourceTree::kind_from(const std::string& path, mode_t mode) const {
  const EntryKind kind = kind_of_mode(mode);
  if (!may_be_container(path)) return kind;
  if (kind == EntryKind::directory) {
    const bool sparse = files_.status_at(root_.fd(), join(path, kSparseIndexName)).has_value();
    return sparse ? EntryKind::sparse_frame : kind;
  }
  if (kind != EntryKind::plain) return kind;
  if (rules_.depends_on_content(path)) {
    const auto is_array = is_packed_array(path);
    if (!is_array) return codec::Failure(is_array.error());
    if (*is_array) return EntryKind::packed_array;
  }
  if (options_.detect == Detect::suffix || is_single_file()) return EntryKind::frame;
  auto fd = files_.open_at(root_.fd(), path, O_RDONLY | kNeverWait);
  // What nobody lets the daemon look into is passed through, and fails there in its own way.
  if (!fd) return is_refused(fd.error()) ? codec::Result<EntryKind>(kind) : codec::Failure(fd.error());
  const frame::Descriptor file(files_, *fd);
  auto summary = frame::summarise(files_, file.fd());
  if (!summary && !tells_of_the_file(summary.error())) return codec::Failure(summary.error());
  const auto status = files_.status(file.fd());
  if (status && is_blank(path, *status)) return EntryKind::frame;
  return summary && summary->kind == frame::ContainerKind::none ? kind : EntryKind::frame;
}

/// A file that cannot be read, or is damaged, shows as any other Bloscpack file, and fails there in its own way.
codec::Result<bool> SourceTree::is_packed_array(const std::string& path) const {
  auto fd = files_.open_at(root_.fd(), path, O_RDONLY | kNeverWait);
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

codec::Result<Probe> SourceTree::probe(const std::string& path) const {
  return probe_again(path, Probe{});
}

codec::Result<Probe> SourceTree::probe_entry(const std::string& path) const {
  auto status = files_.status_at(root_.fd(), path.empty() ? "." : path);
  if (!status) return at_path<Probe>(codec::Failure(status.error()), path);
  auto kind = path.empty() ? EntryKind::directory : kind_from(path, status->st_mode);
  if (!kind) return at_path<Probe>(codec::Failure(kind.error()), path);

  Probe probe;
  probe.kind = *kind;
  probe.status = *status;
  probe.entry_inode = status->st_ino;
  if (*kind == EntryKind::sparse_frame) {
    auto index = files_.status_at(root_.fd(), join(path, kSparseIndexName));
    if (!index) return at_path<Probe>(codec::Failure(index.error()), path);
    probe.status = *index;
  }
  probe.identity = frame::Identity::of(probe.status);
  probe.size = static_cast<std::uint64_t>(probe.status.st_size);
  if (probe.kind == EntryKind::symlink) {
    if (auto target = read_link(path)) probe.size = target->size();
  }
  return probe;
}

codec::Result<Probe> SourceTree::probe_again(const std::string& path, const Probe& known) const {
  for (int attempt = 1;; ++attempt) {
    auto probe = probe_entry(path);
    if (!probe || !is_container(probe->kind)) return probe;
    if (known.kind == probe->kind && known.identity.is_still(probe->identity)) {
      probe->size = known.size;
      probe->chunksize = known.chunksize;
      probe->damage = known.damage;
      return probe;
    }
    auto looked = probe_container(path, std::move(*probe));
    // A frame that another program is appending to looks damaged between two of its writes.
    if (!looked || !looked->damage || looked->identity.settled || attempt == kTornLooks) return looked;
    std::this_thread::sleep_for(kTornPause);
  }
}

codec::Result<Probe> SourceTree::probe_container(const std::string& path, Probe probe) const {
  auto fd = files_.open_at(root_.fd(), path, O_RDONLY | kNeverWait);
  if (!fd) {
    // Removed or renamed since it was looked at, or too many open files: no damage.
    if (!is_refused(fd.error())) return at_path<Probe>(codec::Failure(fd.error()), path);
    probe.damage = fd.error();
    return probe;
  }
  const auto file = std::make_shared<const frame::Descriptor>(files_, *fd);
  // A mount of that one file alone is refused, as for any file that is no frame.
  if (probe.kind == EntryKind::frame && !is_single_file() && is_blank(path, probe.status)) return probe;
  auto summary = frame::summarise(files_, file->fd(), frame_begin());
  if (!summary) {
    if (!tells_of_the_file(summary.error())) return at_path<Probe>(codec::Failure(summary.error()), path);
    probe.damage = summary.error();
  } else if (summary->kind == frame::ContainerKind::none) {
    const std::string what = "neither a frame nor a Bloscpack file nor a chunk";
    probe.damage = codec::corrupt(is_single_file() ? what : what + ", in spite of its name").value();
  } else {
    probe.size = summary->nbytes;
    probe.chunksize = summary->chunksize;
    const bool is_array = NameRules::has_array_suffix(path);
    // Programs take a file of 0 bytes for one that they need not open: what cannot be opened must not look like one.
    const bool looks_empty = summary->nbytes == 0;
    if (looks_empty || (options_.b2nd != ArrayView::chunks && (is_array || summary->has_metalayers))) {
      if (auto done = probe_view(is_array, file, probe); !done)
        return at_path<Probe>(codec::Failure(done.error()), path);
    }
  }
  return probe;
}

/// The size of what may be an array, which only its metalayer knows.
codec::Result<void> SourceTree::probe_view(bool is_array, const std::shared_ptr<const frame::Descriptor>& file,
                                           Probe& probe) const {
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

codec::Result<std::string> SourceTree::resolve(const std::string& directory, const std::string& shown) const {
  if (is_single_file()) {
    auto entries = list(directory);
    if (!entries) return codec::Failure(entries.error());
    if (entries->front().shown == shown) return single_name_;
    return no_entry(join(directory, shown));
  }
  auto owner = rules_.owner_of(shown, [&](const std::string& name) { return kind_of(join(directory, name)); });
  if (!owner) return at_path<std::string>(codec::Failure(owner.error()), join(directory, shown));
  if (owner->kind == EntryKind::none) return no_entry(join(directory, shown));
  return owner->name;
}

codec::Result<std::vector<ShownEntry>> SourceTree::list(const std::string& directory) const {
  std::vector<StoredEntry> stored;
  if (is_single_file()) {
    auto kind = kind_of(single_name_);
    if (!kind) return at_path<std::vector<ShownEntry>>(codec::Failure(kind.error()), single_name_);
    if (*kind == EntryKind::none) return no_entry(single_name_);
    return rules_.show({StoredEntry{single_name_, *kind}});
  }
  auto fd = files_.open_at(root_.fd(), directory.empty() ? "." : directory, O_RDONLY | O_DIRECTORY);
  if (!fd) return at_path<std::vector<ShownEntry>>(codec::Failure(fd.error()), directory);
  const frame::Descriptor opened(files_, *fd);
  auto entries = files_.list(opened.fd());
  if (!entries) return at_path<std::vector<ShownEntry>>(codec::Failure(entries.error()), directory);
  stored.reserve(entries->size());
  for (frame::DirectoryEntry& entry : *entries) {
    // Names need the kind only where the name could be shortened, and types where a folder may be a frame; the rest is
    // told by the folder itself.
    EntryKind kind = kind_of_mode(DTTOIF(entry.type));
    const bool by_content = options_.detect == Detect::content && kind == EntryKind::directory;
    if (by_content || rules_.has_container_suffix(entry.name)) {
      auto looked = kind_from(join(directory, entry.name), DTTOIF(entry.type));
      if (looked) kind = *looked;
    }
    stored.push_back({std::move(entry.name), kind});
  }
  return rules_.show(std::move(stored));
}

codec::Result<std::shared_ptr<const frame::Descriptor>> SourceTree::open_entry(const std::string& path,
                                                                               int flags) const {
  auto fd = files_.open_at(root_.fd(), path.empty() ? "." : path, flags | kNeverWait);
  if (!fd) return at_path<std::shared_ptr<const frame::Descriptor>>(codec::Failure(fd.error()), path);
  return std::make_shared<const frame::Descriptor>(files_, *fd);
}

codec::Result<frame::Identity> SourceTree::identity(int fd, EntryKind kind) const {
  auto status = kind == EntryKind::sparse_frame ? files_.status_at(fd, kSparseIndexName) : files_.status(fd);
  if (!status) return codec::Failure(status.error());
  return frame::Identity::of(*status);
}

codec::Result<std::string> SourceTree::read_link(const std::string& path) const {
  auto target = files_.read_link(root_.fd(), path);
  if (!target) return at_path<std::string>(codec::Failure(target.error()), path);
  const std::size_t slash = path.rfind('/');
  return shown_target(slash == std::string::npos ? "" : path.substr(0, slash), *target);
}

/// Not every container shows without its suffix, and not everything with a container's suffix is one.
std::string SourceTree::shown_target(const std::string& folder, const std::string& target) const {
  const std::size_t slash = target.rfind('/');
  const std::string before = slash == std::string::npos ? "" : target.substr(0, slash + 1);
  const std::string name = target.substr(before.size());
  if (target.starts_with('/') || !rules_.has_container_suffix(name)) return target;
  const auto kind_of_neighbour = [&](const std::string& other) { return kind_of(join(folder, before + other)); };
  const auto kind = kind_of_neighbour(name);
  if (!kind || *kind == EntryKind::none) return rules_.shown_target(target);
  if (!is_container(*kind)) return target;
  std::string short_name = rules_.short_name_of(name, *kind);
  const auto owner = rules_.owner_of(short_name, kind_of_neighbour);
  return owner && owner->name == name ? before + short_name : target;
}

}  // namespace cframefs::fs
