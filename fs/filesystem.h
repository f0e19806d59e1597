// The filesystem behind the mount, without FUSE: each operation is a plain call, which tests can make.
//
// Thread safety: all operations may be concurrent; a FileHandle and a DirectoryHandle serve many threads.
// Ownership: handles belong to the caller and must be dropped before the filesystem. Units: bytes.
// Errors: values; the adapter turns them into errno. The filesystem logs damage of a file once.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>

#include "fs/caller/acting_as.h"
#include "fs/coherence/source_changes.h"
#include "fs/mount/handles.h"
#include "fs/mount/node_files.h"
#include "fs/write/change_permit.h"
#include "fs/write/flusher.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {

class Filesystem {
 public:
  Filesystem(frame::FileOps& files, const MountOptions& options);
  ~Filesystem();

  /// Opens the source. `root_is_file`: the mount point is a regular file, so the root is the view of the one frame.
  codec::Result<void> open_source(bool root_is_file);
  /// Starts threads. REQUIRES: the process has gone to the background; `kernel` lives until stop().
  void start(KernelInvalidator& kernel, const KernelReadahead& readahead = {});
  void stop();

  codec::Result<Attributes> lookup(NodeId parent, const std::string& name);
  void forget(NodeId node, std::uint64_t lookups) { node_files_.forget(node, lookups); }
  /// Returns what stat(2) shows. `handle`: an open handle of the node, or nullptr. Fails for a container that cannot be
  /// opened, with the reason, because its size is not known.
  codec::Result<Attributes> attributes(NodeId node, FileHandle* handle);
  codec::Result<std::string> read_link(NodeId node);

  codec::Result<std::unique_ptr<DirectoryHandle>> open_directory(NodeId node);
  /// Reads the current entries into the handle.
  codec::Result<void> list(DirectoryHandle& handle) REQUIRES(handle.mutex);
  /// Returns true if the directory is so large that listing it is slow; an estimate before list().
  bool is_large(const DirectoryHandle& handle) REQUIRES(handle.mutex);
  /// Returns the inode number of an entry, as its attributes show it.
  std::uint64_t shown_inode(const DirectoryHandle& handle, const StoredEntry& entry);
  static std::uint64_t shown_inode(const Node& node);
  /// Returns the inode number of the parent directory.
  std::uint64_t parent_inode(const DirectoryHandle& handle);

  /// Opens a file. `flags`: as open(2), without O_CREAT and O_EXCL.
  codec::Result<std::unique_ptr<FileHandle>> open(NodeId node, int flags = O_RDONLY);
  /// Checks rights (R_OK, W_OK) that the kernel cannot decide from the attributes shown to it. EACCES: the caller lacks
  /// them.
  codec::Result<void> check_caller(NodeId node, const Caller& caller, int rights);
  /// Reads into `reply`. `holds_pages`: the kernel keeps the pages of the range locked until the reply is sent.
  codec::Result<void> read(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply,
                           bool holds_pages = false);
  /// lseek(2) with SEEK_DATA or SEEK_HOLE.
  codec::Result<std::uint64_t> seek(FileHandle& handle, std::uint64_t from, int whence);

  // Operations that change something. Each fails with EROFS on a read-only mount.

  codec::Result<Attributes> make_directory(NodeId parent, const std::string& name, mode_t mode, const Caller& caller,
                                           ChangePermit& permit = free_permit());
  codec::Result<Attributes> make_symlink(NodeId parent, const std::string& name, const std::string& target,
                                         const Caller& caller, ChangePermit& permit = free_permit());
  /// Creates a pipe, socket or device; a regular file as create() does.
  codec::Result<Attributes> make_node(NodeId parent, const std::string& name, mode_t mode, dev_t device,
                                      const Caller& caller, ChangePermit& permit = free_permit());
  codec::Result<Attributes> link(NodeId node, NodeId parent, const std::string& name,
                                 ChangePermit& permit = free_permit());
  /// unlink(2), or rmdir(2) with `directory`.
  codec::Result<void> remove(NodeId parent, const std::string& name, bool directory,
                             ChangePermit& permit = free_permit());
  /// `flags`: 0, RENAME_NOREPLACE, RENAME_EXCHANGE.
  codec::Result<void> rename(NodeId from_parent, const std::string& from, NodeId to_parent, const std::string& to,
                             unsigned flags, ChangePermit& permit = free_permit());
  /// Makes and opens a regular file; `flags` as open(2).
  codec::Result<CreatedFile> create(NodeId parent, const std::string& name, int flags, mode_t mode,
                                    const Caller& caller, ChangePermit& permit = free_permit());
  /// Changes attributes. `handle`: an open handle of the node, or nullptr.
  codec::Result<Attributes> change_attributes(NodeId node, FileHandle* handle, const AttributeChanges& changes,
                                              const Caller& caller = {}, ChangePermit& permit = free_permit());
  codec::Result<void> set_attribute(NodeId node, const std::string& name, const std::string& value, int flags,
                                    const Caller& caller = {}, ChangePermit& permit = free_permit());
  codec::Result<void> remove_attribute(NodeId node, const std::string& name, const Caller& caller = {},
                                       ChangePermit& permit = free_permit());

