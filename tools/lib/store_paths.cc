#include "tools/lib/store_paths.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "codec/base/mutex.h"
#include "frame/remote/remote_source.h"
#include "frame/store/store_files.h"
#include "tools/lib/server_paths.h"

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

bool is_on_disk(const std::string& path) {
  return holds(frame::system_files(), path);
}

/// Returns the files that lead into the store, which may lie on a server.
Result<ServerFiles> files_around(const std::string& store) {
  if (!frame::is_address(store)) return ServerFiles{&frame::system_files(), &store_files()};
  return files_around_store(store);
}

}  // namespace

Result<ReadFileOps*> files_for(const std::string& path) {
  if (frame::is_address(path)) return files_of_server(path);
  return !last_listed().leads_to(path) && is_on_disk(path) ? &frame::system_files() : &store_files();
}

Result<std::vector<StoreLeaf>> leaves_of(const std::string& path) {
  std::vector<StoreLeaf> leaves;
  if (frame::is_address(path) && kind_on_server(path) != EntryKind::store) return leaves;
  const auto files = files_around(path);
  if (!files) return Failure(files.error());
  frame::StoreFiles& stores = *files->with_stores;
  const auto top = stores.open_named(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!top) return Failure(top.error());
  const Descriptor store(stores, *top);
  const auto status = stores.status(store.handle());
  if (!status) return Failure(status.error());
  if (!S_ISDIR(status->st_mode)) return leaves;
  auto inside = stores.leaves(store.handle());
  if (!inside && inside.error().kind == codec::ErrorKind::invalid) return leaves;
  if (!inside) return Failure(inside.error());
  const std::string prefix = path + "/";
  const bool has_files = holds(*files->as_stored, prefix);  // a directory
  if (!has_files && !frame::is_address(path)) last_listed().set(prefix);
  for (auto& [name, bytes] : *inside) {
    if (!has_files || !holds(*files->as_stored, prefix + name)) leaves.push_back({std::move(name), bytes});
  }
  std::sort(leaves.begin(), leaves.end(), [](const StoreLeaf& a, const StoreLeaf& b) { return a.path < b.path; });
  return leaves;
}

}  // namespace cframefs::tools
