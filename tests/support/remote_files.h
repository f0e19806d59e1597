// A directory of objects in memory, as a server of objects would present it: no descriptors of the kernel and no times,
// but entity tags. Nothing can be changed through it; put() changes it from outside.
//
// Thread safety: one thread. Errors: io with the usual errno.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>

#include "frame/io/read_only_files.h"

namespace cframefs::test {

class RemoteFiles final : public frame::ReadOnlyFiles {
 public:
  static constexpr frame::OpenFile kDirectory{0};

  RemoteFiles() : ReadOnlyFiles("what is on a server cannot be changed") {}

  void put(const std::string& name, std::vector<std::uint8_t> content, const std::string& tag) {
    objects_[name] = {std::move(content), std::hash<std::string>{}(tag)};
  }

  codec::Result<frame::OpenFile> open_at(frame::OpenFile dir, const std::string& path, int flags) override {
    if (auto found = find(dir, path); !found) return codec::Failure(found.error());
    if ((flags & O_ACCMODE) != O_RDONLY) return refused("open");
    if ((flags & O_DIRECTORY) != 0 && path != ".") return codec::io_error(ENOTDIR, "open");
    open_[++last_] = path;
    return frame::OpenFile{last_};
  }
  codec::Result<frame::OpenFile> reopen(frame::OpenFile file, int flags) override {
    const auto found = open_.find(file.value);
    if (found == open_.end()) return codec::io_error(EBADF, "open");
    return open_at(kDirectory, found->second, flags);
  }
  codec::Result<std::vector<std::uint8_t>> handle_of(frame::OpenFile) override { return lacking(); }
  codec::Result<frame::OpenFile> open_handle(frame::OpenFile, codec::ByteView, int) override { return lacking(); }
  void close(frame::OpenFile file) override { open_.erase(file.value); }
  std::optional<frame::SystemDescriptor> system_descriptor(frame::OpenFile) const override { return std::nullopt; }

  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, frame::FileOffset at) override {
    const auto object = object_of(file);
    if (!object) return codec::Failure(object.error());
    const auto& content = (*object)->content;
    const auto begin = static_cast<std::size_t>(std::min<std::uint64_t>(at.value, content.size()));
    const std::size_t count = std::min(into.size(), content.size() - begin);
    std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(begin), count, into.begin());
    return count;
  }
  codec::Result<struct stat> status(frame::OpenFile file) override {
    const auto found = open_.find(file.value);
    return found == open_.end() ? codec::io_error(EBADF, "status") : status_at(kDirectory, found->second);
  }
  codec::Result<struct stat> status_at(frame::OpenFile dir, const std::string& path) override {
    const auto object = find(dir, path);
    if (!object) return codec::Failure(object.error());
    struct stat status {};
    status.st_mode = *object == nullptr ? S_IFDIR | 0555 : S_IFREG | 0444;
    status.st_size = *object == nullptr ? 0 : static_cast<off_t>((*object)->content.size());
    status.st_ino = inode_of(path);
    status.st_nlink = 1;
    return status;
  }
  codec::Result<frame::FileVersion> version(frame::OpenFile file) override {
    const auto object = object_of(file);
    if (!object) return codec::Failure(object.error());
    frame::FileVersion version;
    version.size = (*object)->content.size();
    version.tag = (*object)->tag;
    version.racy = false;
    return version;
  }
  codec::Result<struct statvfs> filesystem_status(frame::OpenFile) override { return lacking(); }

  codec::Result<std::vector<frame::DirectoryEntry>> list(frame::OpenFile dir) override {
    const auto found = open_.find(dir.value);
    if (found == open_.end() || found->second != ".") return codec::io_error(ENOTDIR, "list");
    std::vector<frame::DirectoryEntry> entries;
    for (const auto& [name, object] : objects_)
      entries.push_back({name, inode_of(name), DT_REG});
    return entries;
  }
  codec::Result<std::string> read_link(frame::OpenFile) override { return codec::io_error(EINVAL, "readlink"); }
  codec::Result<frame::FileOffset> seek(frame::OpenFile, frame::FileOffset, int) override { return lacking(); }
  void prefetch(frame::OpenFile, frame::FileOffset, std::uint64_t) override {}
  codec::Result<void> check_rights(frame::OpenFile, int) override { return {}; }
  codec::Result<std::vector<std::string>> list_attributes(frame::OpenFile) override {
    return std::vector<std::string>();
  }
  codec::Result<std::string> get_attribute(frame::OpenFile, const std::string&) override { return lacking(); }
  codec::Result<bool> try_lock(frame::OpenFile, int) override { return true; }

 private:
  struct Object {
    std::vector<std::uint8_t> content;
    std::uint64_t tag = 0;
  };

  static codec::Failure lacking() { return codec::io_error(EOPNOTSUPP, "remote object"); }
  static std::uint64_t inode_of(const std::string& path) { return std::hash<std::string>{}(path); }
  /// Returns nullptr for the directory itself.
  codec::Result<const Object*> find(frame::OpenFile dir, const std::string& path) const {
    const auto from = open_.find(dir.value);
    if (from == open_.end() || from->second != ".") return codec::io_error(ENOTDIR, "lookup");
    if (path == ".") return nullptr;
    const auto found = objects_.find(path);
    return found == objects_.end() ? codec::io_error(ENOENT, "lookup") : codec::Result<const Object*>(&found->second);
  }
  codec::Result<const Object*> object_of(frame::OpenFile file) const {
    const auto open = open_.find(file.value);
    const auto found = open == open_.end() ? objects_.end() : objects_.find(open->second);
    if (found == objects_.end()) return codec::io_error(open == open_.end() ? EBADF : EISDIR, "remote object");
    return &found->second;
  }

  std::map<std::string, Object> objects_;
  std::map<std::int32_t, std::string> open_{{kDirectory.value, "."}};
  std::int32_t last_ = kDirectory.value;
};

}  // namespace cframefs::test
