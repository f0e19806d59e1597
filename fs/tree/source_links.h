// The symbolic links of the source: where they lead, and the names and targets that the mount shows for them.
//
// A link to a container shows without the suffix, as the container does, if its target lies in the source. The text of
// the target decides, and not what it leads to: a link must not change its name when its target appears or disappears.
//
// Thread safety: immutable after open(). Ownership: keeps the root open; the rules must outlive the object. Errors: io.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "frame/io/file_ops.h"
#include "fs/tree/name_mapping.h"

namespace cframefs::fs {

class SourceLinks {
 public:
  /// `source`: the path of the source as the user gave it.
  SourceLinks(frame::ReadFileOps& files, const NameMapper& rules, std::string source)
      : files_(files), rules_(rules), source_(std::move(source)) {}

  /// `root`: the directory of the source. Comes before all other calls.
  void open(std::shared_ptr<const frame::Descriptor> root) { root_ = std::move(root); }

  /// Returns the target of a link.
  codec::Result<std::string> target_of(frame::OpenFile directory, const std::string& name) const;
  /// Returns the path, relative to the source and without "..", that the target of a link in `directory` names by its
  /// text; none if that is outside of the source.
  std::optional<std::string> place_in_source(frame::OpenFile directory, const std::string& target) const;
  /// Returns whether a link shows without the suffix of its name.
  bool shows_shortened(frame::OpenFile directory, const std::string& name) const;
  /// Returns the name on disk of a link that shows as `shown`.
  std::string link_name(frame::OpenFile directory, const std::string& shown, const std::string& target) const;
  /// Returns what a link with the target `target` shows. `kind_of_neighbour` examines a name in the directory of the
  /// target.
  std::string shown_target(const std::string& target, const NameMapper::KindOf& kind_of_neighbour) const;

 private:
  std::string path_of(frame::OpenFile file) const;

  frame::ReadFileOps& files_;
  const NameMapper& rules_;
  const std::string source_;
  std::shared_ptr<const frame::Descriptor> root_;
};

}  // namespace cframefs::fs
