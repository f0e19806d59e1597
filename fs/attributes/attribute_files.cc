#include "fs/attributes/attribute_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "frame/cframe/sparse_frame.h"
#include "frame/io/posix_acl.h"
#include "fs/write/mount_changes.h"

namespace cframefs::fs {
namespace {

// Attempts of a change of attributes while commits replace the file.
constexpr int kChangeAttempts = 5;

}  // namespace

codec::Result<NodeFiles::SharedFile> AttributeFiles::attribute_file(Node& node) {
  // Prefer a descriptor that a program has open, which needs no name.
  if (auto file = node_files_.held_file(node)) return file;
  // A held directory needs no second descriptor.
  if (node.kind == EntryKind::directory) return mount_.directories.open(node.id);
  return node_files_.open_file(node, O_PATH);
}

codec::Result<NodeFiles::SharedFile> AttributeFiles::file_with_rights(Node& node) {
  auto file = attribute_file(node);
  if (!file || node.kind != EntryKind::sparse_frame) return file;
  return mount_.tree.open_entry((*file)->handle(), frame::kSparseIndexName, O_PATH | O_NOFOLLOW);
}

codec::Result<NodeFiles::SharedFile> AttributeFiles::file_with_attribute(Node& node, const std::string& name) {
  return name.starts_with(frame::kAclPrefix) ? file_with_rights(node) : attribute_file(node);
}

codec::Result<void> AttributeFiles::change_file(Node& node, KernelPages::SelfChange what, const FindFile& find,
                                                const ChangeFile& wanted, ChangePermit& permit) {
  const auto change = [&](frame::OpenFile file) {
    const auto begun = permit.begin();
    return begun ? wanted(file) : begun;
  };
  for (int attempt = 1;; ++attempt) {
    if (const auto writer = write_back_of(node)) {
      bool is_closed = false;
      // Find the file between two commits, because each may replace it.
      auto done = MountChanges(*writer).change_file([&] {
        // A closed writer does not tell the next writer that the change is the mount's own. A writer that comes later
        // waits for the change, and takes over the state after it: writers_.start_writing().
        codec::MutexLock own(node.change_mutex);
        is_closed = write_back_of(node) != writer;
        if (is_closed) return codec::Result<void>();
        const auto file = find();
        return file ? change((*file)->handle()) : codec::Failure(file.error());
      });
      if (is_closed) continue;
      return done;
    }
    const auto file = find();
    if (!file) return codec::Failure(file.error());
    const frame::OpenFile opened = (*file)->handle();
    bool has_writer = false;
    auto done = pages_.with_self_change(
        node, what, [&] { return mount_.files.status(opened); },
        [&]() -> codec::Result<void> {
          // A new writer has taken over the state before the change: retry through that writer. See
          // writers_.start_writing().
          has_writer = write_back_of(node) != nullptr;
          return has_writer ? codec::Result<void>() : change(opened);
        });
    if (has_writer) continue;
    if (!done || attempt == kChangeAttempts) return done;
    // A new writer may have replaced the file, with or without the change: retry on the new file.
    const auto changed = mount_.files.status(opened);
    const auto now = find();
    const auto current = now ? mount_.files.status((*now)->handle()) : codec::Failure(now.error());
    if (!changed || !current || (changed->st_ino == current->st_ino && changed->st_dev == current->st_dev)) return done;
  }
}

}  // namespace cframefs::fs
