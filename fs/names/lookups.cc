#include "fs/names/lookups.h"

#include <cerrno>
#include <climits>
#include <utility>

#include <fmt/core.h>

#include "fs/util/no_memory.h"

namespace cframefs::fs {
namespace {

// Attempts of a look-up while commits replace the file.
constexpr int kLookupAttempts = 5;

}  // namespace

codec::Result<Attributes> Lookups::lookup(NodeId parent, const std::string& name) {
  mount_.statistics.lookups.fetch_add(1, std::memory_order_relaxed);
  const Stopwatch watch(mount_.statistics.lookup_time);
  const std::shared_ptr<Node> node = mount_.nodes.find(parent);
  if (!node) return no_such_node();
  if (node->role == NodeRole::control_directory ||
      (parent == kRootNode && mount_.options.statistics && name == ".cframefs")) {
    return control_.lookup(parent, name);
  }
  auto directory = mount_.directories.open(parent);
  if (!directory) return codec::Failure(directory.error());
  node_files_.watch(*node);
  for (int attempt = 1;; ++attempt) {
    auto found = lookup_stored(parent, *directory, name);
    // stale: a commit has replaced the file between two look-ups of the name.
    const bool is_stale = !found && found.error().kind == codec::ErrorKind::stale;
    // A file with a name of this length cannot be created either.
    if (!found && found.error().sys == ENOENT && name.size() > longest_name())
      return codec::io_error(
          ENAMETOOLONG, "lookup",
          fmt::format("the name has {} bytes; a new file may have {}, because it gets a suffix on disk", name.size(),
                      longest_name()));
    if (!is_stale) return found;
    // What a server does not say to be missing is not missing.
    if (attempt == kLookupAttempts) return mount_.files.is_remote() ? found : codec::io_error(ENOENT, "lookup");
  }
}

codec::Result<Attributes> Lookups::enter_created(const DirEntry& place, const EntryStat& created) {
  if (const auto parent = mount_.nodes.find(place.directory)) node_files_.watch(*parent);
  std::shared_ptr<Node> node;
  {
    codec::SharedLock names(mount_.names);
    // A node with this inode is of a file that was removed behind the mount.
    mount_.nodes.retire(created);
    node = mount_.nodes.enter(place.directory, place.name, NodeRole::stored, created);
  }
  auto entered = or_no_memory([&]() -> codec::Result<Attributes> { return attributes_.of_new(*node, created); });
  if (!entered) node_files_.forget(node->id, 1);
  if (entered && entered->entry_timeout > 0) node->kept.name_answered();
  return entered;
}

codec::Result<Attributes> Lookups::lookup_stored(NodeId parent, const HeldDirectory& directory,
                                                 const std::string& name) {
  const std::uint64_t name_changes = mount_.watcher.name_changes();
  std::shared_ptr<Node> node;
  DirEntry place{parent, {}};
  bool was_elsewhere = false;
  {
    // Under mount_.names: a rename in between would enter the node at its old place.
    codec::SharedLock names(mount_.names);
    auto found = finder_.find(parent, directory, name);
    if (!found) return codec::Failure(found.error());
    // While a commit replaces the file, the name belongs to the node of the old file.
    node = committing_at(DirEntry{parent, found->name});
    node = node ? mount_.nodes.enter_again(node->id) : nullptr;
    if (!node) node = mount_.nodes.enter(parent, found->name, NodeRole::stored, found->stat, &was_elsewhere);
    place.name = std::move(found->name);
  }
  auto found = or_no_memory([&]() -> codec::Result<Attributes> {
    auto entered = attributes_.of_entered(*node);
    // What can be neither removed nor replaced need not have a node: the caller of stat(2) gets the error at once. A
    // frame that has just changed gets one, so that stat(2) and open(2) look once more.
    if (entered && entered->damage && !entered->may_have_changed && mount_.is_read_only())
      return codec::Failure(*entered->damage);
    return entered;
  });
  if (!found) node_files_.forget(node->id, 1);
  // The kernel may keep the name that the node had before. A call by that name would act on the new one.
  if (was_elsewhere && node->kept.take_name()) attributes_.forget_names();
  if (found) limit_name(*node, place, name_changes, *found);
  return found;
}

void Lookups::limit_name(Node& node, const DirEntry& place, std::uint64_t name_changes, Attributes& found) const {
  if (found.entry_timeout == 0) return;
  if (node.kind != EntryKind::directory && node.kind != EntryKind::sparse_frame) {
    // A node has one place, so that a call on a file with several names must look up the one that it uses.
    if (found.names_on_disk > 1) found.entry_timeout = 0;
    node.kept.name_answered();
    const auto now = mount_.nodes.place_of(node.id);
    if (!now || now->parent != place.directory || now->name != place.name) found.entry_timeout = 0;
  }
  // A change that the watcher has looked into meanwhile, without the node at its place, may be one of this name.
  if (mount_.watcher.name_changes() != name_changes) found.entry_timeout = 0;
}

std::shared_ptr<Node> Lookups::committing_at(const DirEntry& place) const {
  for (const auto& node : mount_.nodes.at_place(place.directory, place.name)) {
    const auto writer = write_back_of(*node);
    if (writer && writer->status().is_committing) return node;
  }
  return nullptr;
}

std::size_t Lookups::longest_name() const {
  // A new file becomes a frame, whose name on disk has a suffix.
  return mount_.is_read_only() ? NAME_MAX : NAME_MAX - mount_.tree.rules().new_name("").size();
}

}  // namespace cframefs::fs
