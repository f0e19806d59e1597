#include "tools/lib/frame_files.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <boost/filesystem.hpp>
#include <fcntl.h>
#include <sys/stat.h>

#include "frame/base/suffixes.h"
#include "frame/remote/http/address.h"
#include "tools/lib/server_paths.h"
#include "tools/lib/store_paths.h"

namespace cframefs::tools {

namespace filesystem = boost::filesystem;
using boost::system::error_code;
using filesystem::path;

namespace {

bool has_frame_suffix(const path& name) {
  return !frame::container_suffix(name.filename().string()).empty();
}

/// Returns the entries of a directory, sorted by name.
std::vector<path> list(const path& directory, error_code& error) {
  std::vector<path> entries;
  filesystem::directory_iterator entry(directory, error);
  while (!error && entry != filesystem::directory_iterator()) {
    entries.push_back(entry->path());
    entry.increment(error);
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// Returns true for a directory with the index file of a sparse frame, or with a frame's suffix and files of chunks.
bool is_sparse_frame(const path& directory) {
  error_code ignored;
  if (filesystem::exists(directory / "chunks.b2frame", ignored)) return true;
  if (!has_frame_suffix(directory)) return false;
  const auto entries = list(directory, ignored);
  return std::any_of(entries.begin(), entries.end(), [](const path& entry) { return entry.extension() == ".chunk"; });
}

void add(FoundFrames& found, const path& frame) {
  found.frames.push_back({frame.string(), stored_bytes(frame.string())});
}

bool is_store_file(const path& name) {
  return name.extension() == ".b2z" || name.extension() == ".b2e";
}

EntryKind kind_of_type(const path& entry, filesystem::file_type type) {
  if (type == filesystem::regular_file) {
    if (is_store_file(entry)) return EntryKind::store;
    return has_frame_suffix(entry) ? EntryKind::frame : EntryKind::file;
  }
  if (type != filesystem::directory_file) return EntryKind::other;
  if (is_sparse_frame(entry)) return EntryKind::frame;
  return entry.extension() == ".b2d" ? EntryKind::store : EntryKind::directory;
}

codec::Error unreadable(const path& directory, const error_code& error) {
  codec::Error failure = codec::io_error(error.value(), "read the directory").value();
  failure.path = directory.string();
  return failure;
}

/// Returns the frames in a store; of a directory store only those that do not lie there themselves.
codec::Result<std::vector<DirectoryEntry>> frames_in(std::string store) {
  while (store.ends_with('/'))
    store.pop_back();
  const auto leaves = leaves_of(store);
  if (!leaves) {
    codec::Error error = leaves.error();
    error.path = shown_path(store);
    return codec::Failure(std::move(error));
  }
  std::vector<DirectoryEntry> frames;
  for (const StoreLeaf& leaf : *leaves) {
    if (has_frame_suffix(leaf.path)) frames.push_back({store + "/" + leaf.path, EntryKind::frame, leaf.bytes});
  }
  return frames;
}

void add_leaves(FoundFrames& found, const path& store) {
  const auto frames = frames_in(store.string());
  if (!frames) {
    found.errors.push_back(frames.error());
    return;
  }
  for (const DirectoryEntry& frame : *frames)
    found.frames.push_back({frame.path, frame.stored_bytes});
}

/// Adds a file that is a frame, a store, or both.
void add_file(FoundFrames& found, const path& file) {
  const std::size_t before = found.frames.size() + found.errors.size();
  const bool is_zip = file.extension() == ".b2z";
  if (!is_zip) add(found, file);
  if (is_store_file(file)) add_leaves(found, file);
  // A zip file without frames: opening it reports that it is not a frame.
  if (is_zip && before == found.frames.size() + found.errors.size()) add(found, file);
}

void walk(FoundFrames& found, const path& top) {
  // A list instead of recursion, because the depth of directories is not bounded.
  std::vector<path> pending = {top};
  while (!pending.empty()) {
    const path directory = pending.back();
    pending.pop_back();
    error_code error;
    std::vector<path> directories;
    for (const path& entry : list(directory, error)) {
      error_code gone;
      const auto type = filesystem::symlink_status(entry, gone).type();
      if (type == filesystem::directory_file && !is_sparse_frame(entry)) {
        directories.push_back(entry);
      } else if (type == filesystem::directory_file) {
        add(found, entry);
      } else if (type == filesystem::regular_file && (has_frame_suffix(entry) || is_store_file(entry))) {
        add_file(found, entry);
      }
    }
    if (directory.extension() == ".b2d") add_leaves(found, directory);
    if (error) found.errors.push_back(unreadable(directory, error));
    pending.insert(pending.end(), directories.rbegin(), directories.rend());
  }
}

/// As walk(), of a directory on a server.
void walk_server(FoundFrames& found, const std::string& top) {
  std::vector<std::string> pending = {top};
  while (!pending.empty()) {
    const std::string directory = pending.back();
    pending.pop_back();
    const auto entries = entries_on_server(directory);
    if (!entries) {
      found.errors.push_back(entries.error());
      continue;
    }
    std::vector<std::string> directories;
    for (const DirectoryEntry& entry : *entries) {
      if (entry.path.ends_with('/')) {
        directories.push_back(entry.path);
      } else if (entry.kind == EntryKind::frame) {
        found.frames.push_back({entry.path, entry.stored_bytes});
      } else if (entry.kind == EntryKind::store) {
        add_file(found, entry.path);
      }
    }
    if (kind_on_server(directory) == EntryKind::store) add_leaves(found, directory);
    pending.insert(pending.end(), directories.rbegin(), directories.rend());
  }
}

}  // namespace

EntryKind kind_of(const std::string& path, bool follow) {
  if (frame::is_address(path)) return kind_on_server(path);
  error_code gone;
  const auto status = follow ? filesystem::status(path, gone) : filesystem::symlink_status(path, gone);
  return kind_of_type(path, status.type());
}

codec::Result<std::vector<DirectoryEntry>> entries_of(const std::string& directory) {
  if (frame::is_address(directory)) return entries_on_server(directory);
  error_code error;
  std::vector<DirectoryEntry> entries;
  for (const path& entry : list(directory, error)) {
    const EntryKind kind = kind_of(entry.string(), false);
    const bool has_size = kind != EntryKind::directory && kind != EntryKind::other;
    entries.push_back({entry.string(), kind, has_size ? stored_bytes(entry.string()) : 0});
  }
  if (error) return codec::Failure(unreadable(directory, error));
  return entries;
}

codec::Result<std::vector<DirectoryEntry>> members_of(const DirectoryEntry& group) {
  error_code ignored;
  std::vector<DirectoryEntry> members;
  const bool has_entries =
      frame::is_address(group.path) ? !is_store_file(group.path) : filesystem::is_directory(group.path, ignored);
  if (has_entries) {
    auto entries = entries_of(group.path);
    if (!entries) return entries;
    std::copy_if(entries->begin(), entries->end(), std::back_inserter(members), [](const DirectoryEntry& entry) {
      return entry.kind != EntryKind::file && entry.kind != EntryKind::other;
    });
  }
  if (group.kind != EntryKind::store) return members;
  const auto frames = frames_in(group.path);
  if (!frames) return codec::Failure(frames.error());
  members.insert(members.end(), frames->begin(), frames->end());
  return members;
}

FoundFrames find_frames(const std::vector<std::string>& arguments) {
  FoundFrames found;
  for (const auto& argument : arguments) {
    if (frame::is_address(argument)) {
      const EntryKind kind = kind_on_server(argument);
      const bool is_walked = kind == EntryKind::directory || (kind == EntryKind::store && !is_store_file(argument));
      is_walked ? walk_server(found, argument) : add_file(found, argument);
      continue;
    }
    error_code error;
    // Opening reports a missing file, and a file that is not a frame in spite of its suffix.
    if (filesystem::is_directory(argument, error) && !has_frame_suffix(argument) && !is_sparse_frame(argument)) {
      walk(found, argument);
    } else {
      add_file(found, argument);
    }
  }
  return found;
}

std::uint64_t stored_bytes(const std::string& path) {
  if (frame::is_address(path)) return object_bytes(path);
  error_code error;
  if (!filesystem::is_directory(path, error)) {
    const auto size = filesystem::file_size(path, error);
    return error ? 0 : size;
  }
  std::uint64_t sum = 0;
  for (const filesystem::path& entry : list(path, error)) {
    error_code odd;
    const auto size = filesystem::file_size(entry, odd);
    if (!odd) sum += size;
  }
  return sum;
}

}  // namespace cframefs::tools
