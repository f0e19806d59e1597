#include "frame/io/tail_writer.h"

namespace cframefs::frame {

namespace {

constexpr std::size_t kGather = std::size_t{1} << 20;
// From here on a write of its own costs less than gathering does.
constexpr std::size_t kDirect = std::size_t{128} << 10;
// So much at a time goes to the disk.
constexpr std::uint64_t kAnnounce = std::uint64_t{4} << 20;

}  // namespace

Result<void> TailWriter::append(ByteView bytes) {
  if (bytes.size() >= kDirect || gathered_.size() + bytes.size() > kGather) {
    if (auto done = flush(); !done) return done;
  }
  if (bytes.size() >= kDirect) return put(bytes);
  gathered_.insert(gathered_.end(), bytes.begin(), bytes.end());
  return {};
}

Result<void> TailWriter::flush() {
  if (gathered_.empty()) return {};
  if (auto done = put(gathered_); !done) return done;
  gathered_.clear();
  return {};
}

Result<void> TailWriter::put(ByteView bytes) {
  if (auto done = files_.pwrite(fd_, bytes, FileOffset{flushed_}); !done) return done;
  flushed_ += bytes.size();
  if (flushed_ - announced_ < kAnnounce) return {};
  files_.write_out_soon(fd_, FileOffset{announced_}, flushed_ - announced_);
  announced_ = flushed_;
  return {};
}

}  // namespace cframefs::frame
