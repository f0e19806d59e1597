#include "fs/util/error_counters.h"

#include <cerrno>

namespace cframefs::fs {
namespace {

ErrorClass class_of_errno(int sys) {
  switch (sys) {
    case EINTR:
      return ErrorClass::interrupted;
    case EBUSY:
    case EAGAIN:
      return ErrorClass::locked;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return ErrorClass::no_space;
    case EACCES:
    case EPERM:
    case EROFS:
    case EBADF:
      return ErrorClass::denied;
    default:
      return ErrorClass::io;
  }
}

}  // namespace

ErrorClass class_of(const codec::Error& error) {
  switch (error.kind) {
    case codec::ErrorKind::corruption:
      return ErrorClass::corrupt;
    case codec::ErrorKind::unsupported:
      return ErrorClass::unsupported;
    case codec::ErrorKind::stale:
      return ErrorClass::stale;
    case codec::ErrorKind::invalid:
      return ErrorClass::invalid;
    case codec::ErrorKind::io:
      return class_of_errno(error.sys);
  }
  return ErrorClass::io;
}

}  // namespace cframefs::fs
