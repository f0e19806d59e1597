// Runs a job for each of many files on several threads, and delivers the results in the order of the files.
//
// A small file takes one thread, so that several are processed at a time. A large file takes all threads, and only one
// large file is processed at a time: this bounds the memory.
//
// Thread safety: one call serves one thread; `run` is called on several threads at a time, the other functions on the
// calling thread. Errors: none; the results belong to the caller.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace cframefs::tools {

struct FileBatch {
  std::vector<std::uint64_t> sizes;  // bytes of each file, which tell small files from large ones
  unsigned workers = 1;
  /// Processes a file with this number of threads.
  std::function<void(std::size_t file, unsigned workers)> run;
  /// Called once for each processed file, in order, as soon as all files before it are done.
  std::function<void(std::size_t file)> deliver;
  /// Called 5 times a second.
  std::function<void()> idle;
};

/// Processes all files. If `stop` is set, starts no further files and delivers those that are done.
void run_batch(const FileBatch& batch, const std::atomic<bool>& stop);

}  // namespace cframefs::tools
