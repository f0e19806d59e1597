#include "tests/crash/simulated_disk.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <dirent.h>
#include <fcntl.h>

namespace cframefs::test {

using codec::io_error;
using codec::Result;

namespace {

constexpr std::size_t kSector = 512;
/// Up to this many pieces are kept or lost in every combination. Of more pieces, one or two are lost.
constexpr std::size_t kMaxCombined = 12;
/// Seconds of the time of each change. A change is told by the nanoseconds, which count.
constexpr time_t kFirstChange = 1;

/// The address of a file is unique while the file is open or has a name.
template <class File>
ino_t inode_of(const File& file) {
  return static_cast<ino_t>(std::hash<const void*>{}(&file));
}

}  // namespace

/// The part of a write in one sector, or a complete other change.
struct SimulatedDisk::Unit {
  std::size_t change = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

SimulatedDisk::SimulatedDisk(const DiskImage& image, std::string directory_name)
    : directory_name_(std::move(directory_name)), names_(names_of(image)), durable_names_(names_) {}

SimulatedDisk::Names SimulatedDisk::names_of(const DiskImage& image) {
  Names names;
  for (const auto& [name, bytes] : image) {
    auto file = std::make_shared<File>();
    file->now = bytes;
    file->durable = bytes;
    names[name] = std::move(file);
  }
  return names;
}

codec::Failure SimulatedDisk::unknown() {
  return io_error(ENOSYS, "simulated disk");
}

DiskImage SimulatedDisk::now() const {
  DiskImage image;
  for (const auto& [name, file] : names_)
    image[name] = file->now;
  return image;
}

// ---- what is left ----

void SimulatedDisk::apply_piece(DiskBytes& bytes, const Change& change, std::size_t begin, std::size_t end) {
  switch (change.kind) {
    case Change::Kind::truncate:
      bytes.resize(change.at);
      break;
    case Change::Kind::zero:
    case Change::Kind::write:
      if (change.kind == Change::Kind::write && bytes.size() < change.at + end) bytes.resize(change.at + end);
      end = std::min(end, bytes.size() - std::min(bytes.size(), static_cast<std::size_t>(change.at)));
      if (begin < end) std::copy_n(change.bytes.data() + begin, end - begin, bytes.data() + change.at + begin);
      break;
  }
}

void SimulatedDisk::apply(DiskBytes& bytes, const Change& change) {
  apply_piece(bytes, change, 0, change.bytes.size());
}

std::vector<SimulatedDisk::Unit> SimulatedDisk::units_of(const File& file) {
  std::vector<Unit> units;
  for (std::size_t i = 0; i < file.unsynced.size(); ++i) {
    const Change& change = file.unsynced[i];
    if (change.kind != Change::Kind::write) {
      units.push_back({i, 0, change.bytes.size()});
      continue;
    }
    for (std::size_t begin = 0; begin < change.bytes.size();) {
      const std::size_t in_sector = kSector - (change.at + begin) % kSector;
      const std::size_t end = std::min(begin + in_sector, change.bytes.size());
      units.push_back({i, begin, end});
      begin = end;
    }
  }
  return units;
}

/// Calls `take` with every combination of kept sectors. If there are too many sectors: with all but one or two, and
/// with each prefix.
void SimulatedDisk::kept_units(const File& file, const std::function<void(const DiskBytes&)>& take) {
  const std::vector<Unit> units = units_of(file);
  const auto build = [&](const std::function<bool(std::size_t)>& kept) {
    DiskBytes bytes = file.durable;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (kept(i)) apply_piece(bytes, file.unsynced[units[i].change], units[i].begin, units[i].end);
    }
    take(bytes);
  };
  if (units.size() <= kMaxCombined) {
    for (std::size_t subset = 0; subset < std::size_t{1} << units.size(); ++subset)
      build([subset](std::size_t i) { return (subset >> i & 1) != 0; });
    return;
  }
  for (std::size_t a = 0; a < units.size(); ++a) {
    build([a](std::size_t i) { return i < a; });
    for (std::size_t b = a; b < units.size(); ++b)
      build([a, b](std::size_t i) { return i != a && i != b; });
  }
}

/// Calls `take` with every combination of kept writes. If there are too many writes: with all but one or two.
void SimulatedDisk::kept_writes(const File& file, const std::function<void(const DiskBytes&)>& take) {
  const std::size_t count = file.unsynced.size();
  const auto build = [&](const std::function<bool(std::size_t)>& kept) {
    DiskBytes bytes = file.durable;
    for (std::size_t i = 0; i < count; ++i) {
      if (kept(i)) apply(bytes, file.unsynced[i]);
    }
    take(bytes);
  };
  if (count <= kMaxCombined) {
    for (std::size_t subset = 0; subset < std::size_t{1} << count; ++subset)
      build([subset](std::size_t i) { return (subset >> i & 1) != 0; });
    return;
  }
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a; b < count; ++b)
      build([a, b](std::size_t i) { return i != a && i != b; });
  }
}

