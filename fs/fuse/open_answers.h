// The answers to open and create. libfuse before 3.17 cannot tell the kernel the backing id of a file that it is to
// read and write itself; such answers are made here.
//
// Thread safety: functions only. Ownership: the handle, `fh`, belongs to the open handles. Errors: as those of libfuse;
// -ENOENT: the kernel no longer waits for the answer.
#pragma once

struct fuse_entry_param;
struct fuse_file_info;
struct fuse_req;

namespace cframefs::fs {

int reply_opened(fuse_req* request, const fuse_file_info& info);
int reply_created(fuse_req* request, const fuse_entry_param& entry, const fuse_file_info& info);

}  // namespace cframefs::fs
