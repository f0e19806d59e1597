#include "frame/remote/objects/open_disk_block.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include <sys/stat.h>
#include <sys/uio.h>

#include "frame/base/xxh3.h"

namespace cframefs::frame {
namespace {

constexpr std::int64_t kTouchAfter = 60;  // seconds

}  // namespace

std::shared_ptr<const OpenDiskBlock> OpenDiskBlock::open(SystemFd fd, std::uint64_t file_length,
                                                         const DiskBlockKey& key, std::int64_t used,
                                                         std::pmr::memory_resource& memory) {
  std::array<std::uint8_t, kMostDiskHeader> first;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled before use
  const ssize_t count = ::pread(fd.number(), first.data(), first.size(), 0);
  if (count < 0) return nullptr;
  const auto header = parse_header(codec::ByteView(first).first(static_cast<std::size_t>(count)), file_length, key);
  if (!header) return nullptr;
  return std::allocate_shared<OpenDiskBlock>(std::pmr::polymorphic_allocator<OpenDiskBlock>(&memory), Private{},
                                             std::move(fd), *header, used);
}

bool OpenDiskBlock::is_piece(std::size_t number, codec::ByteView bytes) const {
  return xxh3(bytes) == header_.digests.at(number);
}

bool OpenDiskBlock::read(std::size_t at, codec::ByteSpan into) const {
  if (into.empty()) return true;
  const std::size_t end = at + into.size();
  const std::size_t first = at / kDiskPieceBytes;
  const std::size_t last = (end - 1) / kDiskPieceBytes;
  const auto begin_of = [&](std::size_t piece) { return std::min(piece * kDiskPieceBytes, length()); };
  // The pieces at both ends of the read are read beside it, those between into it.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled before use
  std::array<std::uint8_t, 2 * kDiskPieceBytes> ends;
  const codec::ByteSpan first_piece = codec::ByteSpan(ends).first(begin_of(first + 1) - begin_of(first));
  codec::ByteSpan middle;
  codec::ByteSpan last_piece;
  if (last > first) {
    middle = into.subspan(begin_of(first + 1) - at, begin_of(last) - begin_of(first + 1));
    last_piece = codec::ByteSpan(ends).subspan(kDiskPieceBytes, begin_of(last + 1) - begin_of(last));
  }
  std::array<struct iovec, 3> parts{};
  parts[0] = {first_piece.data(), first_piece.size()};
  parts[1] = {middle.data(), middle.size()};
  parts[2] = {last_piece.data(), last_piece.size()};
  const std::size_t from = begin_of(first);
  const auto wanted = static_cast<ssize_t>(begin_of(last + 1) - from);
  if (::preadv(fd_.number(), parts.data(), static_cast<int>(parts.size()),
               static_cast<off_t>(disk_header_length(length()) + from)) != wanted) {
    return false;
  }
  if (!is_piece(first, first_piece) || (last > first && !is_piece(last, last_piece))) return false;
  for (std::size_t piece = first + 1; piece < last; ++piece) {
    if (!is_piece(piece, middle.subspan((piece - first - 1) * kDiskPieceBytes, kDiskPieceBytes))) return false;
  }
  const codec::ByteView head = codec::ByteView(first_piece).subspan(at - from);
  std::copy_n(head.begin(), std::min(head.size(), into.size()), into.begin());
  if (last > first) {
    const codec::ByteSpan rest = into.last(end - begin_of(last));
    std::copy_n(last_piece.begin(), rest.size(), rest.begin());
  }
  return true;
}

bool OpenDiskBlock::is_removed() const {
  struct stat status {};
  return ::fstat(fd_.number(), &status) == 0 && status.st_nlink == 0;
}

void OpenDiskBlock::touch() const {
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (now.tv_sec - used_ < kTouchAfter) return;
  used_ = now.tv_sec;
  ::futimens(fd_.number(), nullptr);
}

}  // namespace cframefs::frame
