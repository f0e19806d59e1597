// File operations on a tree of objects, or on one object in a directory of its own (OneObjectListing): read-only.
//
// An open file is a node of the tree (remote_tree.h) and keeps its state: it reads that state or fails with stale. The
// inode of an object comes from path and state, so that a replaced object is another file. Objects are regular files
// with mode 0444, directories have 0555; all belong to the user of the process. A directory has the time at which the
// tree was opened.
//
// open_named() takes absolute paths, "/" is the root, and the address of the source. Opening a file sends nothing if
// its state is known. If an index told it, a caller that opens the file for a program asks whether it still holds; one
// that only looks at the file passes O_NOATIME (or O_PATH), and nothing is sent.
//
// Thread safety, ownership, errors: as read_file_ops.h and remote_tree.h; the parts must outlive this.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "codec/base/mutex.h"
#include "frame/io/read_only_files.h"
#include "frame/remote/listings/remote_tree.h"

namespace cframefs::frame {

class RemoteFiles final : public ReadOnlyFiles {
 public:
  /// What open_named() takes beside paths.
  struct Named {
    std::string address;  // of the source, as users write it; identifies the device
    std::string path;     // that it stands for: "/" or that of the one object
    bool is_web = false;  // addresses of what is in the directory are percent-encoded
  };

  RemoteFiles(CachingListing& listing, RemoteHeads& heads, const ObjectReading& reading, Named named);

  Result<OpenFile> open_at(OpenFile dir, const std::string& path, int flags) override;
  Result<OpenFile> open_named(const std::string& name, int flags) override;
  Result<OpenFile> reopen(OpenFile file, int flags) override;
  Result<std::vector<std::uint8_t>> handle_of(OpenFile file) override;
  Result<OpenFile> open_handle(OpenFile mount, ByteView handle, int flags) override;
  void close(OpenFile file) override;
  std::optional<SystemDescriptor> system_descriptor(OpenFile /*file*/) const override { return std::nullopt; }

  Result<std::size_t> pread(OpenFile file, ByteSpan into, FileOffset at) override;
  Result<struct stat> status(OpenFile file) override;
  Result<struct stat> status_at(OpenFile dir, const std::string& path) override;
  Result<FileVersion> version(OpenFile file) override;
  Result<struct statvfs> filesystem_status(OpenFile file) override;
  Result<std::vector<DirectoryEntry>> list(OpenFile dir) override;
  Result<std::string> read_link(OpenFile file) override;
  Result<FileOffset> seek(OpenFile file, FileOffset from, int whence) override;
  void prefetch(OpenFile file, FileOffset at, std::uint64_t length) override;
  bool is_remote() const override { return true; }
  bool is_busy() const override { return memory_.is_busy(); }
  std::optional<ServerCounts> server_counts() const override { return requests_.counts(); }
  void expect(OpenFile file, FileOffset at, std::uint64_t length) override;
  Result<void> fetch(OpenFile file, FileOffset at, std::uint64_t length) override;

  Result<void> check_rights(OpenFile file, int rights) override;
  Result<std::vector<std::string>> list_attributes(OpenFile file) override;
  Result<std::string> get_attribute(OpenFile file, const std::string& name) override;
  Result<bool> try_lock(OpenFile file, int operation) override;

 private:
  using Node = RemoteTree::Node;
  struct Opened {
    Node node;
    bool is_path = false;  // O_PATH: cannot be read
  };

  Result<Opened> opened(OpenFile file) const;
  /// Returns the node of a file that is open for reading.
  Result<Node> readable(OpenFile file) const;
  Result<std::string> path_of(const std::string& name) const;
  Result<OpenFile> enter(Node node, int flags);
  struct stat status_of(const RemoteNode& node) const;

  RemoteTree tree_;
  const Requests& requests_;
  const FetchedRanges& memory_;
  const Named named_;
  const dev_t device_;
  const uid_t user_;
  const gid_t group_;
  const time_t started_;
  mutable codec::Mutex mutex_;
  std::unordered_map<std::int32_t, Opened> opened_ GUARDED_BY(mutex_);
  std::int32_t last_ GUARDED_BY(mutex_) = -1;
};

}  // namespace cframefs::frame
