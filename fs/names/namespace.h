// The namespace of the mount: looking names up, and creating, renaming and removing entries of directories.
//
// A name of the mount maps to a name on disk (fs/tree/name_mapping.h): a new or renamed entry gets the name on disk
// that shows as the requested name. Lock side-cars are renamed and removed with their frames.
//
// Thread safety: all members may be called concurrently. Locks: MountContext::changes serialises all changes; look-ups
// wait only while an entry leaves its name (MountContext::names, exclusive), and see the directory before or after.
// Ownership: the caller owns the handle that create() opens. Errors: io with the system's errno; EROFS on a read-only
// mount; EXDEV if a rename would turn a plain file into a frame or back (programs then copy).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/names/entries.h"
#include "fs/names/lookups.h"
#include "fs/write/commit_pause.h"

namespace cframefs::fs {

class Namespace {
 public:
  Namespace(MountContext& mount, NodeFiles& node_files, KernelPages& pages, FrameWriters& writers, OpenFiles& files,
            FileAttributes& attributes)
      : mount_(mount),
        node_files_(node_files),
        pages_(pages),
        writers_(writers),
        files_(files),
        lookups_(mount, node_files, attributes, files.control()),
        entries_(mount) {}

  codec::Result<Attributes> lookup(NodeId parent, const std::string& name) { return lookups_.lookup(parent, name); }
  void forget(NodeId node, std::uint64_t lookups) { lookups_.forget(node, lookups); }
  std::size_t longest_name() const { return lookups_.longest_name(); }

