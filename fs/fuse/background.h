// How the daemon goes to the background: its parent, which the user has started, ends when the mount serves.
//
// Thread safety: one thread. Ownership: ReadyPipe keeps its ends open. Errors: io.
#pragma once

#include "codec/base/error.h"

namespace cframefs::fs {

/// The pipe through which the background process reports to its parent that the mount serves.
class ReadyPipe {
 public:
  codec::Result<void> open();
  /// Called in the child.
  void notify_parent();
  /// Called in the parent. Returns true once the mount serves; false if the child ended before.
  bool wait();
  /// Called in the child.
  void close_reader();

 private:
  int ends_[2] = {-1, -1};
};

/// Opens /dev/null for standard streams that are closed. Otherwise the next files opened would get descriptors 0 to 2,
/// which detach_from_terminal() replaces.
void reserve_stdio_fds();

void detach_from_terminal();

/// Goes on in a child process, before anything is opened that does not survive fork(2). Returns in the child, which
/// still has the terminal: it prints why it cannot mount, or detaches and notifies the parent. The parent waits, and
/// ends with the status of the child.
codec::Result<void> continue_in_child(ReadyPipe& ready);

}  // namespace cframefs::fs
