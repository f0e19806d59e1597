// The filesystem behind the mount, without FUSE: it builds the parts of a mount and begins and ends their threads. The
// FUSE adapter and tests call the parts: each operation is a plain call.
//
//   names, directories                 names/       look-ups, changes of names, listings
//   attributes, extended attributes,   attributes/  what stat(2) and getxattr(2) show, rights, targets of links
//   links, rights
//   files                              files/       open files; frames: frames/
//   (what the kernel caches)           coherence/   pages, attributes and names that the kernel must drop
//   (what the parts share)             mount/       MountContext, NodeFiles
//
// Thread safety: all operations may be concurrent; a FileHandle and a DirectoryHandle serve many threads.
// Ownership: handles belong to the caller and must be dropped before the filesystem. Units: bytes.
// Errors: values; the adapter turns them into errno. The filesystem logs damage of a file once.
#pragma once

#include "fs/attributes/extended_attributes.h"
#include "fs/coherence/source_changes.h"
#include "fs/names/directories.h"
#include "fs/names/namespace.h"

namespace cframefs::fs {

class Filesystem {
 public:
  Filesystem(frame::FileOps& files, const MountOptions& options);
  ~Filesystem();

  /// Opens the source. `root_is_file`: the mount point is a regular file, so the root is the view of the one frame.
  /// `remote_root`: the path of the source in the tree of a server; empty: the source is a path of the system.
  codec::Result<void> open_source(bool root_is_file, const std::string& remote_root = {});
  /// Starts threads. `is_writable`: returns whether the kernel lets programs write, which root may change with
  /// `remount`; empty: as long as the mount lives, it does not change. `begin_worker`: called first in each thread that
  /// only decodes and encodes. `filler`: may be nullptr. REQUIRES: the process has gone to the background; `kernel` and
  /// `filler` live until stop().
  void start(KernelInvalidator& kernel, std::function<bool()> is_writable = {},
             const std::function<void()>& begin_worker = {}, PageFiller* filler = nullptr);
  void stop();

  // Operations that change something fail with EROFS on a read-only mount.
  Namespace& names() { return names_; }
  Directories& directories() { return directories_; }
  SymbolicLinks& links() { return links_; }
  OpenFiles& files() { return files_; }
  FileAttributes& attributes() { return attributes_; }
  ExtendedAttributes& extended_attributes() { return extended_; }
  Rights& rights() { return rights_; }
  codec::Result<struct statvfs> filesystem_status();

  /// Drops what the daemon and the kernel have cached, as far as the kernel is not using it. Does not wait for the
  /// kernel. REQUIRES: called between start() and stop().
  void drop_caches();
  /// Returns the memory of cached blocks, idle buffers and index blocks to the system.
  void release_memory();
  /// Returns true if something that programs have written is not committed.
  bool is_dirty() { return writers_.shared().dirty_bytes.load(std::memory_order_relaxed) > 0; }

  const MountOptions& options() const { return mount_.options; }
  Statistics& statistics() { return mount_.statistics; }
  NodeTable& nodes() { return mount_.nodes; }
  SourceTree& tree() { return mount_.tree; }
  ReadPath& read_path() { return mount_.read_path; }
  /// Returns true if the option `ro` is given, or the source or `offset` permits reading only. REQUIRES: open_source().
  bool is_read_only() const { return mount_.is_read_only(); }

 private:
  codec::Result<void> check_reopening();
  codec::Result<void> check_single_source() const;

  // Each part refers to those before it.
  MountContext mount_;
  NodeFiles node_files_{mount_};
  KernelNotices notices_;
  KernelPages pages_{mount_.nodes, notices_, mount_.options.kernel_cache.page_size};
  LateAnswers late_answers_{mount_.nodes};
  SourceChanges source_changes_{mount_, node_files_, notices_, pages_, late_answers_};
  FrameStates states_{mount_, node_files_, pages_};
  FrameWriters writers_{mount_, node_files_, pages_, states_};
  OpenFiles files_{mount_, node_files_, pages_, states_, writers_, source_changes_};
  SymbolicLinks links_{mount_, node_files_};
  AttributeFiles attribute_files_{mount_, node_files_, pages_};
  Rights rights_{mount_, attribute_files_};
  ExtendedAttributes extended_{mount_, node_files_, pages_, attribute_files_, rights_, states_, writers_};
  FileAttributes attributes_{mount_, node_files_, notices_, pages_, links_, rights_, files_};
  Directories directories_{mount_, node_files_, notices_};
  Namespace names_{mount_, node_files_, pages_, writers_, files_, attributes_};
};

}  // namespace cframefs::fs