  codec::Result<Attributes> make_directory(NodeId parent, const std::string& name, mode_t mode, const Caller& caller,
                                           ChangePermit& permit = free_permit());
  codec::Result<Attributes> make_symlink(NodeId parent, const std::string& name, const std::string& target,
                                         const Caller& caller, ChangePermit& permit = free_permit());
  /// Creates a pipe, socket or device; a regular file as create() does.
  codec::Result<Attributes> make_node(NodeId parent, const std::string& name, mode_t mode, dev_t device,
                                      const Caller& caller, ChangePermit& permit = free_permit());
  codec::Result<Attributes> link(NodeId id, NodeId parent, const std::string& name,
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

 private:
  /// A file that create() has created.
  struct NewEntry {
    HeldDirectory directory;
    std::string name;       // on disk
    struct stat status {};  // by its descriptor
    bool is_frame = false;
    std::shared_ptr<const frame::Descriptor> file;  // as NewFile::file
    NewContent written;                             // as NewFile::written
    Attributes attributes;
  };
  /// Its file on disk.
  struct NewFile {
    EntryStat entry;
    std::shared_ptr<const frame::Descriptor> file;  // open for reading and writing; nullptr if it is no frame
    NewContent written = {};                        // of a frame
  };
  /// A new file that has its name.
  struct PublishedFile {
    std::shared_ptr<const frame::Descriptor> file;  // open for reading and writing; nullptr: open the name
    struct stat made = {};                          // before it had its name
    codec::Result<struct stat> named = {};          // as its name shows it
  };
  enum class NameUse : std::uint8_t {
    free,      // EEXIST if it is not
    replaced,  // another file has it
  };
  class HiddenFrame;
  /// A node and the state of its file.
  struct VersionedNode {
    std::shared_ptr<Node> node;
    frame::FileVersion identity;
  };

  // fs/names/namespace_create.cc
  static codec::Failure not_created(const codec::Error& error, int flags);
  codec::Result<NewEntry> create_entry(NodeId parent, const std::string& name, int flags, mode_t mode,
                                       const Caller& caller, ChangePermit& permit) EXCLUDES(mount_.changes);
  codec::Result<NewFile> create_frame(const HeldDirectory& directory, const std::string& name, mode_t mode)
      REQUIRES(mount_.changes);
  /// Creates a file with this content, which gets its name once it is complete. EEXIST: the name is taken.
  codec::Result<PublishedFile> publish(const HeldDirectory& directory, const std::string& name, mode_t mode,
                                       codec::ByteView content) REQUIRES(mount_.changes);
  /// As publish(), without a name until then. Fails on filesystems without unnamed files or without links.
  codec::Result<PublishedFile> publish_unnamed(const HeldDirectory& directory, const std::string& name, mode_t mode,
                                               codec::ByteView content) REQUIRES(mount_.changes);
  /// As publish(), with a temporary name until then.
  codec::Result<PublishedFile> publish_temporary(const HeldDirectory& directory, const std::string& name, mode_t mode,
                                                 codec::ByteView content);
  /// Writes a new file, and sets the bits of `mode` that a write clears. Returns its status.
  codec::Result<struct stat> fill(frame::OpenFile file, mode_t mode, codec::ByteView content);
  codec::Result<NewFile> create_plain(const HeldDirectory& directory, const std::string& name, mode_t mode);
  /// Returns the mode with which as_caller() creates an entry in the directory: without the bits of the caller's umask
  /// if the thread cannot have that umask, unless there is a default ACL.
  mode_t mode_for_new(const HeldDirectory& directory, mode_t mode, const Caller& caller);
  /// Opens a created file. stale: another file has replaced it.
  codec::Result<std::unique_ptr<FileHandle>> open_created(NewEntry& entry, int flags);
  /// Removes a created file after the call has failed, unless another one has its name.
  void take_back(const HeldDirectory& directory, const std::string& name, const struct stat& created)
      REQUIRES(mount_.changes);

  // fs/names/namespace_remove.cc
  codec::Result<void> remove_entry(NodeId parent, const std::string& name, bool is_directory) REQUIRES(mount_.changes);
  codec::Result<void> remove_directory(const Entry& entry) REQUIRES(mount_.changes);
  codec::Result<void> remove_leftovers(const Entry& entry) REQUIRES(mount_.changes);
  codec::Result<void> remove_file(const Entry& entry) REQUIRES(mount_.changes);
  /// Removes the name of a file or sparse frame, which programs may have open. `pause`: of its commits; nullptr if no
  /// program writes it. `files`: to be released without the lock.
  codec::Result<void> take_name(const Entry& entry, CommitPause* pause, std::shared_ptr<const void>& files)
      REQUIRES(mount_.changes, mount_.names);
  codec::Result<void> take_sparse_name(const Entry& entry, CommitPause* pause, std::shared_ptr<const void>& files)
      REQUIRES(mount_.changes, mount_.names);
  /// Removes a directory with a hidden name, and the files in it.
  void remove_hidden(const HeldDirectory& parent, const std::string& name, const frame::Descriptor& directory);

  // fs/names/namespace_rename.cc
  codec::Result<void> rename_entry(NodeId from_parent, const std::string& from, NodeId to_parent, const std::string& to,
                                   unsigned flags) REQUIRES(mount_.changes);
  codec::Result<void> exchange(const Entry& one, const Entry& other) REQUIRES(mount_.changes);
  codec::Result<void> move_entry(const Entry& from, const std::optional<Entry>& replaced, const Entry& to)
      REQUIRES(mount_.changes);
  codec::Result<void> move_name(const Entry& from, const std::optional<Entry>& replaced, const Entry& to)
      REQUIRES(mount_.changes);
  // Changes of names on disk and in the table of nodes. `pause`, `old_pause`: of the commits of the moved and of the
  // replaced entry; nullptr if no program writes it. `files`: as that of take_name().
  codec::Result<void> exchange_names(const Entry& one, CommitPause* one_pause, const Entry& other,
                                     CommitPause* other_pause) REQUIRES(mount_.changes, mount_.names);
  /// rename(2). `use`: of the new name.
  codec::Result<void> give_name(const Entry& from, const Entry& to, CommitPause* pause, NameUse use)
      REQUIRES(mount_.changes, mount_.names);
  /// Undoes a give_name() whose next step failed. Ignores errors of the source.
  void give_name_back(const Entry& from, const Entry& to, CommitPause* pause) REQUIRES(mount_.changes, mount_.names);
  /// Replaces an entry if one of the two is a sparse frame: rename(2) fails if one is a directory and the other a file.
  codec::Result<void> replace_sparse(const Entry& from, CommitPause* pause, const Entry& replaced,
                                     CommitPause* old_pause, std::shared_ptr<const void>& files)
      REQUIRES(mount_.changes, mount_.names);
  codec::Result<void> replace_other_name(const Entry& from, const Entry& to, CommitPause* pause, const Entry& replaced,
                                         CommitPause* old_pause, std::shared_ptr<const void>& files)
      REQUIRES(mount_.changes, mount_.names);
  // Lock files go with their frames.
  void move_lock(const Entry& from, const Entry& to);
  void exchange_locks(const Entry& one, const Entry& other);
  void remove_lock(const Entry& frame);
  /// Returns the nodes at these places that no program writes, with their states, for carry_versions() after a rename.
  std::vector<VersionedNode> capture_versions(const std::vector<Entry>& entries) const;
  /// Keeps the kernel's pages after a rename, which leaves the content unchanged.
  void carry_versions(const std::vector<VersionedNode>& before);

  MountContext& mount_;
  NodeFiles& node_files_;
  KernelPages& pages_;
  FrameWriters& writers_;
  OpenFiles& files_;
  Lookups lookups_;
  Entries entries_;
  bool has_unnamed_files_ = true;  // false once the source has refused one; under MountContext::changes
};

}  // namespace cframefs::fs
