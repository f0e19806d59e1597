#include "tools/lib/server_paths.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "codec/base/mutex.h"
#include "frame/base/suffixes.h"
#include "frame/cframe/sparse_frame.h"
#include "frame/remote/http/percent_encoding.h"
#include "frame/remote/remote_source.h"

namespace cframefs::tools {

using codec::Failure;
using codec::Result;
using frame::Descriptor;

namespace {

struct Server {
  explicit Server(std::unique_ptr<frame::RemoteSource> opened) : source(std::move(opened)), stores(source->files()) {}

  std::unique_ptr<frame::RemoteSource> source;
  frame::StoreFiles stores;
};

struct OpenServers {
  codec::Mutex mutex;
  std::map<std::string, std::unique_ptr<Server>> by_address GUARDED_BY(mutex);
  std::map<std::string, codec::Error> failures GUARDED_BY(mutex);  // by address, after all retries
};

OpenServers& servers() {
  static OpenServers open;
  return open;
}

/// Returns whether `address` is in the directory of a server that is open.
bool serves(const std::string& directory, const Server& server, const std::string& address) {
  return server.source->root() == "/" && frame::part_below(address, directory);
}

/// Returns the end of the name of the store that the address leads into; npos if it does not.
std::size_t store_end(const std::string& address) {
  for (std::size_t end = address.find('/'); end != std::string::npos; end = address.find('/', end + 1)) {
    const std::string_view part = std::string_view(address).substr(0, end);
    if (end + 1 < address.size() &&
        (part.ends_with(frame::kZipStoreSuffix) || part.ends_with(frame::kEmbedStoreSuffix) ||
         part.ends_with(frame::kDirectoryStoreSuffix)))
      return end;
  }
  return std::string::npos;
}

EntryKind kind_of_object(const std::string& name) {
  if (name.ends_with(frame::kZipStoreSuffix) || name.ends_with(frame::kEmbedStoreSuffix)) return EntryKind::store;
  return frame::container_suffix(name).empty() ? EntryKind::file : EntryKind::frame;
}

EntryKind kind_of_directory(frame::ReadFileOps& files, const Descriptor& directory, std::string name) {
  if (files.status_at(directory.handle(), std::string(frame::kSparseIndexName))) return EntryKind::frame;
  if (name.ends_with('/')) name.pop_back();
  return name.ends_with(frame::kDirectoryStoreSuffix) ? EntryKind::store : EntryKind::directory;
}

/// Returns the bytes of the files in a directory, as far as they are known.
std::uint64_t bytes_in(frame::ReadFileOps& files, const Descriptor& directory) {
  std::uint64_t sum = 0;
  if (const auto listed = files.list(directory.handle())) {
    for (const frame::DirectoryEntry& entry : *listed) {
      const auto status = files.status_at(directory.handle(), entry.name);
      if (status && S_ISREG(status->st_mode)) sum += static_cast<std::uint64_t>(status->st_size);
    }
  }
  return sum;
}

codec::Failure at(const std::string& address, codec::Error error) {
  error.path = frame::shown_address(address);
  return Failure(std::move(error));
}

bool is_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

/// Returns the path of a web address, without what authorizes the request; the whole address of anything else.
std::string_view path_of(std::string_view address) {
  const auto parsed = frame::parse_address(address);
  if (!parsed || parsed->scheme == frame::Address::Scheme::s3) return address;
  return address.substr(0, address.find_first_of("?#"));
}

}  // namespace

Result<ServerFiles> server_files(const std::string& address) {
  codec::MutexLock lock(servers().mutex);
  auto& all = servers().by_address;
  auto found = all.find(address);
  if (found == all.end()) {
    found = std::find_if(all.begin(), all.end(),
                         [&](const auto& server) { return serves(server.first, *server.second, address); });
  }
  if (found == all.end()) {
    const auto failed = servers().failures.find(address);
    if (failed != servers().failures.end()) return Failure(failed->second);
    auto opened = frame::RemoteSource::open(address, {});
    if (!opened) {
      servers().failures.emplace(address, opened.error());
      return Failure(opened.error());
    }
    found = all.emplace(address, std::make_unique<Server>(std::move(*opened))).first;
  }
  return ServerFiles{&found->second->source->files(), &found->second->stores};
}

bool holds(frame::ReadFileOps& files, const std::string& path) {
  const auto opened = files.open_named(path, O_PATH);
  if (!opened) return !codec::is_missing(opened.error());
  files.close(*opened);
  return true;
}

Result<ServerFiles> files_around_store(const std::string& address) {
  const std::size_t end = std::min(store_end(address), address.size());
  return server_files(address.substr(0, address.rfind('/', end - 1) + 1));
}

Result<frame::ReadFileOps*> files_of_server(const std::string& address) {
  if (store_end(address) != std::string::npos) {
    // Files of a directory store need no store.
    const auto around = files_around_store(address);
    if (around && !holds(*around->as_stored, address)) return around->with_stores;
    if (around) return around->as_stored;
  }
  const auto files = server_files(address);
  if (!files) return Failure(files.error());
  return files->as_stored;
}

EntryKind kind_on_server(const std::string& address) {
  const auto files = files_of_server(address);
  if (!files) return EntryKind::other;
  const auto opened = (*files)->open_named(address, O_PATH);
  if (!opened) return EntryKind::other;
  const Descriptor entry(**files, *opened);
  const auto status = (*files)->status(entry.handle());
  if (!status) return EntryKind::other;
  const std::string path(path_of(address));
  return S_ISDIR(status->st_mode) ? kind_of_directory(**files, entry, path) : kind_of_object(path);
}

Result<std::vector<DirectoryEntry>> entries_on_server(const std::string& directory) {
  const auto found = files_of_server(directory);
  if (!found) return at(directory, found.error());
  frame::ReadFileOps& files = **found;
  const auto opened = files.open_named(directory, O_RDONLY | O_DIRECTORY);
  if (!opened) return at(directory, opened.error());
  const Descriptor top(files, *opened);
  auto listed = files.list(top.handle());
  if (!listed) return at(directory, listed.error());
  std::sort(listed->begin(), listed->end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<DirectoryEntry> entries;
  for (const frame::DirectoryEntry& each : *listed) {
    DirectoryEntry entry{frame::address_of_entry(directory, each.name), kind_of_object(each.name), 0};
    if (each.type == DT_DIR) {
      entry.kind = EntryKind::directory;
      if (const auto opened_inner = files.open_at(top.handle(), each.name, O_RDONLY | O_DIRECTORY)) {
        const Descriptor inner(files, *opened_inner);
        entry.kind = kind_of_directory(files, inner, each.name);
        if (entry.kind == EntryKind::store) entry.stored_bytes = bytes_in(files, inner);
      }
      if (entry.kind != EntryKind::frame) entry.path += '/';
    } else if (const auto status = files.status_at(top.handle(), each.name)) {
      entry.stored_bytes = static_cast<std::uint64_t>(status->st_size);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::uint64_t object_bytes(const std::string& address) {
  const auto files = files_of_server(address);
  if (!files) return 0;
  const auto opened = (*files)->open_named(address, O_PATH);
  if (!opened) return 0;
  const Descriptor object(**files, *opened);
  const auto status = (*files)->status(object.handle());
  return status ? static_cast<std::uint64_t>(status->st_size) : 0;
}

std::string shown_path(const std::string& path) {
  return frame::is_address(path) ? frame::shown_address(path) : path;
}

std::string path_on_disk(const std::string& address, const std::string& relative) {
  const auto parsed = frame::parse_address(address);
  if (!parsed || parsed->scheme == frame::Address::Scheme::s3) return relative;
  std::string path;
  for (std::size_t begin = 0; begin <= relative.size();) {
    const std::size_t end = std::min(relative.find('/', begin), relative.size());
    const std::string part = relative.substr(begin, end - begin);
    const auto decoded = frame::percent_decode(part);
    // A '/' or ".." that is encoded must not lead to another directory.
    path += decoded && is_file_name(*decoded) ? *decoded : part;
    if (end < relative.size()) path += '/';
    begin = end + 1;
  }
  return path;
}

void close_servers() {
  codec::MutexLock lock(servers().mutex);
  servers().by_address.clear();
  servers().failures.clear();
}

}  // namespace cframefs::tools
