// Makes the index of a directory on a server (remote_index.h): goes through all its objects and records what a look-up
// reads of each.
//
// Threads look at 64 objects at a time. Left out and counted are objects that are gone when they are looked at, that
// the user may not read, and those whose state no tag and no date identifies. An object that is replaced while it is
// looked at is looked at again. Directories are listed by the server, in no order.
//
// Thread safety: build() is called once, by one thread. `progress` is called by that thread. Ownership: the tree must
// outlive this. Errors: those of the tree, if they concern more than one object; ECANCELED if `stop` was set; invalid
// for more objects than an index holds; EAGAIN without threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/remote/listings/remote_index.h"
#include "frame/remote/listings/remote_tree.h"
#include "frame/remote/remote_source.h"

namespace cframefs::frame {

struct BuiltIndex {
  std::vector<IndexedObject> objects;
  std::uint64_t looked_at = 0;  // of the objects those of which bytes are recorded
  std::uint64_t left_out = 0;
};

class IndexBuilder {
 public:
  explicit IndexBuilder(RemoteTree& tree) : tree_(tree) {}

  Result<BuiltIndex> build(const IndexWork& work);

 private:
  Result<void> find_objects(const IndexWork& work);
  void look_at_objects();
  Result<std::optional<IndexedObject>> look_at(const std::string& path);
  void fail(const codec::Error& error);

  RemoteTree& tree_;
  std::vector<std::string> paths_;
  std::atomic<std::size_t> next_{0};  // index in paths_
  std::atomic<std::size_t> done_{0};
  std::atomic<bool> has_failed_{false};
  codec::Mutex mutex_;
  codec::CondVar ended_;
  std::size_t running_ GUARDED_BY(mutex_) = 0;  // threads
  std::optional<codec::Error> failure_ GUARDED_BY(mutex_);
  BuiltIndex built_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::frame
