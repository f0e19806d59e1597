// Shared by the adapter's files: from a request to the objects behind it, and from results to replies. Only the adapter
// includes this header.
//
// Thread safety: functions only. Ownership: the adapter keeps the handles that the kernel holds.
#pragma once

#define FUSE_USE_VERSION 312

#include <cstdint>
#include <memory>
#include <string_view>

#include <fuse_lowlevel.h>

#include "fs/fuse/fuse_adapter.h"
#include "fs/fuse/pending_request.h"
#include "fs/fuse/refusals.h"
#include "fs/util/errno_table.h"
#include "fs/util/no_memory.h"

namespace cframefs::fs {

// Another thread may answer a request, which frees it. So the thread's PendingRequest holds what handlers need of it.
inline FuseAdapter& this_adapter() {
  return PendingRequest::current()->adapter();
}
inline Filesystem& this_filesystem() {
  return this_adapter().filesystem();
}
inline const Caller& this_caller() {
  return PendingRequest::current()->caller();
}

/// Checks the caller's rights to a user.* attribute. Rights to attributes of other kinds follow from ownership.
inline codec::Result<void> check_attribute(fuse_ino_t node, std::string_view name, int rights) {
  if (!name.starts_with("user.")) return {};
  return this_filesystem().rights().check_caller(node, this_caller(), rights);
}

template <class Handle>
std::uint64_t to_kernel(Handle* handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}
template <class Handle>
Handle* from_kernel(std::uint64_t held) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel keeps a handle as a number
  return reinterpret_cast<Handle*>(held);
}
template <class Handle>
Handle* from_kernel(const fuse_file_info* info) {
  return from_kernel<Handle>(info->fh);
}

inline codec::ByteView bytes_of(const char* bytes, std::size_t size) {
  return {reinterpret_cast<const std::uint8_t*>(bytes), size};
}

/// Answers the request by calling `reply`. Returns -ENOENT if the request has been answered already: the caller then
/// undoes what the kernel was to count.
template <class Answer>
int reply_with(const Answer& reply) {
  return PendingRequest::current()->claim() ? reply() : -ENOENT;
}
inline void reply_errno(fuse_req_t request, int error) {
  reply_with([&] { return fuse_reply_err(request, error); });
}
inline void reply_error(fuse_req_t request, const codec::Error& error) {
  note_refusal(error);
  reply_errno(request, to_errno(error));
}
template <class T>
void reply_result(fuse_req_t request, const codec::Result<T>& result) {
  if (!result) return reply_error(request, result.error());
  reply_errno(request, 0);
}

inline fuse_entry_param entry_of(const Attributes& attributes) {
  fuse_entry_param entry{};
  entry.ino = attributes.node;
  entry.attr = attributes.status;
  entry.attr_timeout = attributes.attr_timeout;
  entry.entry_timeout = attributes.entry_timeout;
  return entry;
}
/// Answers with a look-up. The kernel forgets it later; if the kernel did not get the answer (interrupted), undoes it.
inline void reply_entry(fuse_req_t request, const codec::Result<Attributes>& found) {
  if (!found) return reply_error(request, found.error());
  const fuse_entry_param entry = entry_of(*found);
  if (reply_with([&] { return fuse_reply_entry(request, &entry); }) == -ENOENT)
    try_in_memory([&] { this_filesystem().names().forget(entry.ino, 1); });
}

inline std::uint64_t handle_in(fuse_file_info* const& info) {
  return info != nullptr ? info->fh : 0;
}
template <class Other>
std::uint64_t handle_in(const Other& /*argument*/) {
  return 0;
}
/// Returns the handles among the arguments of a request.
template <class... Arguments>
PendingRequest::Handles handles_in(const Arguments&... arguments) {
  PendingRequest::Handles handles{};
  std::size_t count = 0;
  for (const std::uint64_t handle : {handle_in(arguments)...}) {
    if (handle != 0 && count < handles.size()) handles[count++] = handle;
  }
  return handles;
}

/// Returns the first node among the arguments of a request and the text behind it, which is a name in a request about
/// an entry.
inline PendingRequest::Target target_of() {
  return {};
}
template <class... Rest>
PendingRequest::Target target_of(fuse_ino_t node, const Rest&... /*rest*/) {
  return {node, nullptr};
}
template <class... Rest>
PendingRequest::Target target_of(fuse_ino_t node, const char* name, const Rest&... /*rest*/) {
  return {node, name};
}
template <class Other, class... Rest>
PendingRequest::Target target_of(const Other& /*argument*/, const Rest&... rest) {
  return target_of(rest...);
}

template <auto Handle, Abandon kAbandon, Subject kSubject>
struct Answered;
template <class... Arguments, void (*Handle)(fuse_req_t, Arguments...), Abandon kAbandon, Subject kSubject>
struct Answered<Handle, kAbandon, kSubject> {
  static void call(fuse_req_t request, Arguments... arguments) {
    PendingRequest& pending = *PendingRequest::current();
    PendingRequest::Target target = target_of(arguments...);
    if (kSubject == Subject::node) target.name = nullptr;
    pending.start(request, kAbandon, handles_in(arguments...), target);
    if (!try_in_memory([&] { Handle(request, arguments...); })) reply_errno(request, ENOMEM);
    pending.finish();
  }
};
/// The handler, which answers ENOMEM if an allocation fails. REQUIRES: the handler throws only before it has replied,
/// and uses the request only to reply.
template <auto Handle, Abandon kAbandon = Abandon::when_ending>
constexpr auto answered = &Answered<Handle, kAbandon, Subject::node>::call;
/// The same for a request about an entry of a directory.
template <auto Handle>
constexpr auto answered_for_entry = &Answered<Handle, Abandon::when_ending, Subject::entry>::call;

/// Registers the requests that change nothing: fs/fuse/fuse_read_ops.cc.
void register_read_ops(fuse_lowlevel_ops& ops);
/// Registers the requests that open files or change something: fs/fuse/fuse_write_ops.cc.
void register_write_ops(fuse_lowlevel_ops& ops);

}  // namespace cframefs::fs
