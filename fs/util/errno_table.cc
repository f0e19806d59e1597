#include "fs/util/errno_table.h"

#include <cerrno>

namespace cframefs::fs {

int to_errno(const codec::Error& error) {
  switch (error.kind) {
    case codec::ErrorKind::corruption:
      return EIO;
    case codec::ErrorKind::unsupported:
      return EOPNOTSUPP;
    case codec::ErrorKind::io:
      return error.sys != 0 ? error.sys : EIO;
    case codec::ErrorKind::stale:
      return ESTALE;
    case codec::ErrorKind::invalid:
      return EINVAL;
  }
  return EIO;
}

}  // namespace cframefs::fs