/// Calls `take` with the images of one state of the directory: all combinations of the unsynced writes of `file`, and
/// all writes of the other files.
void SimulatedDisk::images_of(const Names& names, const std::string& file,
                              const std::function<void(const DiskImage&)>& take) {
  DiskImage image;
  for (const auto& [name, entry] : names)
    image[name] = entry->now;
  const auto found = names.find(file);
  if (found == names.end()) {
    take(image);
    return;
  }
  const auto one = [&](const DiskBytes& bytes) {
    image[file] = bytes;
    take(image);
  };
  kept_units(*found->second, one);
  if (units_of(*found->second).size() > kMaxCombined) kept_writes(*found->second, one);
}

void SimulatedDisk::crash_images(const std::string& file, const std::function<void(const DiskImage&)>& take) const {
  std::vector<const Names*> directories = {&durable_names_};
  for (const Names& names : unsynced_names_)
    directories.push_back(&names);
  for (const Names* names : directories) {
    if (!file.empty()) {
      images_of(*names, file, take);
      continue;
    }
    DiskImage nothing_kept;
    for (const auto& [name, entry] : *names) {
      nothing_kept[name] = entry->durable;
      if (entry->unsynced.empty()) continue;
      images_of(*names, name, take);
    }
    take(nothing_kept);
  }
}

// ---- calls ----

frame::OpenFile SimulatedDisk::give_descriptor(std::shared_ptr<File> file, int flags) {
  open_[next_fd_] = {std::move(file), (flags & O_ACCMODE) != O_RDONLY};
  return {next_fd_++};
}

Result<SimulatedDisk::Opened> SimulatedDisk::opened(frame::OpenFile file) const {
  const auto found = open_.find(file.value);
  if (found == open_.end()) return io_error(EBADF, "simulated disk");
  return found->second;
}

Result<std::shared_ptr<SimulatedDisk::File>> SimulatedDisk::file_of(frame::OpenFile file) const {
  const auto found = opened(file);
  if (!found) return codec::Failure(found.error());
  if (!found->file) return io_error(EBADF, "simulated disk");
  return found->file;
}

Result<std::shared_ptr<SimulatedDisk::File>> SimulatedDisk::writable_file(frame::OpenFile file) const {
  const auto found = opened(file);
  if (found && !found->is_writable) return io_error(EBADF, "simulated disk");
  return file_of(file);
}

Result<void> SimulatedDisk::check_entry(frame::OpenFile dir, const std::string& path) const {
  const auto directory = opened(dir);
  if (!directory) return codec::Failure(directory.error());
  if (directory->file) return io_error(ENOTDIR, "simulated disk");
  if (path == ".." || path.find('/') != std::string::npos) return io_error(EXDEV, "simulated disk");
  return {};
}

Result<frame::OpenFile> SimulatedDisk::open_at(frame::OpenFile dir, const std::string& path, int flags) {
  if (const auto inside = check_entry(dir, path); !inside) return codec::Failure(inside.error());
  if (path == "." || (!directory_name_.empty() && path == directory_name_)) {
    if ((flags & O_ACCMODE) != O_RDONLY) return io_error(EISDIR, "open");
    return give_descriptor(nullptr, flags);
  }
  const auto found = names_.find(path);
  if (found == names_.end()) return io_error(ENOENT, "open");
  if ((flags & O_DIRECTORY) != 0) return io_error(ENOTDIR, "open");
  return give_descriptor(found->second, flags);
}

Result<frame::OpenFile> SimulatedDisk::reopen(frame::OpenFile file, int flags) {
  const auto found = opened(file);
  if (!found) return codec::Failure(found.error());
  if (!found->file && (flags & O_ACCMODE) != O_RDONLY) return io_error(EISDIR, "open");
  return give_descriptor(found->file, flags);
}

void SimulatedDisk::close(frame::OpenFile file) {
  open_.erase(file.value);
}

Result<std::size_t> SimulatedDisk::pread(frame::OpenFile handle, codec::ByteSpan into, frame::FileOffset at) {
  const auto file = file_of(handle);
  if (!file) return codec::Failure(file.error());
  const DiskBytes& bytes = (*file)->now;
  if (at.value >= bytes.size()) return std::size_t{0};
  const std::size_t count = std::min(into.size(), bytes.size() - static_cast<std::size_t>(at.value));
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at.value), count, into.begin());
  return count;
}

