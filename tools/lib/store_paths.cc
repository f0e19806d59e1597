#include "tools/lib/store_paths.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "codec/base/mutex.h"
#include "frame/remote/remote_source.h"
#include "frame/store/store_files.h"

namespace cframefs::tools {

using codec::Failure;
using codec::Result;
using frame::Descriptor;
using frame::ReadFileOps;

namespace {

frame::StoreFiles& store_files() {
  static frame::StoreFiles files(frame::system_files());
  return files;
}

/// The store file whose leaves were listed last, with a slash behind it. Programs open the leaves one after the other,
/// and none of them is on disk. If a directory replaces the store, store_files() opens what is in that.
class LastListed {
 public:
  void set(std::string prefix) {
    codec::MutexLock lock(mutex_);
    prefix_ = std::move(prefix);
  }
  bool leads_to(const std::string& path) {
    codec::MutexLock lock(mutex_);
    return !prefix_.empty() && path.starts_with(prefix_);
  }

 private:
  codec::Mutex mutex_;
  std::string prefix_ GUARDED_BY(mutex_);
};

LastListed& last_listed() {
  static LastListed last;
  return last;
}

struct OpenServers {
  codec::Mutex mutex;
  std::map<std::string, std::unique_ptr<frame::RemoteSource>> by_address GUARDED_BY(mutex);
};

OpenServers& servers() {
  static OpenServers open;
  return open;
}

/// Returns the files of a server, which are opened once for each address.
Result<ReadFileOps*> files_of_server(const std::string& address) {
  codec::MutexLock lock(servers().mutex);
  auto& source = servers().by_address[address];
  if (!source) {
    auto remote = frame::RemoteSource::open(address, {});
    if (!remote) return Failure(remote.error());
    source = std::move(*remote);
  }
  return &source->files();
}

bool is_on_disk(const std::string& path) {
  const auto fd = frame::system_files().open_named(path, O_PATH);
  if (!fd) return fd.error().sys != ENOENT && fd.error().sys != ENOTDIR;
  frame::system_files().close(*fd);
  return true;
}

}  // namespace

Result<ReadFileOps*> files_for(const std::string& path) {
  if (frame::is_address(path)) return files_of_server(path);
  return !last_listed().leads_to(path) && is_on_disk(path) ? &frame::system_files() : &store_files();
}

void close_servers() {
  codec::MutexLock lock(servers().mutex);
  servers().by_address.clear();
}

Result<std::vector<StoreLeaf>> leaves_of(const std::string& path) {
  std::vector<StoreLeaf> leaves;
  const auto top = store_files().open_named(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!top) return Failure(top.error());
  const Descriptor store(store_files(), *top);
  const auto status = store_files().status(store.handle());
  if (!status) return Failure(status.error());
  if (!S_ISDIR(status->st_mode)) return leaves;
  auto inside = store_files().leaves(store.handle());
  if (!inside && inside.error().kind == codec::ErrorKind::invalid) return leaves;
  if (!inside) return Failure(inside.error());
  const std::string prefix = path + "/";
  const bool has_files = is_on_disk(prefix);  // a directory
  if (!has_files) last_listed().set(prefix);
  for (auto& [name, bytes] : *inside) {
    if (!has_files || !is_on_disk(prefix + name)) leaves.push_back({std::move(name), bytes});
  }
  std::sort(leaves.begin(), leaves.end(), [](const StoreLeaf& a, const StoreLeaf& b) { return a.path < b.path; });
  return leaves;
}

}  // namespace cframefs::tools
