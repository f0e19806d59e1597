#include "fs/read/reads_under_way.h"

#include <algorithm>
#include <limits>

namespace cframefs::fs {
namespace {

// The largest off_t.
constexpr std::uint64_t kEndOfFiles = std::numeric_limits<std::int64_t>::max();

}  // namespace

ReadsUnderWay::Mark ReadsUnderWay::begin(std::shared_ptr<ReadsUnderWay> reads, std::uint64_t at, std::uint64_t length,
                                         std::uint64_t page_size) {
  Read read;
  read.begin = at / page_size * page_size;
  read.end = std::min(kEndOfFiles, (at + length + page_size - 1) / page_size * page_size);
  Mark mark;
  codec::MutexLock lock(reads->mutex_);
  mark.read_ = reads->reads_.insert(reads->reads_.end(), read);
  for (auto other = reads->reads_.begin(); other != mark.read_; ++other) {
    if (other->begin < read.end && read.begin < other->end) other->holds_pages = false;
  }
  mark.reads_ = std::move(reads);
  return mark;
}

ReadsUnderWay::Mark::~Mark() {
  if (!reads_) return;
  codec::MutexLock lock(reads_->mutex_);
  reads_->reads_.erase(read_);
}

void ReadsUnderWay::Mark::set_open(bool open) {
  if (!reads_) return;
  codec::MutexLock lock(reads_->mutex_);
  read_->open = open;
}

std::vector<ReadsUnderWay::Range> ReadsUnderWay::gaps() const {
  std::vector<Range> taken;
  {
    codec::MutexLock lock(mutex_);
    for (const Read& read : reads_) {
      if (read.open && read.holds_pages) taken.push_back({read.begin, read.end});
    }
  }
  std::sort(taken.begin(), taken.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> gaps;
  std::uint64_t at = 0;
  for (const Range& range : taken) {
    if (range.begin > at) gaps.push_back({at, range.begin});
    at = std::max(at, range.end);
  }
  if (at < kEndOfFiles) gaps.push_back({at, kEndOfFiles});
  return gaps;
}

bool ReadsUnderWay::is_all(const std::vector<Range>& gaps) {
  return gaps.size() == 1 && gaps.front() == Range{0, kEndOfFiles};
}

}  // namespace cframefs::fs
