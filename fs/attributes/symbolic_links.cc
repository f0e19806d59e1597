#include "fs/attributes/symbolic_links.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>

namespace cframefs::fs {
namespace {

constexpr int kMaxLinks = 40;  // followed in one walk; the kernel's limit

}  // namespace

codec::Result<std::string> SymbolicLinks::read_link(NodeId id) {
  const std::shared_ptr<Node> node = mount_.nodes.find(id);
  if (!node) return no_such_node();
  auto file = node_files_.open_file(*node, O_PATH);
  if (!file) return codec::Failure(file.error());
  auto target = mount_.files.read_link((*file)->handle());
  if (!target) return target;
  {
    codec::MutexLock lock(node->mutex);
    node->target = std::make_unique<const std::string>(*target);
  }
  return shown_target(mount_.nodes.parent_of(id), *target);
}

std::uint64_t SymbolicLinks::shown_link_size(Node& node, std::uint64_t stored) {
  std::optional<std::string> target;
  {
    codec::MutexLock lock(node.mutex);
    if (node.target) target = *node.target;
  }
  // Reading a link changes its access time, so it is read once.
  if (!target) {
    const auto shown = read_link(node.id);
    return shown ? shown->size() : stored;
  }
  return shown_target(mount_.nodes.parent_of(node.id), *target).size();
}

codec::Result<HeldDirectory> SymbolicLinks::walk(NodeId directory, std::string path) {
  auto at = mount_.directories.open(directory);
  std::vector<HeldDirectory> below;  // on the way down from `directory`
  int links = 0;
  for (std::size_t begin = 0; at && begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    if (name != "..") {
      auto next = mount_.tree.open_entry((*at)->handle(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
      const auto target = next ? codec::Result<std::string>() : mount_.tree.links().target_of((*at)->handle(), name);
      if (!next && target && ++links <= kMaxLinks) {
        // An absolute target leads outside the mount.
        if (target->starts_with('/')) return codec::io_error(EXDEV, "lookup");
        path = *target + "/" + path.substr(std::min(begin, path.size()));
        begin = 0;
        continue;
      }
      below.push_back(std::move(*at));
      at = std::move(next);
    } else if (!below.empty()) {
      *at = std::move(below.back());
      below.pop_back();
    } else {
      directory = mount_.nodes.parent_of(directory);
      at = directory == 0 ? codec::Result<HeldDirectory>(codec::io_error(EXDEV, "lookup"))
                          : mount_.directories.open(directory);
    }
  }
  return at;
}

std::string SymbolicLinks::shown_target(NodeId directory, const std::string& target) {
  std::string relative = target;
  if (target.starts_with('/')) {
    // An absolute target within the source becomes relative, so that it leads to the decoded file.
    const auto place = mount_.tree.links().place_in_source(mount_.tree.root()->handle(), target);
    if (!place) return target;
    relative = *place;
    for (NodeId at = directory; at != kRootNode && at != 0; at = mount_.nodes.parent_of(at))
      relative.insert(0, "../");
  }
  const std::size_t slash = relative.rfind('/');
  codec::Result<HeldDirectory> walked;
  return mount_.tree.links().shown_target(relative, [&](const std::string& name) -> codec::Result<EntryKind> {
    if (walked && !*walked) walked = walk(directory, slash == std::string::npos ? "" : relative.substr(0, slash));
    if (!walked) return codec::Failure(walked.error());
    return mount_.tree.kind_of((*walked)->handle(), name);
  });
}

}  // namespace cframefs::fs