  /// Writes. `from_page_cache`: the kernel writes back a page, so the bytes belong at `at` even if the handle appends.
  codec::Result<void> write(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool from_page_cache,
                            ChangePermit& permit = free_permit());
  /// fallocate(2).
  codec::Result<void> allocate(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length);
  /// copy_file_range(2) of stored chunks. Returns the number of bytes copied, which may be less than `length`.
  /// EOPNOTSUPP: nothing was copied, because this range needs reading and writing.
  codec::Result<std::uint64_t> copy_range(FileHandle& from, std::uint64_t from_at, FileHandle& to, std::uint64_t to_at,
                                          std::uint64_t length, ChangePermit& permit = free_permit());
  /// Called at close(2) of each descriptor that shares the handle.
  codec::Result<void> flush(FileHandle& handle);
  /// Called when the last of these descriptors is closed.
  void release(std::unique_ptr<FileHandle> handle);
  /// fsync(2) or fdatasync(2).
  codec::Result<void> sync(FileHandle& handle, bool data_only);
  codec::Result<void> sync_directory(NodeId node);

  codec::Result<struct statvfs> filesystem_status();
  codec::Result<std::vector<std::string>> list_attributes(NodeId node);
  codec::Result<std::string> get_attribute(NodeId node, const std::string& name);

  const MountOptions& options() const { return mount_.options; }
  Statistics& statistics() { return mount_.statistics; }
  NodeTable& nodes() { return mount_.nodes; }
  SourceTree& tree() { return mount_.tree; }
  ReadPath& read_path() { return mount_.read_path; }
  /// Returns true if the option `ro` is given, or the source or `offset` permits reading only. REQUIRES: open_source().
  bool is_read_only() const { return mount_.read_only; }

 private:
  /// The entry on disk to which a name of the mount leads.
  struct Entry {
    DirEntry place;
    HeldDirectory directory;
    EntryKind kind = EntryKind::none;
    int fd() const { return directory->fd(); }
    const std::string& name() const { return place.name; }
  };

  codec::Result<void> check_reopening();
  codec::Result<void> check_single_source() const;
  /// Returns the length in bytes of the longest name that a new entry can have.
  std::size_t longest_name() const;
  codec::Result<EntryStat> probe_node(Node& node);
  /// Returns the limit of held directories.
  static std::size_t most_directories();
  Attributes describe(const Node& node, const EntryStat& probe);
  /// Fills in the rights and times of the one file, as those of a directory.
  void show_made_up_root(struct stat& status);
  /// Returns how long the kernel may cache the attributes of a file that it knows.
  double attribute_seconds(const EntryStat& probe, Node& node) const;
  codec::Result<std::shared_ptr<const FrameSnapshot>> snapshot_of(Node& node,
                                                                  const std::shared_ptr<const frame::Descriptor>& file);
  codec::Result<std::shared_ptr<const FrameSnapshot>> open_snapshot(
      Node& node, const std::shared_ptr<const frame::Descriptor>& file);
  /// Logs metadata that cannot be read; the data may be readable.
  void note_metalayer_damage(const frame::Container& container, const std::string& path);
  /// Returns true if a stat has found this state of the file damaged, and has logged the damage.
  static bool is_known_damaged(Node& node, const frame::FileVersion& identity);
  enum class Look : std::uint8_t { first, after_read };
  codec::Result<std::shared_ptr<const FrameSnapshot>> current_snapshot(FileHandle& handle, Look kind = Look::first);
  /// A node and the state of its file.
  struct VersionedNode {
    std::shared_ptr<Node> node;
    frame::FileVersion identity;
  };
  /// Returns the nodes at these places that no program writes, with their states, for carry_versions() after a rename.
  std::vector<VersionedNode> capture_versions(const std::vector<Entry>& entries);
  /// Keeps the kernel's pages after a rename, which leaves the content unchanged.
  void carry_versions(const std::vector<VersionedNode>& before);

