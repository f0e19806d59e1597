// Types that callers of Filesystem get and pass: attributes of files, handles of open files and directories.
//
// Thread safety: a handle serves many threads; its members that change are guarded by its mutex or are atomic.
// Ownership: handles belong to the caller and must be dropped before the filesystem. Units: bytes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

#include "codec/base/error.h"
#include "codec/base/mutex.h"
#include "fs/read/frame_snapshot.h"
#include "fs/read/read_ahead.h"
#include "fs/tree/held_directories.h"
#include "fs/tree/node_table.h"
#include "fs/tree/open_frame.h"
#include "fs/tree/source_tree.h"

namespace cframefs::fs {

/// The mode bits with which a program gets the rights of its file's owner or group.
inline constexpr mode_t kSetIds = S_ISUID | S_ISGID;

/// Attributes of a file, as the mount shows them to the kernel.
struct Attributes {
  NodeId node = 0;
  struct stat status {};
  double attr_timeout = 0;             // seconds
  double entry_timeout = 0;            // seconds
  std::optional<codec::Error> damage;  // why the container cannot be opened: then the uncompressed size is not known
  bool may_have_changed = false;       // since, with the same timestamp
  nlink_t names_on_disk = 1;           // hard links, where st_nlink shows one
};

struct FileHandle {
  std::shared_ptr<Node> node;
  std::shared_ptr<const frame::Descriptor> file;  // passed-through files only
  std::shared_ptr<OpenFrame> frame;               // frames only
  std::string content;                            // of a control file, as it was when opened
  std::shared_ptr<const BackingFile> backing;     // passed-through files only; null if the adapter uses none
  bool writable = false;
  bool append = false;   // O_APPEND: writes go to the current end
  bool counted = false;  // Node::pages counts it
  std::atomic<bool> was_read{false};
  bool leaves_access_time = false;
  /// The kernel may still be about to drop pages because of this handle's open.
  std::atomic<bool> open_unconfirmed{false};

  codec::Mutex mutex;
  std::shared_ptr<const FrameSnapshot> snapshot GUARDED_BY(mutex);  // frames only
  std::unique_ptr<ReadAhead> ahead;                                 // frames only

  // For the reply to open; `direct` for writes, too.
  frame::FileVersion opened_state;
  bool keep_pages = false;  // the kernel's pages of this file are still valid
  bool same_state = false;  // so are its attributes
  bool direct = false;      // reads and writes bypass the kernel's pages
};

struct DirectoryHandle {
  std::shared_ptr<Node> node;
  HeldDirectory directory;  // null: the control directory
  /// KernelNotices::names_forgotten() + 1 when the last answer with names to keep was begun; 0: they have arrived.
  std::atomic<std::uint64_t> names_told_at{0};
  codec::Mutex mutex;
  std::vector<ShownEntry> entries GUARDED_BY(mutex);  // of the last list()
  bool is_listed GUARDED_BY(mutex) = false;
};

/// The attributes that setattr changes; members that are not set stay unchanged.
struct AttributeChanges {
  std::optional<mode_t> mode;
  std::optional<uid_t> user;
  std::optional<gid_t> group;
  std::optional<std::uint64_t> size;
  std::optional<std::array<struct timespec, 2>> times;  // access, modification; as utimensat(2)
};

struct CreatedFile {
  Attributes attributes;
  std::unique_ptr<FileHandle> handle;
};

}  // namespace cframefs::fs
