#include "fs/files/control_files.h"

#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "fs/files/mount_config.h"

namespace cframefs::fs {
namespace {

constexpr std::string_view kDropCaches = "drop_caches";
constexpr std::string_view kBusiest = "busiest.json";
// How long a write into drop_caches waits for the kernel. It blocks a drop while a program reads the page.
constexpr std::chrono::seconds kDropPatience{1};

mode_t mode_of(std::string_view name) {
  if (name == kDropCaches) return 0200;
  return name == kBusiest ? 0400 : 0444;
}

Attributes control_attributes(const Node& node, const std::string& name, std::uint64_t size) {
  Attributes attributes;
  attributes.node = node.id;
  attributes.status.st_ino = node.shown_inode;
  attributes.status.st_mode = node.role == NodeRole::control_directory ? S_IFDIR | 0555U : S_IFREG | mode_of(name);
  attributes.status.st_uid = geteuid();
  attributes.status.st_gid = getegid();
  attributes.status.st_nlink = 1;
  attributes.status.st_size = static_cast<off_t>(size);
  attributes.status.st_mtime = attributes.status.st_ctime = attributes.status.st_atime = std::time(nullptr);
  return attributes;
}

}  // namespace

std::string ControlFiles::content(const std::string& name) {
  const std::uint64_t dirty = write_back_.dirty_bytes.load(std::memory_order_relaxed);
  if (name == "stats.json") return stats_json(mount_, where_, dirty);
  if (name == "metrics") return metrics_text(mount_, where_, dirty);
  if (name == kBusiest) return busiest_json(mount_);
  if (name == "config") return config_text(mount_, where_, write_back_.dirty_limit);
  return "";
}

std::string ControlFiles::statistics_line() const {
  return stats_line(mount_, where_, write_back_.dirty_bytes.load(std::memory_order_relaxed));
}

codec::Result<Attributes> ControlFiles::lookup(NodeId parent, const std::string& name) {
  const std::shared_ptr<Node> directory = mount_.nodes.find(parent);
  const bool in_root = parent == kRootNode;
  std::uint64_t number = in_root && name == ".cframefs" ? 1 : 0;
  for (std::size_t i = 0; !in_root && i < kControlNames.size(); ++i) {
    if (name == kControlNames[i]) number = i + 2;
  }
  if (number == 0) return codec::io_error(ENOENT, "lookup");
  EntryStat probe;
  probe.kind = in_root ? EntryKind::directory : EntryKind::plain;
  probe.entry_inode = number;  // device 0: no file on disk has it
  const NodeRole role = in_root ? NodeRole::control_directory : NodeRole::control_file;
  const std::shared_ptr<Node> node = mount_.nodes.enter(parent, name, role, probe);
  const Attributes attributes = control_attributes(*node, name, in_root ? 0 : content(name).size());
  codec::MutexLock lock(node->mutex);
  node->known.status = attributes.status;
  return attributes;
}

codec::Result<void> ControlFiles::open(FileHandle& handle, const std::string& name, int flags) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
  if (writes && name != kDropCaches) return codec::io_error(EROFS, "open", "of .cframefs only drop_caches is written");
  handle.content = content(name);
  handle.direct = true;
  handle.writable = writes;
  return {};
}

codec::Result<void> ControlFiles::write(codec::ByteView bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text != "1" && text != "1\n") return codec::invalid("drop_caches takes 1");
  drop_caches();
  return {};
}

void ControlFiles::drop_caches() {
  mount_.read_path.pool().relieve();
  mount_.index_cache->clear();
  std::vector<std::shared_ptr<Node>> files;
  for (const NodeId id : mount_.nodes.all()) {
    const auto node = mount_.nodes.find(id);
    const bool has_pages = node && node->role == NodeRole::stored && node->kind != EntryKind::directory;
    if (has_pages) files.push_back(node);
  }
  for (const auto& node : files)
    pages_.drop_pages(node);
  const auto end = std::chrono::steady_clock::now() + kDropPatience;
  for (const auto& node : files) {
    if (std::chrono::steady_clock::now() >= end) return;
    pages_.wait_for_drop(*node);
  }
}

}  // namespace cframefs::fs
