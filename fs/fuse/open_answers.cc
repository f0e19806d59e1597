#include "fs/fuse/open_answers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <linux/fuse.h>

#include "fs/fuse/fuse_requests.h"

namespace cframefs::fs {
namespace {

// FOPEN_PASSTHROUGH and fuse_open_out::backing_id: the headers of the oldest release that this is built on lack them.
constexpr std::uint32_t kPassed = 1U << 7U;
struct OpenAnswer {
  std::uint64_t handle = 0;
  std::uint32_t flags = 0;
  std::int32_t backing = 0;
};
static_assert(sizeof(OpenAnswer) == sizeof(fuse_open_out));

struct CreateAnswer {
  fuse_entry_out entry{};
  OpenAnswer opened;
};
static_assert(sizeof(CreateAnswer) == sizeof(fuse_entry_out) + sizeof(fuse_open_out));

/// Returns nullptr if the daemon serves the file.
const BackingFile* backing_of(const fuse_file_info& info) {
  const BackingFile* const backing = from_kernel<FileHandle>(&info)->backing.get();
  return backing != nullptr && backing->has_id() ? backing : nullptr;
}

OpenAnswer answer_of(const fuse_file_info& info, const BackingFile& backing) {
  // The kernel refuses FOPEN_KEEP_CACHE here: it has no pages of the file.
  return {info.fh, kPassed | (info.noflush != 0 ? FOPEN_NOFLUSH : 0U), backing.id()};
}

fuse_attr attributes_of(const struct stat& status) {
  fuse_attr attributes{};
  attributes.ino = status.st_ino;
  attributes.size = static_cast<std::uint64_t>(status.st_size);
  attributes.blocks = static_cast<std::uint64_t>(status.st_blocks);
  attributes.atime = static_cast<std::uint64_t>(status.st_atim.tv_sec);
  attributes.mtime = static_cast<std::uint64_t>(status.st_mtim.tv_sec);
  attributes.ctime = static_cast<std::uint64_t>(status.st_ctim.tv_sec);
  attributes.atimensec = static_cast<std::uint32_t>(status.st_atim.tv_nsec);
  attributes.mtimensec = static_cast<std::uint32_t>(status.st_mtim.tv_nsec);
  attributes.ctimensec = static_cast<std::uint32_t>(status.st_ctim.tv_nsec);
  attributes.mode = status.st_mode;
  attributes.nlink = static_cast<std::uint32_t>(status.st_nlink);
  attributes.uid = status.st_uid;
  attributes.gid = status.st_gid;
  attributes.blksize = static_cast<std::uint32_t>(status.st_blksize);
  return attributes;
}

/// Splits a timeout of 0 or more into seconds and nanoseconds.
void split_timeout(double timeout, std::uint64_t& seconds, std::uint32_t& nanoseconds) {
  constexpr double kMost = 1U << 31U;
  const double whole = std::floor(std::min(timeout, kMost));
  seconds = static_cast<std::uint64_t>(whole);
  nanoseconds = timeout >= kMost ? 0 : static_cast<std::uint32_t>((timeout - whole) * 1e9);
}

fuse_entry_out entry_answer_of(const fuse_entry_param& entry) {
  fuse_entry_out answer{};
  answer.nodeid = entry.ino;
  answer.generation = entry.generation;
  split_timeout(entry.entry_timeout, answer.entry_valid, answer.entry_valid_nsec);
  split_timeout(entry.attr_timeout, answer.attr_valid, answer.attr_valid_nsec);
  answer.attr = attributes_of(entry.attr);
  return answer;
}

}  // namespace

int reply_opened(fuse_req* request, const fuse_file_info& info) {
  const BackingFile* const backing = backing_of(info);
  if (backing == nullptr) return fuse_reply_open(request, &info);
  const OpenAnswer answer = answer_of(info, *backing);
  return fuse_reply_buf(request, reinterpret_cast<const char*>(&answer), sizeof answer);
}

int reply_created(fuse_req* request, const fuse_entry_param& entry, const fuse_file_info& info) {
  const BackingFile* const backing = backing_of(info);
  if (backing == nullptr) return fuse_reply_create(request, &entry, &info);
  CreateAnswer answer;
  answer.entry = entry_answer_of(entry);
  answer.opened = answer_of(info, *backing);
  return fuse_reply_buf(request, reinterpret_cast<const char*>(&answer), sizeof answer);
}

}  // namespace cframefs::fs
