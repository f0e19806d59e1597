#include "fs/names/namespace.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "fs/write/commit_pause.h"

namespace cframefs::fs {
namespace {

constexpr mode_t kPermissions = 07777;
// Number of consecutive commits for which a change of a frame's name waits without holding MountContext::changes. For
// later ones it waits with the lock, which delays other changes of names.
constexpr int kCommitsWaitedFor = 8;

}  // namespace

codec::Result<Attributes> Namespace::make_directory(NodeId parent, const std::string& name, mode_t mode,
                                                    const Caller& caller, ChangePermit& permit) {
  codec::MutexLock lock(mount_.changes);
  if (auto begun = permit.begin(); !begun) return codec::Failure(begun.error());
  auto directory = entries_.directory_for_new(parent, name);
  if (!directory) return codec::Failure(directory.error());
  mode = mode_for_new(*directory, mode & kPermissions, caller);
  auto done = as_caller(caller, mode, [&] {
    return mount_.files.make_directory_at((*directory)->handle(), NameMapper::on_disk(name), mode);
  });
  if (!done) return codec::Failure(done.error());
  return lookups_.lookup(parent, name);
}

codec::Result<Attributes> Namespace::make_symlink(NodeId parent, const std::string& name, const std::string& target,
                                                  const Caller& caller, ChangePermit& permit) {
  codec::MutexLock lock(mount_.changes);
  if (auto begun = permit.begin(); !begun) return codec::Failure(begun.error());
  auto directory = entries_.directory_for_new(parent, name);
  if (!directory) return codec::Failure(directory.error());
  const bool inside = mount_.tree.links().place_in_source((*directory)->handle(), target).has_value();
  const std::string stored = inside ? mount_.tree.rules().stored_target(target) : target;
  const std::string stored_name =
      NameMapper::on_disk(mount_.tree.links().link_name((*directory)->handle(), name, stored));
  auto done =
      as_caller(caller, 0, [&] { return mount_.files.make_symlink_at(stored, (*directory)->handle(), stored_name); });
  if (!done) return codec::Failure(done.error());
  return lookups_.lookup(parent, name);
}

codec::Result<Attributes> Namespace::make_node(NodeId parent, const std::string& name, mode_t mode, dev_t device,
                                               const Caller& caller, ChangePermit& permit) {
  if (S_ISREG(mode)) {
    auto created = create(parent, name, O_RDONLY | O_CREAT | O_EXCL, mode, caller, permit);
    if (!created) return codec::Failure(created.error());
    files_.release(std::move(created->handle));
    return created->attributes;
  }
  codec::MutexLock lock(mount_.changes);
  if (auto begun = permit.begin(); !begun) return codec::Failure(begun.error());
  auto directory = entries_.directory_for_new(parent, name);
  if (!directory) return codec::Failure(directory.error());
  mode = mode_for_new(*directory, mode, caller);
  auto done = as_caller(caller, mode, [&] {
    return mount_.files.make_node_at((*directory)->handle(), NameMapper::on_disk(name), mode, device);
  });
  if (!done) return codec::Failure(done.error());
  return lookups_.lookup(parent, name);
}

codec::Result<Attributes> Namespace::link(NodeId id, NodeId parent, const std::string& name, ChangePermit& permit) {
  codec::MutexLock lock(mount_.changes);
  if (auto begun = permit.begin(); !begun) return codec::Failure(begun.error());
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node) return no_such_node();
  // Some commits replace a frame by a new file: other names would keep leading to the old file.
  if (node->role != NodeRole::stored || is_container(node->kind))
    return refused(EPERM, "link", {}, "a frame has one name only");
  auto directory = entries_.directory_for_new(parent, name);
  if (!directory) return codec::Failure(directory.error());
  if (!mount_.tree.keeps_kind(node->kind, name)) return refused(EXDEV, "link", name, kOtherKind);
  auto file = node_files_.open_file(*node, O_PATH);
  if (!file) return codec::Failure(file.error());
  const frame::OpenFile opened = (*file)->handle();
  auto done = pages_.with_self_change(
      *node, KernelPages::SelfChange::ctime, [&] { return mount_.files.status(opened); },
      [&] { return mount_.files.link_at(opened, (*directory)->handle(), NameMapper::on_disk(name)); });
  if (!done) return codec::Failure(done.error());
  return lookups_.lookup(parent, name);
}

codec::Result<void> Namespace::remove(NodeId parent, const std::string& name, bool directory, ChangePermit& permit) {
  for (int attempt = 1;; ++attempt) {
    if (const auto writer = entries_.committing_entry(parent, name)) CommitPause::wait(*writer);
    codec::MutexLock lock(mount_.changes);
    if (attempt < kCommitsWaitedFor && entries_.committing_entry(parent, name)) continue;
    if (auto begun = permit.begin(); !begun) return begun;
    return remove_entry(parent, name, directory);
  }
}

codec::Result<void> Namespace::rename(NodeId from_parent, const std::string& from_name, NodeId to_parent,
                                      const std::string& to_name, unsigned flags, ChangePermit& permit) {
  if ((flags & ~static_cast<unsigned>(RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0)
    return refused(EINVAL, "rename", {}, "only RENAME_NOREPLACE and RENAME_EXCHANGE are supported");
  for (int attempt = 1;; ++attempt) {
    if (const auto writer = entries_.committing_entry(from_parent, from_name)) CommitPause::wait(*writer);
    if (const auto writer = entries_.committing_entry(to_parent, to_name)) CommitPause::wait(*writer);
    codec::MutexLock lock(mount_.changes);
    const bool is_committing =
        entries_.committing_entry(from_parent, from_name) || entries_.committing_entry(to_parent, to_name);
    if (attempt < kCommitsWaitedFor && is_committing) continue;
    if (auto begun = permit.begin(); !begun) return begun;
    return rename_entry(from_parent, from_name, to_parent, to_name, flags);
  }
}

}  // namespace cframefs::fs
