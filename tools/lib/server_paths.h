// What addresses of servers (http://, https://, s3://) name: objects, directories, sparse frames and stores.
//
// A server is asked by one set of connections for an address and all addresses in its directory, as far as the
// directory was opened first.
//
// Thread safety: functions. Ownership: what is returned exists until close_servers(). Errors: those of the server, as
// frame/remote has them.
#pragma once

#include <string>
#include <vector>

#include "frame/store/store_files.h"
#include "tools/lib/frame_files.h"

namespace cframefs::tools {

/// The files of a server: as they lie there, and with stores as directories.
struct ServerFiles {
  frame::FileOps* as_stored = nullptr;
  frame::StoreFiles* with_stores = nullptr;
};

/// Returns the files whose open_named() opens the address.
codec::Result<ServerFiles> server_files(const std::string& address);

/// Returns whether the files hold `path` themselves rather than in a store.
bool holds(frame::ReadFileOps& files, const std::string& path);

/// Returns the files of the directory of the store that `address` names or leads into: a store is opened by its
/// directory, as a mount opens it. REQUIRES: the address names a store or what is in one.
codec::Result<ServerFiles> files_around_store(const std::string& address);

/// Returns the file operations that open the address, which may lead into a store.
codec::Result<frame::ReadFileOps*> files_of_server(const std::string& address);

/// As kind_of(); `other` if the server does not answer.
EntryKind kind_on_server(const std::string& address);

/// As entries_of(). The addresses of directories end in '/'.
codec::Result<std::vector<DirectoryEntry>> entries_on_server(const std::string& directory);

/// Returns the length of an object; 0 if that is not known.
std::uint64_t object_bytes(const std::string& address);

/// Returns the path as programs print it: an address without user, password and query.
std::string shown_path(const std::string& path);

/// Returns the path, relative to some directory, of the file on a disk that is made of an object. `relative`: the end
/// of its address.
std::string path_on_disk(const std::string& address, const std::string& relative);

/// Ends the connections to servers and their threads. A program calls it before it returns from main(): libcrypto
/// cleans up before objects with static storage duration are destroyed. REQUIRES: nothing uses what the functions
/// returned.
void close_servers();

}  // namespace cframefs::tools
