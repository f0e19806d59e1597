// The options of a mount, with their defaults. tools/cframefs/mount_options.cc parses them.
//
// Sizes are bytes. Thread safety: plain values, fixed once the mount serves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "codec/base/page_memory.h"
#include "frame/array/array_view.h"
#include "frame/remote/remote_source.h"
#include "frame/write/checksums.h"
#include "fs/util/log.h"

namespace cframefs::fs {

enum class Names : std::uint8_t { strip, keep };
using ArrayView = frame::ArrayForm;
enum class Detect : std::uint8_t { suffix, content };

// Seconds for which the kernel may use attributes and names, unless the watcher reports a change: of directories, and
// of files in directories of which the system reports each change.
inline constexpr double kDirectoryTimeout = 1.0;
inline constexpr double kFileTimeout = 60.0;
// Seconds for which the kernel may use the attributes of a file that a program has just created: most programs ask for
// them at once.
inline constexpr double kCreatedTimeout = 0.01;

using frame::Checksums;

/// The encoding of frames that are created in the mount.
struct NewFrameOptions {
  std::string codec = "zstd";
  int clevel = 5;
  std::string filter = "shuffle";
  std::uint32_t typesize = 0;   // 0: auto
  std::uint64_t chunksize = 0;  // 0: auto
  std::uint64_t blocksize = 0;  // 0: auto
  bool npy_as_array = false;    // a file that is created as x.npy is stored as the array x.b2nd
  Checksums checksums = Checksums::on;
};

/// What the kernel may cache.
struct KernelCacheOptions {
  bool writeback = false;   // the kernel's write-back cache
  bool fill_pages = true;   // the kernel reads the rest of a block that requests touch again
  bool passthrough = true;  // the kernel reads and writes passed-through files itself, where it can
  // Seconds for which the kernel may cache attributes and names in watched directories. None: kDirectoryTimeout for
  // directories, kFileTimeout for files, 0 where the system does not report each change. A number holds for all that
  // can be watched. A change by another program is visible when the watcher has reported it, shortly afterwards; with 0
  // at the next call.
  std::optional<double> attr_timeout;
  std::optional<double> entry_timeout;
  std::uint64_t page_size = codec::page_size();  // of a page of the kernel's page cache; no option
};

/// What the programs say about themselves in the statistics.
struct BuildInfo {
  std::string version;
  std::string libfuse;
};

/// Whether the daemon gives up the rights that serving does not need (fs/sandbox).
enum class Sandboxing : std::uint8_t {
  automatic,  // as far as the kernel can
  off,
  strict,  // a kernel that lacks something does not mount, and an unexpected system call ends the daemon
};

/// How the process runs and mounts.
struct DaemonOptions {
  std::string log;                    // "syslog" or a file; empty: standard error in the foreground, else syslog
  std::optional<LogLevel> log_level;  // none: info, or debug with `debug`
  double cache_timeout = 60.0;        // seconds without a request before cached memory is released; 0: never
  double idle_timeout = 0.0;          // seconds without a request before the daemon unmounts; 0: never
  std::optional<unsigned> mkdir;      // mode of the mount point if it has to be made; none: it must exist
  bool nonempty = false;              // do not warn of what the mount covers
  bool remount = false;               // change the flags of a mount that exists
  Sandboxing sandbox = Sandboxing::automatic;
  bool foreground = false;
  bool debug = false;  // implies foreground
  bool single_thread = false;
  // Mount options of libfuse or the kernel, passed on unchanged ("allow_other", "fsname=x").
  std::vector<std::string> fuse_options;
  BuildInfo build;
};

/// Owner and rights that all files show instead of those in the source. The kernel decides by what is shown.
struct ShownRights {
  std::optional<uid_t> user;
  std::optional<gid_t> group;
  std::optional<mode_t> umask;  // rights that no file shows
  bool are_set() const { return user || group || umask; }
};

/// Where the source lies.
struct SourceOptions {
  std::string source;           // directory, or one frame file, or the address of one
  frame::RemoteOptions remote;  // of a source that is an address
};

struct MountOptions : SourceOptions {
  std::string mountpoint;  // directory; or a regular file when source is one file

  bool read_only = false;
  bool no_access_times = false;  // reads do not update access times in the source (noatime)
  Names names = Names::strip;
  ArrayView b2nd = ArrayView::npy;
  Detect detect = Detect::suffix;
  bool old_bitshuffle = false;              // decode frames of 2.0.0-beta.3 to beta.5 as those of beta.3 and beta.4
  std::uint64_t offset = 0;                 // where the frame starts in a single-file source
  std::optional<std::uint64_t> cache_size;  // bound on decoded bytes held; none: default_cache_size()
  std::optional<std::uint64_t> readahead;   // bytes decoded ahead of a sequential reader; none: by workers; 0: off
  unsigned workers = 0;                     // decoding threads, the reader's included; 0: one per CPU
  bool statistics = false;                  // serve the directory .cframefs

  std::optional<std::uint64_t> dirty_limit;  // none: default_dirty_limit()
  double commit_interval = 5.0;              // seconds
  double lock_timeout = 5.0;  // seconds that a request waits for a frame that another program has locked; no option

  ShownRights shown;
  NewFrameOptions new_frames;
  KernelCacheOptions kernel_cache;
  DaemonOptions daemon;
};

}  // namespace cframefs::fs