  /// `fresh`: the file was just created.
  struct NewFile {
    bool fresh = false;
    WriteBack::Choose choose;
  };

  /// Returns the node at a place if its write-back is committing, else nullptr.
  std::shared_ptr<Node> committing_at(const DirEntry& place) const;
  std::shared_ptr<WriteBack> write_back_at(const DirEntry& place) const;
  /// Returns the write-back of a frame that is being committed or synced. Returns nullptr if there is none.
  std::shared_ptr<WriteBack> committing_entry(NodeId parent, const std::string& name) const;
  codec::Result<std::shared_ptr<OpenFrame>> share_frame(Node& node);
  codec::Result<std::unique_ptr<FileHandle>> open_frame(std::unique_ptr<FileHandle> handle, int flags,
                                                        const NewFile& made);
  /// Returns a function that chooses the parameters of a new frame from its first data.
  WriteBack::Choose chooser() const;
  /// Adds a writer to the frame. EROFS: the frame cannot be written.
  codec::Result<std::shared_ptr<WriteBack>> start_writing(Node& node, const std::shared_ptr<OpenFrame>& frame,
                                                          const NewFile& made) EXCLUDES(mount_.changes);
  codec::Result<std::shared_ptr<WriteBack>> open_writer(Node& node, const std::shared_ptr<OpenFrame>& frame,
                                                        const NewFile& made, FrameLocation place);
  /// Registers the first writer of the frame, which may have been renamed since `opened_at`, its path when it was
  /// opened.
  codec::Result<void> begin_writing(Node& node, OpenFrame& frame, const std::shared_ptr<WriteBack>& writer,
                                    const std::string& opened_at) EXCLUDES(mount_.changes);
  /// Removes a writer; commits. After the last writer, data that cannot be committed yet waits in the flusher, and
  /// programs still see it.
  void stop_writing(NodeId node, const std::shared_ptr<OpenFrame>& frame);
  /// Called after each retry of a commit with its result: the write-back goes on waiting, or leaves the flusher.
  void waited(NodeId node, OpenFrame& frame, bool was_logged, const codec::Result<void>& done);
  /// Decides about a write-back without writers, after a commit with the result `done`. Returns true if its data waits
  /// for another commit. Otherwise drops the data and ends the write-back.
  bool waits_or_ends(NodeId node, OpenFrame& frame, WriteBack& writer, const codec::Result<void>& done)
      REQUIRES(frame.leaving);
  /// Drops data that can never be committed, and logs the loss. Returns false if `may` forbids it:
  /// WriteBack::discard().
  bool drop_rest(WriteBack& writer, const codec::Error& reason, const std::function<bool()>& may);
  /// Calls start_writing(), `work`, a commit and stop_writing().
  using Work = std::function<codec::Result<void>(WriteBack&)>;
  codec::Result<void> with_temporary_writer(Node& node, const Work& work);
  WriteBack::Changer changer(const FileHandle& handle) const;
  /// Converts a place to the type that a write-back takes.
  FrameLocation frame_place(const HeldDirectory& directory, const DirEntry& place) const;
  void committed(Node& node, OpenFrame& frame, const WriteBack::Committed& what);
  codec::Result<std::shared_ptr<const frame::FlatView>> view_of(std::shared_ptr<const frame::Container> container,
                                                                const std::string& path) const;
  /// Returns the state from which copy_range() takes chunks, with everything that programs have written.
  codec::Result<std::shared_ptr<const FrameSnapshot>> state_to_copy(FileHandle& handle);
  /// Returns true if the mount options permit a new frame with these parameters.
  bool may_be_made_like(const frame::NewFrame& frame) const;
  codec::Result<std::uint64_t> seek_frame(FileHandle& handle, std::uint64_t from, bool hole);
  codec::Result<FrameLocation> place_of_frame(const Node& node);
  static codec::Failure not_created(const codec::Error& error, int flags);
  /// A file that create() has created.
  struct NewEntry {
    HeldDirectory directory;
    std::string name;       // on disk
    struct stat status {};  // by its descriptor
    bool is_frame = false;
    Attributes attributes;
  };
  codec::Result<NewEntry> create_entry(NodeId parent, const std::string& name, int flags, mode_t mode,
                                       const Caller& caller, ChangePermit& permit) EXCLUDES(mount_.changes);
  /// Opens a created file. stale: another file has replaced it.
  codec::Result<std::unique_ptr<FileHandle>> open_created(const NewEntry& entry, int flags);
  /// Removes a created file after the call has failed.
  void take_back(const NewEntry& entry) REQUIRES(mount_.changes);
  codec::Result<struct stat> create_frame(const HeldDirectory& directory, const std::string& name, mode_t mode)
      REQUIRES(mount_.changes);
  codec::Result<void> change_layer(Node& node, const std::string& name, const std::string* value, int flags,
                                   ChangePermit& permit);
  codec::Result<EntryStat> apply_stat(Node& node, const EntryStat& known, EntryStat probe,
                                      const std::shared_ptr<WriteBack>& writer, const PageCacheState::Look& look);
  /// As attributes(), but succeeds for a container that cannot be opened.
  codec::Result<Attributes> describe_node(NodeId id, FileHandle* handle);
  codec::Result<Attributes> lookup_stored(NodeId parent, const HeldDirectory& directory, const std::string& name);
  /// Returns the target that a link in `directory` shows. `target`: the stored target.
  std::string shown_target(NodeId directory, const std::string& target);
  /// Returns the length of the target that a link shows. `stored`: the length of its stored target.
  std::uint64_t shown_link_size(Node& node, std::uint64_t stored) EXCLUDES(mount_.names);
  /// Walks a path from `directory`, one name after the other, and returns the directory. EXDEV: it leaves the source.
  codec::Result<HeldDirectory> walk(NodeId directory, std::string path);
  bool is_damaged_small(const FrameSnapshot& snapshot);
  codec::Result<void> read_frame(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply);
  /// Returns true if the last change of the handle's frame came through this mount.
  bool was_changed_here(const FileHandle& handle) const;
  /// Logs and returns the error of a read during which the file changed at each attempt.
  codec::Failure kept_changing(const FrameSnapshot& snapshot);
  codec::Result<void> read_written(FileHandle& handle, WriteBack& writer, std::uint64_t at, std::size_t length,
                                   Reply& reply);
  codec::Result<void> read_plain(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply);
  codec::Result<std::shared_ptr<const FrameSnapshot>> snapshot_for_attributes(Node& node);
  codec::Result<std::unique_ptr<FileHandle>> open_plain(std::unique_ptr<FileHandle> handle, int flags);
  using SharedFile = NodeFiles::SharedFile;
  /// Returns a descriptor for the node's attributes, which may be O_PATH. Finds an open file that has lost its name,
  /// too.
  codec::Result<SharedFile> attribute_file(Node& node) EXCLUDES(mount_.names);
  /// Returns the file whose mode, owner and times are the node's: the index of a sparse frame, else the file itself.
  codec::Result<SharedFile> file_with_rights(Node& node) EXCLUDES(mount_.names);
  /// Returns the file that has the node's extended attribute `name`.
  codec::Result<SharedFile> file_with_attribute(Node& node, const std::string& name) EXCLUDES(mount_.names);

