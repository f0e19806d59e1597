#include "frame/tail_writer.h"

namespace cframefs::frame {

namespace {

constexpr std::size_t kGather = std::size_t{1} << 20;

}  // namespace

Result<void> TailWriter::append(ByteView bytes) {
  if (gathered_.size() + bytes.size() > kGather) {
    if (auto done = flush(); !done) return done;
  }
  if (bytes.size() >= kGather) {
    if (auto done = files_.pwrite(fd_, bytes, FileOffset{flushed_}); !done) return done;
    flushed_ += bytes.size();
    return {};
  }
  gathered_.insert(gathered_.end(), bytes.begin(), bytes.end());
  return {};
}

Result<void> TailWriter::flush() {
  if (gathered_.empty()) return {};
  if (auto done = files_.pwrite(fd_, gathered_, FileOffset{flushed_}); !done) return done;
  flushed_ += gathered_.size();
  gathered_.clear();
  return {};
}

}  // namespace cframefs::frame
