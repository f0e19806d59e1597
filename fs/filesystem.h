// The filesystem behind the mount, without FUSE: every operation as a plain call that tests can make.
//
// Thread safety: all operations may be called at once; a FileHandle and a DirectoryHandle serve many threads.
// Ownership: handles belong to the caller and must be dropped before the filesystem. Units: bytes.
// Errors: values; the adapter turns them into errno. What damages a file is logged once, here.
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

#include "codec/base/shared_mutex.h"
#include "fs/caller/acting_as.h"
#include "fs/handles.h"
#include "fs/kernel/notifier.h"
#include "fs/kernel_invalidator.h"
#include "fs/read/read_ahead.h"
#include "fs/read/read_path.h"
#include "fs/tree/descriptor_reserve.h"
#include "fs/tree/held_directories.h"
#include "fs/tree/node_table.h"
#include "fs/tree/open_frame.h"
#include "fs/tree/source_tree.h"
#include "fs/tree/watcher.h"
#include "fs/util/options.h"
#include "fs/util/statistics.h"
#include "fs/util/worker_pool.h"
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
  /// Starts threads; after going to the background. `kernel` must live until stop().
  void start(KernelInvalidator& kernel, const KernelReadahead& readahead = {});
  void stop();

  codec::Result<Attributes> lookup(NodeId parent, const std::string& name);
  void forget(NodeId node, std::uint64_t lookups);
  /// `handle`: an open handle of the node, or null. Fails for a container that cannot be opened, with the reason: no
  /// size of it could be told that is not a guess.
  codec::Result<Attributes> attributes(NodeId node, FileHandle* handle);
  codec::Result<std::string> read_link(NodeId node);

  codec::Result<std::unique_ptr<DirectoryHandle>> open_directory(NodeId node);
  /// Reads the entries of now.
  codec::Result<void> list(DirectoryHandle& handle) REQUIRES(handle.mutex);
  /// Whether the directory has so many entries that to list it takes long; a guess before list() has read them.
  bool is_large(const DirectoryHandle& handle) REQUIRES(handle.mutex);
  /// The inode number of an entry, as its attributes show it.
  std::uint64_t shown_inode(const DirectoryHandle& handle, const StoredEntry& entry);
  static std::uint64_t shown_inode(const Node& node);
  /// That of the directory that it lies in.
  std::uint64_t parent_inode(const DirectoryHandle& handle);

  /// `flags`: as open(2); O_CREAT and O_EXCL have been dealt with.
  codec::Result<std::unique_ptr<FileHandle>> open(NodeId node, int flags = O_RDONLY);
  /// Whether the caller has rights (R_OK, W_OK) that the kernel cannot judge from what it was shown: EACCES.
  codec::Result<void> check_caller(NodeId node, const Caller& caller, int rights);
  /// `holds_pages`: the kernel keeps the pages of the range locked until the reply is sent.
  codec::Result<void> read(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply,
                           bool holds_pages = false);
  /// lseek(2) with SEEK_DATA or SEEK_HOLE.
  codec::Result<std::uint64_t> seek(FileHandle& handle, std::uint64_t from, int whence);

  // From here on: what changes something. Everything fails with EROFS on a read-only mount.

  codec::Result<Attributes> make_directory(NodeId parent, const std::string& name, mode_t mode, const Caller& caller,
                                           ChangePermit& permit = free_permit());
  codec::Result<Attributes> make_symlink(NodeId parent, const std::string& name, const std::string& target,
                                         const Caller& caller, ChangePermit& permit = free_permit());
  /// Pipes, sockets, devices; a regular file as create() makes it.
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
  /// `handle`: an open handle of the node, or null.
  codec::Result<Attributes> change_attributes(NodeId node, FileHandle* handle, const AttributeChanges& changes,
                                              const Caller& caller = {}, ChangePermit& permit = free_permit());
  codec::Result<void> set_attribute(NodeId node, const std::string& name, const std::string& value, int flags,
                                    const Caller& caller = {}, ChangePermit& permit = free_permit());
  codec::Result<void> remove_attribute(NodeId node, const std::string& name, const Caller& caller = {},
                                       ChangePermit& permit = free_permit());

  /// `from_page_cache`: written back by the kernel, so it belongs at `at` even if the handle appends.
  codec::Result<void> write(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool from_page_cache,
                            ChangePermit& permit = free_permit());
  /// fallocate(2).
  codec::Result<void> allocate(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length);
  /// copy_file_range(2) of stored chunks. Returns how much was copied, which may be less than asked for. EOPNOTSUPP:
  /// nothing, because it can only be done by reading and writing.
  codec::Result<std::uint64_t> copy_range(FileHandle& from, std::uint64_t from_at, FileHandle& to, std::uint64_t to_at,
                                          std::uint64_t length, ChangePermit& permit = free_permit());
  /// close(2) of one of the descriptors that share the handle.
  codec::Result<void> flush(FileHandle& handle);
  /// The last of them is gone.
  void release(std::unique_ptr<FileHandle> handle);
  /// fsync(2) or fdatasync(2).
  codec::Result<void> sync(FileHandle& handle, bool data_only);
  codec::Result<void> sync_directory(NodeId node);

  codec::Result<struct statvfs> filesystem_status();
  codec::Result<std::vector<std::string>> list_attributes(NodeId node);
  codec::Result<std::string> get_attribute(NodeId node, const std::string& name);

  const MountOptions& options() const { return options_; }
  Statistics& statistics() { return statistics_; }
  NodeTable& nodes() { return nodes_; }
  SourceTree& tree() { return tree_; }
  ReadPath& read_path() { return read_path_; }
  /// Asked for, or because the source can be read only. After open_source().
  bool is_read_only() const { return read_only_; }

 private:
  /// A name on disk in a directory that is held open; "." for the directory itself.
  struct HeldName {
    HeldDirectory directory;
    std::string name;
    int fd() const { return directory->fd(); }
  };
  /// An entry on disk that a name of the mount stands for.
  struct Entry {
    DirEntry place;
    HeldDirectory directory;
    EntryKind kind = EntryKind::none;
    int fd() const { return directory->fd(); }
    const std::string& name() const { return place.name; }
  };

  codec::Result<void> check_reopening();
  codec::Result<void> check_single_source() const;
  /// Bytes of the longest name that an entry can be made with.
  std::size_t longest_name() const;
  codec::Result<EntryStat> probe_node(Node& node);
  /// For messages; empty if it has no name any more.
  std::string path_of(NodeId node) const;
  /// For messages.
  std::string path_in(NodeId directory, const std::string& name) const;
  /// Where the node lies: a directory in itself, what else there is in its parent. stale: nowhere any more. Under
  /// names_.
  codec::Result<HeldName> held_name_of(const Node& node);
  /// How many directories may be held.
  static std::size_t most_directories();
  void watch(Node& directory);
  /// Of the watcher: posts what follows from a change.
  void changed(const Watcher::Change& change);
  /// The watcher has missed changes.
  void lost_track();
  /// What the name stands for has changed: the kernel forgets the name, unless the mount has changed it itself.
  void forget_moved(const DirEntry& place) EXCLUDES(changes_);
  /// Whether the node is on disk where the kernel knows it to be, as far as the place of the change goes.
  bool lies_at(Node& node, const DirEntry& place) EXCLUDES(changes_);
  /// Posts it to the notifier, come what may: what is left out is read as old bytes.
  void notify(Notifier::Lane lane, NodeId id, const std::string& what, const Notifier::Task& task);
  void forget_directory(NodeId directory);
  /// Has the kernel drop attributes and pages of a file, and not wait for those of reads under way that will look at
  /// the file once more.
  void drop_pages(const std::shared_ptr<Node>& node);
  /// On a thread of the notifier.
  void drop_around_reads(const std::shared_ptr<Node>& node);
  /// Of an answer that shows a state of the file, while pages may be of an older one: until they are not.
  void wait_for_drop(const Node& node);
  Attributes describe(const Node& node, const EntryStat& probe);
  /// A mount of one file that shows a directory with that file in it: the directory that holds the file is another one,
  /// and is neither shown nor changed.
  bool is_made_up_root(const Node& node) const;
  /// The rights and times of the one file, as a directory has them.
  void show_made_up_root(struct stat& status);
  /// How long the kernel may keep the attributes of a file that it knows.
  double attribute_seconds(const EntryStat& probe, Node& node) const;
  codec::Result<std::shared_ptr<const FrameSnapshot>> snapshot_of(Node& node,
                                                                  const std::shared_ptr<const frame::Descriptor>& file);
  codec::Result<std::shared_ptr<const FrameSnapshot>> open_snapshot(
      Node& node, const std::shared_ptr<const frame::Descriptor>& file);
  /// Logs what of the metadata cannot be read; the data can be all the same.
  void note_metalayer_damage(const frame::Container& container, const std::string& path);
  /// This state of the file was found damaged, and that was logged, when it was looked at.
  static bool is_known_damaged(Node& node, const frame::FileVersion& identity);
  enum class Look : std::uint8_t { first, after_read };
  codec::Result<std::shared_ptr<const FrameSnapshot>> current_snapshot(FileHandle& handle, Look kind = Look::first);
  /// A node and the state of its file.
  struct VersionedNode {
    std::shared_ptr<Node> node;
    frame::FileVersion identity;
  };
  /// Of the nodes at these places, if nobody writes them: for carry_versions(), after they have been renamed.
  std::vector<VersionedNode> capture_versions(const std::vector<Entry>& entries);
  /// A rename has left the content alone: what the kernel has cached is as right as it was.
  void carry_versions(const std::vector<VersionedNode>& before);

  /// A file that was made just now.
  struct NewFile {
    bool fresh = false;
    WriteBack::Choose choose;
  };

  static std::shared_ptr<OpenFrame> open_frame_of(Node& node);
  static std::shared_ptr<WriteBack> write_back_of(Node& node);
  /// The node at a place, if its write-back is committing.
  std::shared_ptr<Node> committing_at(const DirEntry& place) const;
  std::shared_ptr<WriteBack> write_back_at(const DirEntry& place) const;
  /// The write-back of a frame that is committed or synced right now; null: there is no such frame, or neither.
  std::shared_ptr<WriteBack> committing_entry(NodeId parent, const std::string& name) const;
  codec::Result<std::shared_ptr<OpenFrame>> share_frame(Node& node);
  codec::Result<std::unique_ptr<FileHandle>> open_frame(std::unique_ptr<FileHandle> handle, int flags,
                                                        const NewFile& made);
  /// The parameters of a frame that programs fill first in this mount.
  WriteBack::Choose chooser() const;
  /// One more writer of the frame. EROFS: it cannot be written.
  codec::Result<std::shared_ptr<WriteBack>> start_writing(Node& node, const std::shared_ptr<OpenFrame>& frame,
                                                          const NewFile& made) EXCLUDES(changes_);
  codec::Result<std::shared_ptr<WriteBack>> open_writer(Node& node, const std::shared_ptr<OpenFrame>& frame,
                                                        const NewFile& made, FrameLocation place);
  /// The first writer of the frame, which may have been renamed since it was opened. `opened_at`: its path then.
  codec::Result<void> begin_writing(Node& node, OpenFrame& frame, const std::shared_ptr<WriteBack>& writer,
                                    const std::string& opened_at) EXCLUDES(changes_);
  /// One writer less; with the last one everything is committed. What cannot be committed yet waits in the flusher, and
  /// programs see it as before.
  void stop_writing(NodeId node, const std::shared_ptr<OpenFrame>& frame);
  /// A commit of what waits went so: it goes on waiting or is let go.
  void waited(NodeId node, OpenFrame& frame, bool was_told, const codec::Result<void>& done);
  /// Whether what a write-back holds that no program writes through any more waits for a commit. Else it ends, and what
  /// it holds is dropped.
  bool waits_or_ends(NodeId node, OpenFrame& frame, WriteBack& writer, const codec::Result<void>& done)
      REQUIRES(frame.leaving);
  /// What it holds can never be committed. False: nothing was dropped, for it `may` not be: WriteBack::discard().
  bool drop_rest(WriteBack& writer, const codec::Error& reason, const std::function<bool()>& may);
  /// start_writing(), `work`, a commit, stop_writing().
  using Work = std::function<codec::Result<void>(WriteBack&)>;
  codec::Result<void> with_temporary_writer(Node& node, const Work& work);
  WriteBack::Changer changer(const FileHandle& handle) const;
  /// The same place in the words of a write-back.
  FrameLocation frame_place(const HeldDirectory& directory, const DirEntry& place) const;
  void committed(Node& node, OpenFrame& frame, const WriteBack::Committed& what);
  /// What stands in front of the items of an array is another one, if the number of rows is: the kernel must not go on
  /// showing the old one. `may_wait`: the kernel does not need an answer first.
  void note_new_head(const Node& node, WriteBack& writer, bool may_wait);
  void drop_head(const Node& node, const frame::FlatView& view);
  /// False: the kernel may still show an old one, after `patience`.
  bool is_head_dropped(const Node& node, std::chrono::milliseconds patience);
  codec::Result<std::shared_ptr<const frame::FlatView>> view_of(std::shared_ptr<const frame::Container> container,
                                                                const std::string& path) const;
  /// The state that copy_range() takes chunks from, with all that programs have written.
  codec::Result<std::shared_ptr<const FrameSnapshot>> state_to_copy(FileHandle& handle);
  /// Whether the mount's options leave it open that a new frame is like this one.
  bool may_be_made_like(const frame::NewFrame& frame) const;
  codec::Result<std::uint64_t> seek_frame(FileHandle& handle, std::uint64_t from, bool hole);
  codec::Result<FrameLocation> place_of_frame(const Node& node);
  static codec::Failure not_created(const codec::Error& error, int flags);
  /// A file that create() has made.
  struct NewEntry {
    HeldDirectory directory;
    std::string name;       // on disk
    struct stat status {};  // by its descriptor
    bool is_frame = false;
    Attributes attributes;
  };
  codec::Result<NewEntry> create_entry(NodeId parent, const std::string& name, int flags, mode_t mode,
                                       const Caller& caller, ChangePermit& permit) EXCLUDES(changes_);
  /// Opens it, if it is still there.
  codec::Result<std::unique_ptr<FileHandle>> open_created(const NewEntry& entry, int flags);
  /// Removes it, for a call that fails.
  void take_back(const NewEntry& entry) REQUIRES(changes_);
  codec::Result<struct stat> create_frame(const HeldDirectory& directory, const std::string& name, mode_t mode)
      REQUIRES(changes_);
  codec::Result<void> change_layer(Node& node, const std::string& name, const std::string* value, int flags,
                                   ChangePermit& permit);
  codec::Result<EntryStat> apply_stat(Node& node, const EntryStat& known, EntryStat probe,
                                      const std::shared_ptr<WriteBack>& writer, const PageCacheState::Look& look);
  /// As attributes(), also of a node whose container cannot be opened.
  codec::Result<Attributes> describe_node(NodeId id, FileHandle* handle);
  codec::Result<Attributes> lookup_stored(NodeId parent, const HeldDirectory& directory, const std::string& name);
  /// What a link in `directory` shows that holds `target`.
  std::string shown_target(NodeId directory, const std::string& target);
  /// The length of what a link shows. `stored`: of its target.
  std::uint64_t shown_link_size(Node& node, std::uint64_t stored) EXCLUDES(names_);
  /// The directory that a path leads to from `directory`, as far as the source goes; one name after the other.
  codec::Result<HeldDirectory> walk(NodeId directory, std::string path);
  bool is_damaged_small(const FrameSnapshot& snapshot);
  codec::Result<void> read_frame(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply);
  /// Whether the last change of its frame came through this mount.
  bool was_changed_here(const FileHandle& handle) const;
  /// The error of a read that never saw one state alone; logged.
  codec::Failure kept_changing(const FrameSnapshot& snapshot);
  codec::Result<void> read_written(FileHandle& handle, WriteBack& writer, std::uint64_t at, std::size_t length,
                                   Reply& reply);
  codec::Result<void> read_plain(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply);
  codec::Result<std::shared_ptr<const FrameSnapshot>> snapshot_for_attributes(Node& node);
  codec::Result<std::unique_ptr<FileHandle>> open_plain(std::unique_ptr<FileHandle> handle, int flags);
  using SharedFile = std::shared_ptr<const frame::Descriptor>;
  /// Opens what a program is to hold; if descriptors are short, once more after directories that are held for look-ups
  /// have been closed.
  codec::Result<SharedFile> open_with_room(const std::function<codec::Result<SharedFile>()>& open);
  /// Opens the node's file. stale: another one lies where it did.
  codec::Result<SharedFile> open_file(const Node& node, int flags) EXCLUDES(names_);
  /// The same for what says of attributes alone; also of a file that lost its name and that a program has open.
  codec::Result<SharedFile> attribute_file(Node& node) EXCLUDES(names_);
  /// The file whose mode, owner and times are the node's: of a sparse frame its index.
  codec::Result<SharedFile> file_with_rights(Node& node) EXCLUDES(names_);
  /// That with an extended attribute.
  codec::Result<SharedFile> file_with_attribute(Node& node, const std::string& name) EXCLUDES(names_);

  /// EROFS on a read-only mount, EPERM where nothing can be changed; else the directory.
  codec::Result<HeldDirectory> directory_to_change(NodeId parent);
  /// The same, for something new called `name`: EEXIST if the name is taken.
  codec::Result<HeldDirectory> directory_for_new(NodeId parent, const std::string& name);
  codec::Result<Entry> find_entry(NodeId parent, const HeldDirectory& directory, const std::string& name) const;
  /// The mode of something new in the directory: the caller's umask counts where no default ACL does.
  mode_t mode_for_new(const HeldDirectory& directory, mode_t mode, const Caller& caller);
  codec::Result<void> remove_entry(NodeId parent, const std::string& name, bool is_directory) REQUIRES(changes_);
  codec::Result<void> rename_entry(NodeId from_parent, const std::string& from, NodeId to_parent, const std::string& to,
                                   unsigned flags) REQUIRES(changes_);
  codec::Result<void> remove_directory(const Entry& entry) REQUIRES(changes_);
  codec::Result<void> remove_file(const Entry& entry) REQUIRES(changes_);
  codec::Result<void> remove_sparse_frame(const Entry& entry) REQUIRES(changes_);
  /// A directory of files under a name of our own.
  void remove_hidden(const HeldDirectory& parent, const std::string& name, const frame::Descriptor& directory);
  codec::Result<void> remove_leftovers(const Entry& entry) REQUIRES(changes_);
  codec::Result<void> exchange(const Entry& one, const Entry& other) REQUIRES(changes_);
  codec::Result<void> move_entry(const Entry& from, const std::optional<Entry>& replaced, const Entry& to)
      REQUIRES(changes_);
  void move_lock(const Entry& from, const Entry& to);
  /// `suffix`: that of the name which the file is to get, for the source may be a mount that goes by it.
  std::string temporary_name(std::string_view suffix = {});
  codec::Result<struct stat> create_plain(const HeldDirectory& directory, const std::string& name, mode_t mode);
  using FindFile = std::function<codec::Result<SharedFile>()>;
  using ChangeFile = std::function<codec::Result<void>(int fd)>;
  /// Makes a change of the mount's own that leaves the content alone to the file that `find` opens. Commits of the node
  /// come before it or after it.
  codec::Result<void> change_file(Node& node, const FindFile& find, const ChangeFile& change, ChangePermit& permit);
  /// Mode, owner and times.
  codec::Result<void> change_rights(Node& node, const AttributeChanges& changes, const Caller& caller,
                                    ChangePermit& permit);
  codec::Result<void> change_rights_of(int fd, const AttributeChanges& changes, const Caller& caller);
  /// The index of a sparse frame and the directory that it lies in.
  struct SparseFiles {
    int directory = -1;
    int index = -1;
  };
  /// stale: the index is not that of the user that the kernel was told of.
  codec::Result<struct stat> check_index(Node& node, int index);
  codec::Result<void> change_sparse_rights(Node& node, const SparseFiles& frame, const AttributeChanges& changes,
                                           const Caller& caller);
  /// What is done to each of the files that other programs read a sparse frame by.
  struct SparseChange {
    ChangeFile index;
    ChangeFile chunk;
    ChangeFile directory;
  };
  /// Leaves alone what is not the frame's own: nothing but the index in a directory of another user. `index`: its
  /// state.
  codec::Result<void> change_sparse(const SparseFiles& frame, const struct stat& index, const SparseChange& change);
  codec::Result<void> change_chunk_files(int directory, const struct stat& index, const ChangeFile& change);
  /// `fd`: of the file with the rights. `value`: null to remove the list.
  codec::Result<void> change_acl(Node& node, int fd, const std::string& name, const std::string* value,
                                 const Caller& caller);
  codec::Result<void> truncate(Node& node, FileHandle* handle, std::uint64_t size, ChangePermit& permit);
  codec::Result<void> write_plain(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool append);
  codec::Result<void> allocate_plain(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length);
  /// Makes a change of the mount's own to the file of `node`. If what the kernel has cached was right before, it still
  /// is afterwards. `status`: stats the file; `change`: makes the change.
  codec::Result<void> with_self_change(Node& node, const std::function<codec::Result<struct stat>()>& status,
                                       const std::function<codec::Result<void>()>& change);
  /// The watcher reports a change of the node's file. True: the kernel must drop what it holds of the file.
  bool is_changed_behind(Node& node);
  /// Has the kernel drop pages without waiting for it.
  void carry_out(PageCacheState::Drop drop, NodeId node);
  /// The watcher reports a change of the file.
  void look_into_change(const std::shared_ptr<Node>& node);
  /// A handle is opened on the state `opening.file`: decides what the answer to open(2) says of pages.
  static void enter_page_cache(FileHandle& handle, const PageCacheState::Opening& opening);
  /// A request of the handle has come: the kernel has done what the answer to its open asked for.
  static void confirm_open(FileHandle& handle);
  void leave_page_cache(FileHandle& handle);
  /// A write that the kernel has put into the pages at `at` has gone to `place`. Its pages are dropped where they may
  /// be older than it is.
  void note_written(FileHandle& handle, std::uint64_t at, std::uint64_t place, std::uint64_t length);

  codec::Result<Attributes> lookup_control(NodeId parent, const std::string& name);
  std::string control_content(const std::string& name);

  frame::FileOps& files_;
  const MountOptions options_;
  const std::uint64_t memory_;  // bytes that may be used, when the mount began
  const DescriptorReserve reserve_;
  Statistics statistics_;
  DedupLogger once_;
  ReadPath read_path_;  // before all that may hold a snapshot
  SourceTree tree_;
  NodeTable nodes_;
  HeldDirectories directories_{files_, nodes_};
  std::shared_ptr<frame::IndexCache> index_cache_;
  WorkerPool workers_;
  Notifier notifier_;
  ReadAhead::Shared ahead_;
  bool root_is_file_ = false;
  bool read_only_ = true;
  /// Held by whatever makes, renames or removes entries; taken before any node's mutexes.
  codec::Mutex changes_;
  /// Names on disk and the places of nodes agree: held for changing while an entry is renamed or removed in both, and
  /// for looking by whoever takes from one what it uses with the other. Taken after changes_, the mutexes of commits
  /// and Node::change_mutex, before the others of nodes and layers.
  mutable codec::SharedMutex names_;
  std::atomic<std::uint64_t> next_temporary_{1};
  std::atomic<std::uint64_t> next_snapshot_{1};
  KernelInvalidator* kernel_ = nullptr;
  std::atomic<bool> keeps_names_{false};  // the kernel may be told names of files for longer than one look-up
  Watcher watcher_;
  ChunkEncoders encoders_;
  WriteBackShared write_back_{files_,
                              read_path_,
                              encoders_,
                              statistics_,
                              once_,
                              index_cache_,
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
