// Decodes every chunk of many frames on all cores and reports damage.
//
// add() opens a frame and queues its chunks, some at a time; workers decode them. add() decodes small frames (64 KiB)
// itself. Reports come out in the order of add(). The queue is short: add() waits for space in it, so only the files
// being decoded are open.
//
// Thread safety: one thread calls. Ownership: owns its threads; the destructor drops what is queued and joins them.
// Errors: in the reports.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "frame/container/container.h"
#include "fs/util/byte_budget.h"
#include "tools/lib/frame_files.h"

namespace cframefs::tools {

struct CheckReport {
  std::string path;
  frame::ContainerKind kind = frame::ContainerKind::none;  // none: the file could not be opened
  std::int64_t chunks = 0;
  std::uint64_t nbytes = 0;
  /// Whether the digests of a seal were verified; none: the format has no seal, or the frame has no chunks.
  enum class Seal : std::uint8_t { none, missing, broken, holds };
  Seal seal = Seal::none;
  std::vector<codec::Error> errors;  // those of the first chunks, sorted by chunk, at most kMaxErrors
  std::uint64_t further_errors = 0;  // number of errors not in `errors`
  bool has_io_error = false;         // among all errors
  bool has_unsupported = false;      // among all errors
  static constexpr std::size_t kMaxErrors = 10000;
};

class FrameChecker {
 public:
  /// Calls `idle` 10 times a second while add() and finish() wait.
  FrameChecker(unsigned workers, const std::atomic<bool>& stop, std::function<void()> idle);
  ~FrameChecker();
  FrameChecker(const FrameChecker&) = delete;
  FrameChecker& operator=(const FrameChecker&) = delete;

  void add(const FrameFile& input, std::uint64_t offset);
  /// Waits until everything is decoded.
  void finish();
  /// Returns the complete reports, up to the first incomplete one.
  std::vector<CheckReport> take_reports();

  /// Returns the number of stored bytes that were checked.
  std::uint64_t bytes_done() const { return bytes_done_.load(std::memory_order_relaxed); }

 private:
  struct File;
  struct Verdict;
  struct Task {
    std::shared_ptr<File> file;
    std::int64_t begin = 0;  // chunks
    std::int64_t end = 0;
    bool metalayers = false;
  };

  static void check_seal(File& file);
  void push(Task task);
  void work();
  void run(class BlockDecoder& decoder, const Task& task);
  void check_runs(class BlockDecoder& decoder, File& file, frame::ChunkRuns& runs);
  Verdict check_chunk(class BlockDecoder& decoder, File& file, frame::ChunkNumber chunk);
  void complete(File& file);
  /// Waits for `condition` and calls idle_ in between. Returns early if stop_ is set.
  template <class CondVar>
  void wait(std::unique_lock<std::mutex>& lock, CondVar condition);

  const std::atomic<bool>& stop_;
  const std::function<void()> idle_;
  std::atomic<std::uint64_t> bytes_done_ = 0;

  std::mutex mutex_;
  std::condition_variable wanted_, progressed_;
  std::deque<Task> queue_;                   // under the lock
  std::size_t running_ = 0;                  // under the lock
  bool closed_ = false;                      // under the lock
  std::deque<std::shared_ptr<File>> files_;  // calling thread only
  const std::size_t queue_bound_;
  fs::ByteBudget large_blocks_;
  const std::unique_ptr<class BlockDecoder> own_;  // used by the calling thread
  std::vector<std::thread> threads_;
};

}  // namespace cframefs::tools
