#include "frame/io/file_locks.h"

#include <cerrno>
#include <limits>

#include <fcntl.h>
#include <sys/file.h>

namespace cframefs::frame {

using codec::io_error;

namespace {

short type_of(ByteLock action) {
  switch (action) {
    case ByteLock::share:
      return F_RDLCK;
    case ByteLock::release:
      return F_UNLCK;
    case ByteLock::examine:
      break;
  }
  return F_WRLCK;
}

}  // namespace

Result<bool> try_file_lock(int fd, int operation) {
  int done = ::flock(fd, operation | LOCK_NB);
  while (done < 0 && errno == EINTR)
    done = ::flock(fd, operation | LOCK_NB);
  if (done == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return io_error(errno, "flock");
}

Result<bool> try_byte_lock(int fd, FileOffset at, ByteLock action) {
  if (at.value >= static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return io_error(EINVAL, "fcntl");
  struct flock lock {};
  lock.l_type = type_of(action);
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(at.value);
  lock.l_len = 1;
  if (::fcntl(fd, action == ByteLock::examine ? F_OFD_GETLK : F_OFD_SETLK, &lock) == 0)
    return action != ByteLock::examine || lock.l_type == F_UNLCK;
  if (errno == EAGAIN || errno == EACCES) return false;
  return io_error(errno, "fcntl");
}

}  // namespace cframefs::frame
