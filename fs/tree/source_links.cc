#include "fs/tree/source_links.h"

#include <filesystem>
#include <utility>

#include <fcntl.h>

namespace cframefs::fs {

codec::Result<std::string> SourceLinks::target_of(frame::OpenFile directory, const std::string& name) const {
  auto fd = files_.open_at(directory, name, O_PATH | O_NOFOLLOW);
  if (!fd) return codec::Failure(fd.error());
  return files_.read_link(frame::Descriptor(files_, *fd).handle());
}

/// Returns the current path of an open directory; "" if it is unknown.
std::string SourceLinks::path_of(frame::OpenFile file) const {
  const auto descriptor = files_.system_descriptor(file);
  if (!descriptor) return {};
  const auto link = files_.open_named("/proc/self/fd/" + std::to_string(descriptor->number), O_PATH | O_NOFOLLOW);
  if (!link) return {};
  const auto path = files_.read_link(frame::Descriptor(files_, *link).handle());
  return path ? *path : std::string();
}

/// Uses the text alone: a link must not change its name when its target appears or disappears.
std::optional<std::string> SourceLinks::place_in_source(frame::OpenFile directory, const std::string& target) const {
  const std::filesystem::path root = path_of(root_->handle());
  std::filesystem::path place = target;
  if (place.is_relative()) place = std::filesystem::path(path_of(directory)) / place;
  place = place.lexically_normal();
  // The path of the source as given by the user may contain a link, as the target may.
  for (const std::filesystem::path& top : {root, std::filesystem::path(source_).lexically_normal()}) {
    if (!top.is_absolute()) continue;
    const std::string inner = place.lexically_relative(top).string();
    if (!inner.empty() && inner != "." && inner != ".." && !inner.starts_with("../")) return inner;
  }
  return std::nullopt;
}

bool SourceLinks::shows_shortened(frame::OpenFile directory, const std::string& name) const {
  if (!NameMapper::has_container_suffix(name)) return false;
  const auto target = target_of(directory, name);
  return target && rules_.shortens_link(name, *target) && place_in_source(directory, *target).has_value();
}

std::string SourceLinks::link_name(frame::OpenFile directory, const std::string& shown,
                                   const std::string& target) const {
  const bool shortened = rules_.shortens_link(shown, target) && place_in_source(directory, target).has_value();
  return shortened ? rules_.new_name(shown) : shown;
}

/// Examines the target, because not every container shows without its suffix, and not every file with such a suffix is
/// a container.
std::string SourceLinks::shown_target(const std::string& target, const NameMapper::KindOf& kind_of_neighbour) const {
  const std::size_t slash = target.rfind('/');
  const std::string before = slash == std::string::npos ? "" : target.substr(0, slash + 1);
  const std::string name = target.substr(before.size());
  if (target.starts_with('/') || !NameMapper::has_container_suffix(name)) return target;
  const auto kind = kind_of_neighbour(name);
  // A target that does not exist shows as if it were a container. A target outside of the source shows unchanged.
  if (!kind && !is_missing(kind.error())) return target;
  if (!kind || *kind == EntryKind::none) return rules_.shown_target(target);
  if (!is_shortened(*kind)) return target;
  std::string short_name = rules_.short_name_of(name, *kind);
  const auto owner = rules_.resolve_shown(short_name, kind_of_neighbour);
  return owner && owner->name == name ? before + short_name : target;
}

}  // namespace cframefs::fs