  /// Returns the directory. EROFS: read-only mount; EPERM: a directory in which nothing can be changed.
  codec::Result<HeldDirectory> directory_to_change(NodeId parent);
  /// As directory_to_change(), for a new entry `name`. EEXIST: the name is taken.
  codec::Result<HeldDirectory> directory_for_new(NodeId parent, const std::string& name);
  codec::Result<Entry> find_entry(NodeId parent, const HeldDirectory& directory, const std::string& name) const;
  /// Returns the mode of a new entry in the directory: applies the caller's umask unless there is a default ACL.
  mode_t mode_for_new(const HeldDirectory& directory, mode_t mode, const Caller& caller);
  codec::Result<void> remove_entry(NodeId parent, const std::string& name, bool is_directory) REQUIRES(mount_.changes);
  codec::Result<void> rename_entry(NodeId from_parent, const std::string& from, NodeId to_parent, const std::string& to,
                                   unsigned flags) REQUIRES(mount_.changes);
  codec::Result<void> remove_directory(const Entry& entry) REQUIRES(mount_.changes);
  codec::Result<void> remove_file(const Entry& entry) REQUIRES(mount_.changes);
  codec::Result<void> remove_sparse_frame(const Entry& entry) REQUIRES(mount_.changes);
  /// Removes a directory with a hidden name, and the files in it.
  void remove_hidden(const HeldDirectory& parent, const std::string& name, const frame::Descriptor& directory);
  codec::Result<void> remove_leftovers(const Entry& entry) REQUIRES(mount_.changes);
  codec::Result<void> exchange(const Entry& one, const Entry& other) REQUIRES(mount_.changes);
  codec::Result<void> move_entry(const Entry& from, const std::optional<Entry>& replaced, const Entry& to)
      REQUIRES(mount_.changes);
  void move_lock(const Entry& from, const Entry& to);
  /// Returns a new hidden name. `suffix`: that of the final name, because a source that is a mount goes by it.
  std::string temporary_name(std::string_view suffix = {});
  codec::Result<struct stat> create_plain(const HeldDirectory& directory, const std::string& name, mode_t mode);
  using FindFile = std::function<codec::Result<SharedFile>()>;
  using ChangeFile = std::function<codec::Result<void>(int fd)>;
  /// Makes a change that leaves the content alone to the file that `find` opens, never during a commit of the node.
  codec::Result<void> change_file(Node& node, const FindFile& find, const ChangeFile& change, ChangePermit& permit);
  /// Changes mode, owner and times.
  codec::Result<void> change_rights(Node& node, const AttributeChanges& changes, const Caller& caller,
                                    ChangePermit& permit);
  codec::Result<void> change_rights_of(int fd, const AttributeChanges& changes, const Caller& caller);
  /// The index of a sparse frame and its directory.
  struct SparseFiles {
    int directory = -1;
    int index = -1;
  };
  /// Returns the status of the index. stale: it does not belong to the user that the mount has shown to the kernel.
  codec::Result<struct stat> check_index(Node& node, int index);
  codec::Result<void> change_sparse_rights(Node& node, const SparseFiles& frame, const AttributeChanges& changes,
                                           const Caller& caller);
  /// The change of each kind of file of a sparse frame.
  struct SparseChange {
    ChangeFile index;
    ChangeFile chunk;
    ChangeFile directory;
  };
  /// Changes the files of a sparse frame, but only the index in a directory of another user. `index`: its status.
  codec::Result<void> change_sparse(const SparseFiles& frame, const struct stat& index, const SparseChange& change);
  codec::Result<void> change_chunk_files(int directory, const struct stat& index, const ChangeFile& change);
  /// Sets or removes an ACL. `fd`: the file_with_rights(). `value`: nullptr to remove the ACL.
  codec::Result<void> change_acl(Node& node, int fd, const std::string& name, const std::string* value,
                                 const Caller& caller);
  codec::Result<void> truncate(Node& node, FileHandle* handle, std::uint64_t size, ChangePermit& permit);
  codec::Result<void> write_plain(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool append);
  codec::Result<void> allocate_plain(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length);

  codec::Result<Attributes> lookup_control(NodeId parent, const std::string& name);
  std::string control_content(const std::string& name);

  MountContext mount_;
  NodeFiles node_files_{mount_};
  KernelNotices notices_;
  KernelPages pages_{mount_.nodes, notices_};
  SourceChanges source_changes_{mount_, node_files_, notices_, pages_};
  ReadAhead::Shared ahead_;
  std::atomic<std::uint64_t> next_temporary_{1};
  std::atomic<std::uint64_t> next_snapshot_{1};
  ChunkEncoders encoders_;
  WriteBackShared write_back_{mount_.files,
                              mount_.read_path,
                              encoders_,
                              mount_.statistics,
                              mount_.once,
                              mount_.index_cache,
                              [this] { return next_snapshot_.fetch_add(1, std::memory_order_relaxed); },
                              0,
                              {0},
                              [this] { flusher_.wake(); },
                              [this](std::uint64_t most) { flusher_.commit_largest(most); },
                              [this](std::shared_ptr<const frame::Container> container, const std::string& path) {
                                return view_of(std::move(container), path);
                              }};
  Flusher flusher_{write_back_};
};

}  // namespace cframefs::fs
