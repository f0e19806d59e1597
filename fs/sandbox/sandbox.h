// The sandbox of the daemon: what it gives up before it answers the first request. fs/doc/sandbox.md.
//
// Thread safety: enter() and enter_decoder() restrict the calling thread and what it starts later. Errors: see each.
#pragma once

#include <string>

#include "fs/util/options.h"

namespace cframefs::fs {

/// What serving does with the files of the source beside reading them.
struct SourceUse {
  bool writes = false;
  bool passes_files = false;  // the kernel opens them in the daemon's place, also to execute them
};

class Sandbox {
 public:
  /// Finds out what the kernel has. Error unsupported: `mode` is strict, and something is missing.
  static codec::Result<Sandbox> plan(Sandboxing mode);

  /// Returns whether enter() gives up anything. The process can then neither unmount nor start programs.
  bool is_on() const { return is_on_; }
  /// Gives up what serving does not need. `source`: an open file or directory of the source; a source that is a file
  /// takes its directory with it. REQUIRES: no other thread runs.
  codec::Result<void> enter(int source, const SourceUse& use) const;
  /// Gives up, in a thread that decodes and encodes only, what that does not need. REQUIRES: enter().
  void enter_decoder() const;
  /// Returns what enter() restricts, for logs: "Landlock 7, system calls, capabilities". REQUIRES: is_on().
  std::string description() const;

 private:
  Sandboxing mode_ = Sandboxing::off;
  bool is_on_ = false;
  unsigned landlock_ = 0;
  bool filters_ = false;
};

}  // namespace cframefs::fs
