#include "frame/io/buffered_appender.h"

namespace cframefs::frame {

namespace {

constexpr std::size_t kBufferSize = std::size_t{1} << 20;
// From this size a separate write costs less than copying to the buffer.
constexpr std::size_t kDirect = std::size_t{128} << 10;
// Bytes between two starts of write-back.
constexpr std::uint64_t kWritebackStep = std::uint64_t{4} << 20;

}  // namespace

Result<void> BufferedAppender::append(ByteView bytes) {
  if (bytes.size() >= kDirect || gathered_.size() + bytes.size() > kBufferSize) {
    if (auto done = flush(); !done) return done;
  }
  if (bytes.size() >= kDirect) return put(bytes);
  gathered_.insert(gathered_.end(), bytes.begin(), bytes.end());
  return {};
}

Result<void> BufferedAppender::skip(std::uint64_t length) {
  if (auto done = flush(); !done) return done;
  flushed_ += length;
  return {};
}

Result<void> BufferedAppender::flush() {
  if (gathered_.empty()) return {};
  if (auto done = put(gathered_); !done) return done;
  gathered_.clear();
  return {};
}

Result<void> BufferedAppender::put(ByteView bytes) {
  if (auto done = target_.write(bytes, FileOffset{flushed_}); !done) return done;
  flushed_ += bytes.size();
  if (flushed_ - writeback_started_ < kWritebackStep) return {};
  target_.start_writeback(FileOffset{writeback_started_}, flushed_ - writeback_started_);
  writeback_started_ = flushed_;
  return {};
}

}  // namespace cframefs::frame