Result<struct stat> SimulatedDisk::status(frame::OpenFile file) {
  const auto found = opened(file);
  if (!found) return codec::Failure(found.error());
  struct stat status {};
  status.st_mode = found->file ? S_IFREG | 0644 : S_IFDIR | 0755;
  if (!found->file) return status;
  status.st_nlink = 1;
  status.st_size = static_cast<off_t>(found->file->now.size());
  status.st_ino = inode_of(*found->file);
  status.st_mtim = {kFirstChange, found->file->changes};
  status.st_ctim = status.st_mtim;
  return status;
}

Result<struct stat> SimulatedDisk::status_at(frame::OpenFile dir, const std::string& path) {
  const auto fd = open_at(dir, path, O_RDONLY);
  if (!fd) return codec::Failure(fd.error());
  const frame::Descriptor entry(*this, *fd);
  return status(entry.handle());
}

Result<std::vector<frame::DirectoryEntry>> SimulatedDisk::list(frame::OpenFile dir) {
  if (const auto is_directory = check_entry(dir, "."); !is_directory) return codec::Failure(is_directory.error());
  std::vector<frame::DirectoryEntry> entries;
  for (const auto& [name, file] : names_)
    entries.push_back({name, inode_of(*file), DT_REG});
  return entries;
}

Result<frame::OpenFile> SimulatedDisk::create_at(frame::OpenFile dir, const std::string& path, int flags, mode_t) {
  if (const auto inside = check_entry(dir, path); !inside) return codec::Failure(inside.error());
  const auto [place, added] = names_.try_emplace(path);
  if (added) {
    place->second = std::make_shared<File>();
    unsynced_names_.push_back(names_);
  } else if ((flags & O_EXCL) != 0) {
    return io_error(EEXIST, "create");
  }
  return give_descriptor(place->second, flags);
}

void SimulatedDisk::change(File& file, Change change) {
  apply(file.now, change);
  ++file.changes;
  file.unsynced.push_back(std::move(change));
}

Result<void> SimulatedDisk::pwrite(frame::OpenFile handle, codec::ByteView from, frame::FileOffset at) {
  const auto file = writable_file(handle);
  if (!file) return codec::Failure(file.error());
  change(**file, {Change::Kind::write, at.value, {from.begin(), from.end()}});
  return {};
}

Result<void> SimulatedDisk::truncate(frame::OpenFile handle, std::uint64_t size) {
  const auto file = writable_file(handle);
  if (!file) return codec::Failure(file.error());
  change(**file, {Change::Kind::truncate, size, {}});
  return {};
}

Result<void> SimulatedDisk::allocate(frame::OpenFile handle, int, frame::FileOffset at, std::uint64_t length) {
  const auto file = writable_file(handle);
  if (!file) return codec::Failure(file.error());
  change(**file, {Change::Kind::zero, at.value, DiskBytes(static_cast<std::size_t>(length))});
  return {};
}

Result<void> SimulatedDisk::sync(frame::OpenFile file, bool) {
  if (before_sync_) before_sync_();
  const auto found = opened(file);
  if (!found) return codec::Failure(found.error());
  if (!found->file) {
    durable_names_ = names_;
    unsynced_names_.clear();
    return {};
  }
  found->file->durable = found->file->now;
  found->file->unsynced.clear();
  return {};
}

Result<void> SimulatedDisk::rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                      const std::string& to, unsigned flags) {
  if (auto inside = check_entry(from_dir, from); !inside) return inside;
  if (auto inside = check_entry(to_dir, to); !inside) return inside;
  const auto found = names_.find(from);
  if (found == names_.end()) return io_error(ENOENT, "rename");
  const auto other = names_.find(to);
  if ((flags & RENAME_NOREPLACE) != 0 && other != names_.end()) return io_error(EEXIST, "rename");
  if ((flags & RENAME_EXCHANGE) != 0) {
    if (other == names_.end()) return io_error(ENOENT, "rename");
    std::swap(found->second, other->second);
    unsynced_names_.push_back(names_);
    return {};
  }
  auto file = std::move(found->second);
  names_.erase(found);
  names_[to] = std::move(file);
  unsynced_names_.push_back(names_);
  return {};
}

Result<void> SimulatedDisk::remove_at(frame::OpenFile dir, const std::string& path, bool) {
  if (auto inside = check_entry(dir, path); !inside) return inside;
  if (names_.erase(path) == 0) return io_error(ENOENT, "unlink");
  unsynced_names_.push_back(names_);
  return {};
}

}  // namespace cframefs::test
