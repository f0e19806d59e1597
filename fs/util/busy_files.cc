#include "fs/util/busy_files.h"

#include <algorithm>
#include <utility>

namespace cframefs::fs {

bool BusyFiles::add_to_known(std::uint64_t id, const Traffic& traffic) {
  const auto found = std::find(ids_.begin(), ids_.end(), id);
  if (found == ids_.end()) return false;
  File& file = files_[static_cast<std::size_t>(found - ids_.begin())];
  file.read_bytes += traffic.read_bytes;
  file.write_bytes += traffic.write_bytes;
  ++file.requests;
  return true;
}

void BusyFiles::note(std::uint64_t id, const Traffic& traffic, const PathOf& path_of) {
  {
    const codec::MutexLock lock(mutex_);
    if (add_to_known(id, traffic)) return;
  }
  std::string path = path_of(id);
  const codec::MutexLock lock(mutex_);
  if (add_to_known(id, traffic)) return;
  File fresh{id, std::move(path), traffic.read_bytes, traffic.write_bytes, 1, 0};
  if (files_.size() < kFiles) {
    ids_.push_back(id);
    files_.push_back(std::move(fresh));
    return;
  }
  const auto least = std::min_element(files_.begin(), files_.end(),
                                      [](const File& a, const File& b) { return a.bytes() < b.bytes(); });
  fresh.inherited = least->bytes();
  ids_[static_cast<std::size_t>(least - files_.begin())] = id;
  *least = std::move(fresh);
}

std::vector<BusyFiles::File> BusyFiles::files() const {
  std::vector<File> files;
  {
    const codec::MutexLock lock(mutex_);
    files = files_;
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return std::pair(b.bytes(), a.id) < std::pair(a.bytes(), b.id); });
  return files;
}

}  // namespace cframefs::fs
