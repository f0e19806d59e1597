#include "fs/kernel/backing_files.h"

#include <utility>

#include <sys/ioctl.h>

#include "fs/util/backing_calls.h"

namespace cframefs::fs {

BackingFile::BackingFile(std::shared_ptr<const BackingDevice> device, int file) : device_(std::move(device)) {
  BackingMap map;
  map.file = file;
  id_ = ::ioctl(*device_, kOpenBacking, &map);
}

BackingFile::~BackingFile() {
  if (!has_id()) return;
  const auto id = static_cast<std::uint32_t>(id_);
  static_cast<void>(::ioctl(*device_, kCloseBacking, &id));
}

}  // namespace cframefs::fs
