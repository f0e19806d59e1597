// Objects and directories of a server by path: look-ups, states and reads, without open files.
//
// A node is one state of an object, or a directory. Its state is that of the listing, or if the listing tells none, of
// a request: many at once for a caller that looks up name after name (RemoteHeads), else by opening the object, which
// the reader will need next. The object of a node opens with the first read that its first bytes do not serve.
//
// A dated listing (listing.h) is confirmed when a file is opened: confirm() asks whether the object still has the state
// that was listed. A name that such a listing does not tell is asked for.
//
// A node whose object was replaced is stale. The next look-up makes another node, of the new state, even while the
// listing still tells the old one; if the server tells the old state again, the node holds again.
//
// Thread safety: internally synchronised. Lock order: none is held during a request. Ownership: the parts must outlive
// the tree, and the tree its nodes. Errors: io ENOENT, ENOTDIR, ENAMETOOLONG, EXDEV (a path that leads out), EINVAL (a
// path with NUL); stale for a replaced object; those of listings and requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/base/lru_cache.h"
#include "frame/io/read_file_ops.h"
#include "frame/remote/http/shared_attempt.h"
#include "frame/remote/listings/caching_listing.h"
#include "frame/remote/listings/look_ahead.h"
#include "frame/remote/listings/remote_heads.h"
#include "frame/remote/objects/remote_object.h"

namespace cframefs::frame {

struct RemoteNode {
  std::string path;  // below the root, "" for the root itself
  bool is_directory = false;
  std::string url;                    // of an object
  ObjectState state;                  // of an object, without a version
  std::optional<ObjectState> listed;  // the state that the listing told, if it told one
  std::uint64_t inode = 0;

  std::atomic<bool> is_replaced{false};
  SharedAttempt<std::shared_ptr<RemoteObject>> opening;
  codec::Mutex mutex;
  std::shared_ptr<RemoteObject> object GUARDED_BY(mutex);  // null until it is opened
};

class RemoteTree {
 public:
  using Node = std::shared_ptr<RemoteNode>;

  RemoteTree(CachingListing& listing, RemoteHeads& heads, ObjectReading reading);

  Node root() const { return root_; }
  /// Returns the node of a path that is resolved beneath `from`.
  Result<Node> find(const Node& from, const std::string& path);
  /// Returns the entries of a directory. The inode of an object whose state is not known yet is that of its path.
  Result<std::vector<DirectoryEntry>> list(const RemoteNode& directory);
  /// Asks whether the object of a dated listing still has the state of the node, unless that was asked shortly before.
  /// stale if it has another one; io ENOENT if it is gone.
  Result<void> confirm(RemoteNode& node);
  /// Reads until `into` is full or the object ends; returns the number of bytes.
  Result<std::size_t> read(RemoteNode& node, ByteSpan into, FileOffset at);
  /// Starts to fetch a range. Best effort.
  void prefetch(RemoteNode& node, FileOffset at, std::uint64_t length);
  /// Tells that a range will be read soon, in parts or whole. Sends nothing.
  void expect(RemoteNode& node, FileOffset at, std::uint64_t length);
  /// Waits until a range is in memory, if there is room for it.
  Result<void> fetch(RemoteNode& node, FileOffset at, std::uint64_t length);

 private:
  using Object = std::shared_ptr<RemoteObject>;
  /// What is known against the listing, which may lag behind the objects.
  struct Correction {
    ObjectState listed;                 // applies as long as the listing tells this state
    std::optional<ObjectState> actual;  // none: it must be asked for
    bool is_missing = false;            // there was no object
  };
  struct Stated {
    ObjectState state;
    Object object;  // if it had to be opened
  };

  static Object opened(RemoteNode& node);
  Result<Node> child(const RemoteNode& directory, const std::string& name);
  Result<Node> unlisted_child(const RemoteNode& directory, const std::string& name);
  Result<Node> child_of(const RemoteNode& directory, const ListedDirectory& listed, const ListedEntry& entry);
  Result<Stated> state_of_entry(const std::string& directory, const ListedDirectory& listed, const ListedEntry& entry,
                                const std::string& path, const std::string& url);
  Result<Stated> open_for_state(const std::string& url);
  bool is_known_missing(const ListedEntry& entry, const std::string& path);
  std::optional<ObjectState> known_state(const ListedEntry& entry, const std::string& path, const std::string& url);
  Node node_of(const ListedEntry& entry, const std::string& path, const std::string& url, Stated stated);
  bool ask_in_order(const std::string& directory, const ListedDirectory& listed, const ListedEntry& entry);
  Result<RemoteHeads::Head> head_of(RemoteNode& node);
  Result<Object> object_of(RemoteNode& node);
  /// Returns the object if that needs no request, else nullptr.
  Object object_at_hand(RemoteNode& node);
  void note_replaced(RemoteNode& node, const std::optional<ObjectState>& actual);
  void note_missing(RemoteNode& node);
  void fetch_ends_ahead(RemoteNode& node);

  static constexpr std::size_t kMostNodes = 4096;
  static constexpr std::size_t kMostCorrections = 16'384;

  CachingListing& listing_;
  RemoteHeads& heads_;
  const ObjectReading reading_;
  const Node root_;
  LookAhead look_ahead_;
  LruCache<std::string, Node> nodes_{kMostNodes};
  LruCache<std::string, Correction> corrections_{kMostCorrections};
};

}  // namespace cframefs::frame
