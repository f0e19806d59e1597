#include "fs/tree/inode_numbers.h"

namespace cframefs::fs {
namespace {

// A number of another filesystem: this bit, the filesystem's index in 13 bits, the file's own number in 48 bits.
constexpr std::uint64_t kForeign = std::uint64_t{1} << 61;
constexpr unsigned kPlaceShift = 48;
constexpr std::uint64_t kOwnNumbers = std::uint64_t{1} << kPlaceShift;
constexpr std::uint64_t kTablePlace = (std::uint64_t{1} << 13) - 1;  // index for numbers assigned by table

}  // namespace

std::uint64_t InodeNumbers::shown(std::uint64_t device, std::uint64_t inode) {
  if (device == home_ && (inode & (kForeign | kView)) == 0) return inode;
  codec::MutexLock lock(mutex_);
  if (device != home_ && inode < kOwnNumbers) {
    const std::uint64_t place = devices_.try_emplace(device, devices_.size()).first->second;
    if (place < kTablePlace) return kForeign | place << kPlaceShift | inode;
  }
  return table_number(device, inode);
}

std::uint64_t InodeNumbers::substitute(std::uint64_t device, std::uint64_t inode) {
  codec::MutexLock lock(mutex_);
  return table_number(device, inode);
}

std::uint64_t InodeNumbers::table_number(std::uint64_t device, std::uint64_t inode) {
  const auto [other, is_new] = others_.try_emplace(File{device, inode}, next_other_);
  if (is_new) ++next_other_;
  return kForeign | kTablePlace << kPlaceShift | other->second;
}

std::uint64_t InodeNumbers::fresh() {
  codec::MutexLock lock(mutex_);
  return kForeign | kTablePlace << kPlaceShift | next_other_++;
}

}  // namespace cframefs::fs
