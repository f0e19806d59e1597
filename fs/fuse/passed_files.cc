#include "fs/fuse/passed_files.h"

#include <cerrno>

#include <fcntl.h>

#include "fs/fuse/fuse_adapter.h"
#include "fs/sandbox/capabilities.h"

namespace cframefs::fs {
namespace {

/// Checks that the kernel can open the file as the caller has: it would fail the open with EIO.
codec::Result<void> check_direct(FuseAdapter& adapter, const FileHandle& handle, int flags) {
  if ((flags & O_DIRECT) == 0) return {};
  frame::ReadFileOps& files = adapter.filesystem().tree().files();
  const auto again = files.reopen(handle.file->handle(), O_RDONLY | O_DIRECT | O_NONBLOCK | O_NOCTTY);
  if (!again) return again.error().sys == EINVAL ? codec::Failure(again.error()) : codec::Result<void>();
  const frame::Descriptor closed(files, *again);
  return {};
}

}  // namespace

bool may_pass_files(Filesystem& filesystem) {
  // The one file of such a mount is a frame, and a server has no files of the system.
  if (filesystem.tree().is_single_file() || filesystem.tree().files().is_remote()) return false;
  const MountOptions& options = filesystem.options();
  return options.kernel_cache.passthrough && !options.no_access_times && may_administer();
}

codec::Result<void> pass_to_kernel(FuseAdapter& adapter, FileHandle& handle, int flags) {
  if (!handle.file || !adapter.passes_files()) return {};
  const auto file = adapter.filesystem().tree().files().system_descriptor(handle.file->handle());
  // A file that a store or a server presents has no bytes on disk that the kernel could read.
  if (!file || !file->is_of_file) return {};
  Node& node = *handle.node;
  {
    codec::MutexLock lock(node.mutex);
    handle.backing = node.open_plain.backing.lock();
    if (!handle.backing) node.open_plain.backing = handle.backing = adapter.backing().add(file->number);
  }
  if (!handle.backing->has_id()) return {};
  node.pages.passed();
  return check_direct(adapter, handle, flags);
}

}  // namespace cframefs::fs
