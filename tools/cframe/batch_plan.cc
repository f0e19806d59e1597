#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "frame/base/suffixes.h"
#include "frame/open/open.h"
#include "frame/remote/http/address.h"
#include "tools/cframe/batch.h"
#include "tools/lib/server_paths.h"

namespace cframefs::tools {

using codec::Failure;
using codec::Result;

namespace {

constexpr std::size_t kRecognisedBytes = 64;  // suffice to recognise a container

using Identity = std::pair<dev_t, ino_t>;

std::optional<Identity> identity_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}

codec::Error error_at(const std::string& path, const codec::Failure& failure) {
  codec::Error error = failure.value();
  error.path = shown_path(path);
  return error;
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.pop_back();
  return path;
}

/// Returns the length of the part of the paths below `directory` that --to replaces: with its last name, the name
/// stays, as with cp -r.
std::size_t base_length(const std::string& directory) {
  const std::size_t slash = directory.rfind('/');
  const std::string last = slash == std::string::npos ? directory : directory.substr(slash + 1);
  if (last.empty() || last == "." || last == "..") return directory.size() + (last.empty() ? 0 : 1);
  return slash == std::string::npos ? 0 : slash + 1;
}

/// Collects the inputs that the operands name.
class Collector {
 public:
  Collector(const BatchOptions& options, const FileMaker& maker) : options_(options), maker_(maker) {}

  std::vector<PlannedFile> run() {
    for (const std::string& operand : options_.operands)
      add_operand(operand);
    return std::move(files_);
  }

 private:
  void add_operand(const std::string& operand) {
    if (operand == kStandardStream)
      return fail(operand, codec::invalid("standard input has no name: pack it alone, as in 'cframe pack - OUT'"));
    // That an address is a directory's is told by the '/' at its end.
    const std::string path = frame::is_address(operand) ? operand : without_slashes(operand);
    const DirectoryEntry entry{path, kind_of(operand, true), stored_bytes(operand)};
    const bool is_group = entry.kind == EntryKind::directory || (entry.kind == EntryKind::store && maker_.reads_frames);
    if (is_group && options_.recursive) return walk(entry);
    if (entry.kind == EntryKind::directory)
      return fail(operand, codec::invalid("is a directory: --recursive takes the files in it"));
    add_file(entry, base_length(without_slashes(entry.path)));
  }

  void fail(const std::string& path, const Failure& failure) {
    PlannedFile file;
    file.task.in = path;
    file.error = error_at(path, failure);
    files_.push_back(std::move(file));
  }

  void add_file(const DirectoryEntry& entry, std::size_t base) {
    PlannedFile file;
    file.task.in = entry.path;
    file.bytes = entry.stored_bytes;
    const auto name = maker_.name(entry.path);
    if (!name) return fail(entry.path, Failure(name.error()));
    file.task.out = *name;
    if (options_.to) {
      const std::string relative = name->substr(std::min(base, name->rfind('/') + 1));
      file.task.out = without_slashes(*options_.to) + "/" + path_on_disk(entry.path, relative);
    }
    files_.push_back(std::move(file));
  }

  void walk(const DirectoryEntry& top) {
    const std::size_t base = base_length(without_slashes(top.path));
    // A list instead of recursion, because the depth of directories is not bounded.
    std::vector<DirectoryEntry> pending = {top};
    while (!pending.empty()) {
      const DirectoryEntry group = pending.back();
      pending.pop_back();
      auto entries = group.kind == EntryKind::store ? members_of(group) : entries_of(group.path);
      if (!entries) {
        fail(group.path, Failure(entries.error()));
        continue;
      }
      std::vector<DirectoryEntry> groups;
      for (const DirectoryEntry& entry : *entries) {
        const bool is_store = entry.kind == EntryKind::store && maker_.reads_frames;
        if (entry.kind == EntryKind::directory || is_store) {
          groups.push_back(entry);
        } else if (maker_.takes(entry)) {
          add_file(entry, base);
        }
      }
      pending.insert(pending.end(), groups.rbegin(), groups.rend());
    }
  }

  const BatchOptions& options_;
  const FileMaker& maker_;
  std::vector<PlannedFile> files_;
};

/// Decides for each output whether it may be made, and whether it replaces a file.
void check_outputs(std::vector<PlannedFile>& files, bool force) {
  std::set<Identity> inputs;
  for (const PlannedFile& file : files) {
    if (const auto identity = identity_of(file.task.in)) inputs.insert(*identity);
  }
  std::set<std::string> names;
  std::set<Identity> replaced;
  for (PlannedFile& file : files) {
    if (file.error) continue;
    const std::string& out = file.task.out;
    const auto there = frame::is_address(out) ? std::nullopt : identity_of(out);
    if (there && inputs.contains(*there)) {
      file.error = error_at(out, codec::invalid("is an input; the output of " + file.task.in + " would replace it"));
    } else if (!names.insert(std::filesystem::path(out).lexically_normal().string()).second ||
               (there && !replaced.insert(*there).second)) {
      file.error = error_at(
          out, codec::invalid("is the output of an earlier input, too; that of " + file.task.in + " would replace it"));
    }
    // A file that appears after this look is not replaced: it may be an output of this run under another name.
    file.task.replace = force && (there || frame::is_address(out));
  }
}

/// Returns true if a file has content that is neither a frame nor an array.
bool holds_other_data(const std::string& path) {
  frame::ReadFileOps& files = frame::system_files();
  const auto fd = files.open_named(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return false;
  const frame::Descriptor file(files, *fd);
  const auto status = files.status(file.handle());
  std::vector<std::uint8_t> first(kRecognisedBytes);
  if (!status || !S_ISREG(status->st_mode) || status->st_size == 0) return false;
  const auto got = files.pread(file.handle(), first, frame::FileOffset{0});
  if (!got) return false;
  first.resize(*got);
  return !frame::begins_container(first, static_cast<std::uint64_t>(status->st_size));
}

}  // namespace

Result<void> check_replaceable(const std::string& out) {
  if (out == kStandardStream || frame::is_address(out) || !frame::container_suffix(out).empty() ||
      out.ends_with(kNpySuffix) || !holds_other_data(out))
    return {};
  return Failure(error_at(out, codec::invalid("exists and is not a frame, and --force replaces only frames; to take it "
                                              "as another input: --multiple")));
}

bool is_container_entry(const DirectoryEntry& entry) {
  if (entry.kind != EntryKind::frame) return false;
  return !frame::is_shared_suffix(frame::container_suffix(entry.path)) || open_frame(InputFile(entry.path), 0);
}

Result<std::string> without_suffix(const std::string& in) {
  const std::string_view suffix = frame::container_suffix(in.substr(in.rfind('/') + 1));
  if (suffix.empty()) return codec::invalid("has no suffix of a frame: name OUT");
  return in.substr(0, in.size() - suffix.size());
}

std::vector<PlannedFile> plan_files(const BatchOptions& options, const FileMaker& maker) {
  std::vector<PlannedFile> files = Collector(options, maker).run();
  check_outputs(files, options.force);
  return files;
}

}  // namespace cframefs::tools
