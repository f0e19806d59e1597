// What the files of the adapter share: from a request to the objects behind it, and from results to replies. Included
// by the adapter alone.
//
// Thread safety: functions only. Ownership: the adapter keeps the handles that the kernel holds.
#pragma once

#define FUSE_USE_VERSION 312

#include <cstdint>
#include <memory>
#include <string_view>

#include <fuse_lowlevel.h>

#include "fs/errno_table.h"
#include "fs/fuse_adapter.h"
#include "fs/no_memory.h"

namespace cframefs::fs {

inline FuseAdapter& adapter_of(fuse_req_t request) {
  return *static_cast<FuseAdapter*>(fuse_req_userdata(request));
}
inline Filesystem& filesystem_of(fuse_req_t request) {
  return adapter_of(request).filesystem();
}

inline Caller caller_of(fuse_req_t request) {
  const fuse_ctx* context = fuse_req_ctx(request);
  return {context->uid, context->gid, context->pid, context->umask};
}
/// Whether the caller may do that to an extended attribute of programs (attributes of other kinds have owners).
inline codec::Result<void> check_attribute(fuse_req_t request, fuse_ino_t node, std::string_view name, int rights) {
  if (!name.starts_with("user.")) return {};
  return filesystem_of(request).check_caller(node, caller_of(request), rights);
}

template <class Handle>
std::uint64_t to_kernel(Handle* handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}
template <class Handle>
Handle* from_kernel(const fuse_file_info* info) {
  return reinterpret_cast<Handle*>(info->fh);
}

inline codec::ByteView bytes_of(const char* bytes, std::size_t size) {
  return {reinterpret_cast<const std::uint8_t*>(bytes), size};
}

inline void reply_error(fuse_req_t request, const codec::Error& error) {
  fuse_reply_err(request, to_errno(error));
}
template <class T>
void reply_result(fuse_req_t request, const codec::Result<T>& result) {
  fuse_reply_err(request, result ? 0 : to_errno(result.error()));
}

inline fuse_entry_param entry_of(const Attributes& attributes) {
  fuse_entry_param entry{};
  entry.ino = attributes.node;
  entry.attr = attributes.status;
  entry.attr_timeout = attributes.attr_timeout;
  entry.entry_timeout = attributes.entry_timeout;
  return entry;
}
/// Answers with a look-up, which the kernel forgets later; if it does not know of it (interrupted), it is undone here.
inline void reply_entry(fuse_req_t request, const codec::Result<Attributes>& found) {
  if (!found) return reply_error(request, found.error());
  Filesystem& filesystem = filesystem_of(request);  // a request is gone once it is answered
  const fuse_entry_param entry = entry_of(*found);
  if (fuse_reply_entry(request, &entry) == -ENOENT) try_in_memory([&] { filesystem.forget(entry.ino, 1); });
}

template <auto Handle>
struct Answered;
template <class... Arguments, void (*Handle)(fuse_req_t, Arguments...)>
struct Answered<Handle> {
  static void call(fuse_req_t request, Arguments... arguments) {
    if (!try_in_memory([&] { Handle(request, arguments...); })) fuse_reply_err(request, ENOMEM);
  }
};
/// The handler, with ENOMEM for an answer if an allocation fails. REQUIRES: it throws before it has replied only.
template <auto Handle>
constexpr auto answered = &Answered<Handle>::call;

/// Requests that only look: fs/fuse_reading.cc.
void add_reading(fuse_lowlevel_ops& ops);
/// Requests that open files, and those that change something: fs/fuse_changing.cc.
void add_changing(fuse_lowlevel_ops& ops);

}  // namespace cframefs::fs
