#include "frame/io/buffered_appender.h"

namespace cframefs::frame {

namespace {

constexpr std::size_t kGather = std::size_t{1} << 20;
// From here on a write of its own costs less than gathering does.
constexpr std::size_t kDirect = std::size_t{128} << 10;
// So much at a time goes to the disk.
constexpr std::uint64_t kAnnounce = std::uint64_t{4} << 20;

}  // namespace

Result<void> BufferedAppender::append(ByteView bytes) {
  if (bytes.size() >= kDirect || gathered_.size() + bytes.size() > kGather) {
    if (auto done = flush(); !done) return done;
  }
  if (bytes.size() >= kDirect) return put(bytes);
  gathered_.insert(gathered_.end(), bytes.begin(), bytes.end());
  return {};
}

Result<void> BufferedAppender::flush() {
  if (gathered_.empty()) return {};
  if (auto done = put(gathered_); !done) return done;
  gathered_.clear();
  return {};
}

Result<void> BufferedAppender::put(ByteView bytes) {
  if (auto done = files_.pwrite(fd_, bytes, FileOffset{flushed_}); !done) return done;
  flushed_ += bytes.size();
  if (flushed_ - writeback_started_ < kAnnounce) return {};
  files_.start_writeback(fd_, FileOffset{writeback_started_}, flushed_ - writeback_started_);
  writeback_started_ = flushed_;
  return {};
}

}  // namespace cframefs::frame
