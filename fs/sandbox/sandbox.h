// The sandbox of the daemon: what it gives up before it answers the first request. fs/doc/sandbox.md.
//
// Thread safety: each enter...() restricts the calling thread and the threads that it starts later. Errors: see each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fs/sandbox/syscall_filter.h"
#include "fs/util/options.h"

namespace cframefs::fs {

/// A file or directory that may be used, with what is beneath it.
struct PermittedPath {
  std::string path;
  bool is_writable = false;
  bool is_executable = false;  // the kernel opens files in the daemon's place, also to execute them
  bool may_be_missing = false;
};

/// What a thread may open, beside /proc, and the TCP ports that it may connect to.
struct Permissions {
  std::vector<PermittedPath> paths;
  std::vector<std::uint16_t> ports;
};

class Sandbox {
 public:
  /// Finds out what the kernel has. Error unsupported: `mode` is strict, and something is missing.
  static codec::Result<Sandbox> plan(Sandboxing mode);

  /// Returns whether enter() gives up anything. The process can then neither unmount nor start programs.
  bool is_on() const { return is_on_; }
  /// Gives up what serving does not need. Error io EBUSY, after the calling thread has entered: another thread has
  /// entered no sandbox and does not end.
  codec::Result<void> enter(const Permissions& permissions) const;
  /// Gives up, in the thread that talks to servers, what that does not need. REQUIRES: the thread has not called
  /// enter(); it opens no file of root's that others may not read.
  codec::Result<void> enter_fetcher(const Permissions& permissions) const;
  /// Gives up, in a thread that decodes and encodes only, what that does not need. REQUIRES: enter().
  void enter_decoder(DecodesFrom from) const;
  /// Returns what enter() restricts, for logs: "Landlock 7, system calls, capabilities". REQUIRES: is_on().
  std::string description() const;
  /// Returns whether enter_fetcher() restricts the ports.
  bool restricts_ports() const;
  /// Returns a path of the directory that an open file or directory is, or lies in.
  static codec::Result<std::string> directory_of(int source);

 private:
  codec::Result<void> give_up(const Permissions& permissions) const;

  Sandboxing mode_ = Sandboxing::off;
  bool is_on_ = false;
  unsigned landlock_ = 0;
  bool filters_ = false;
};

}  // namespace cframefs::fs
