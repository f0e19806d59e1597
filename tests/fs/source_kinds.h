// The kinds of sources on which tests run: filesystems that lack something.
#pragma once

#include <functional>
#include <vector>

#include "tests/support/limited_files.h"

namespace cframefs::fs {

inline std::vector<test::Limits> all_kinds() {
  std::vector<test::Limits> kinds(1);
  const auto add = [&](const char* name, const std::function<void(test::Limits&)>& set) {
    test::Limits limits;
    limits.name = name;
    set(limits);
    kinds.push_back(limits);
  };
  add("NoRenameFlags", [](test::Limits& l) { l.no_rename_flags = true; });
  add("NoRenameFlagsNorLinks", [](test::Limits& l) { l.no_rename_flags = l.no_links = true; });
  add("NoSymlinks", [](test::Limits& l) { l.no_symlinks = true; });
  add("NoXattr", [](test::Limits& l) { l.no_xattr = true; });
  add("NoLocks", [](test::Limits& l) { l.no_locks = true; });
  add("LocksNeedMode", [](test::Limits& l) { l.locks_need_mode = true; });
  add("NoChmod", [](test::Limits& l) { l.no_chmod = true; });
  add("NoChown", [](test::Limits& l) { l.no_chown = true; });
  add("NoTimes", [](test::Limits& l) { l.no_times = true; });
  add("NoHandles", [](test::Limits& l) { l.no_handles = true; });
  add("GoneHandles", [](test::Limits& l) { l.gone_handles = true; });
  add("NoHoles", [](test::Limits& l) { l.no_holes = true; });
  add("NoDirectorySync", [](test::Limits& l) { l.no_directory_sync = true; });
  add("StampsOfOneSecond", [](test::Limits& l) { l.stamp_seconds = 1; });
  add("StampsOfTwoSeconds", [](test::Limits& l) { l.stamp_seconds = 2; });
  add("RenamesOpenFiles", [](test::Limits& l) { l.renames_open_files = true; });
  add("FoldsCase", [](test::Limits& l) { l.folds_case = true; });
  add("LikeExfatOfFuse", [](test::Limits& l) {
    l.no_rename_flags = l.no_links = l.no_symlinks = l.no_xattr = l.no_chmod = l.no_chown = l.no_holes = true;
    l.gone_handles = l.folds_case = l.inodes_by_spelling = true;
    l.stamp_seconds = 2;
  });
  add("FilesOfAnotherUser", [](test::Limits& l) { l.no_noatime = true; });
  add("LikeSshfs", [](test::Limits& l) { l.no_rename_flags = l.no_xattr = l.no_holes = l.inodes_by_spelling = true; });
  add("LikeNfs", [](test::Limits& l) {
    l.no_rename_flags = l.no_xattr = l.locks_need_mode = l.no_holes = l.renames_open_files = l.gone_is_stale = true;
    l.stamp_seconds = 1;
  });
  return kinds;
}

}  // namespace cframefs::fs
