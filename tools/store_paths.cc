#include "tools/store_paths.h"

#include <algorithm>
#include <cerrno>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "frame/store_files.h"

namespace cframefs::tools {

using codec::Failure;
using codec::Result;
using frame::Descriptor;
using frame::FileOps;

namespace {

FileOps& store_files() {
  static frame::StoreFiles files(frame::system_files());
  return files;
}

bool is_on_disk(const std::string& path) {
  const auto fd = frame::system_files().open_named(path, O_PATH);
  if (!fd) return fd.error().sys != ENOENT && fd.error().sys != ENOTDIR;
  frame::system_files().close(*fd);
  return true;
}

}  // namespace

FileOps& files_for(const std::string& path) {
  return is_on_disk(path) ? frame::system_files() : store_files();
}

Result<std::vector<StoreLeaf>> leaves_of(const std::string& path) {
  std::vector<StoreLeaf> leaves;
  const auto top = store_files().open_named(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!top) return Failure(top.error());
  const Descriptor store(store_files(), *top);
  const auto status = store_files().status(store.fd());
  if (!status) return Failure(status.error());
  if (!S_ISDIR(status->st_mode)) return leaves;
  // A list of our own instead of recursion: how deep folders are nested is not ours to say.
  std::vector<std::string> pending = {""};
  while (!pending.empty()) {
    const std::string folder = pending.back();
    pending.pop_back();
    const auto fd = folder.empty() ? store_files().open_named(path, O_RDONLY)
                                   : store_files().open_named(path + "/" + folder, O_RDONLY | O_DIRECTORY);
    if (!fd) return Failure(fd.error());
    const Descriptor opened(store_files(), *fd);
    const auto entries = store_files().list(opened.fd());
    if (!entries) return Failure(entries.error());
    for (const frame::DirectoryEntry& entry : *entries) {
      const std::string name = folder.empty() ? entry.name : folder + "/" + entry.name;
      if (entry.type == DT_DIR) pending.push_back(name);
      if (entry.type != DT_REG || is_on_disk(path + "/" + name)) continue;
      const auto leaf = store_files().status_at(opened.fd(), entry.name);
      leaves.push_back({name, leaf ? static_cast<std::uint64_t>(leaf->st_size) : 0});
    }
  }
  std::sort(leaves.begin(), leaves.end(), [](const StoreLeaf& a, const StoreLeaf& b) { return a.path < b.path; });
  return leaves;
}

}  // namespace cframefs::tools
