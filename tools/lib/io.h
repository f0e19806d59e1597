// The input and outputs of a program, passed in so that tests run the programs in process.
//
// Ownership: Io refers to its input and outputs and does not own them. Thread safety: each serves one thread at a time;
// a signal handler may set the stop flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::tools {

class Output {
 public:
  virtual ~Output() = default;
  /// Writes all of `bytes`. Errors: io; EPIPE if the reader has closed the pipe, EINTR if the stop flag is set.
  virtual codec::Result<void> write(codec::ByteView bytes) = 0;

  /// Writes messages and progress; ignores errors.
  void print(std::string_view text);
};

/// Writes to a descriptor, which the caller keeps open. `stop`: checked when a signal interrupts a write.
class DescriptorOutput final : public Output {
 public:
  DescriptorOutput(int fd, const std::atomic<bool>& stop) : fd_(fd), stop_(stop) {}
  codec::Result<void> write(codec::ByteView bytes) override;

 private:
  const int fd_;
  const std::atomic<bool>& stop_;
};

/// Keeps everything in memory.
class StringOutput final : public Output {
 public:
  codec::Result<void> write(codec::ByteView bytes) override;
  std::string text;
};

class Input {
 public:
  virtual ~Input() = default;
  /// Fills `into` and returns the number of bytes read, which is less only at the end. Errors: io; EINTR if the stop
  /// flag is set.
  virtual codec::Result<std::size_t> read(codec::ByteSpan into) = 0;
  /// Returns a path that opens the same bytes as a file; empty for a stream, or if some bytes were read already.
  virtual std::string path() const { return {}; }
};

/// Reads a descriptor from its current offset; the caller keeps it open.
class DescriptorInput final : public Input {
 public:
  DescriptorInput(int fd, const std::atomic<bool>& stop) : fd_(fd), stop_(stop) {}
  codec::Result<std::size_t> read(codec::ByteSpan into) override;
  std::string path() const override;

 private:
  const int fd_;
  const std::atomic<bool>& stop_;
};

/// Collects the progress of one of several files that are processed at a time.
struct ProgressShare {
  std::atomic<std::uint64_t>& all;  // bytes done of all files
  std::uint64_t bytes = 0;          // of this file
  std::uint64_t counted = 0;        // part of `bytes` that is in `all`

  /// Sets the part of the file that is done, 0 to 1.
  void set(double part);
};

struct Io {
  Output& out;
  Output& err;
  bool err_is_terminal = false;
  const std::atomic<bool>& stop;  // set by Ctrl-C: end soon and cleanly
  Input* in = nullptr;            // null: no standard input
  bool out_is_terminal = false;
  ProgressShare* share = nullptr;  // set: the file is one of several, and its progress is added there
  bool is_out_lost = false;        // a write of a result has failed, which is reported: there is nothing more to print
};

/// The exit status of all programs. `interrupted` is never the exit status of the process: main ends it by the signal.
enum ExitStatus : int { done = 0, kDataError = 1, kUsageError = 2, kSystemError = 3, interrupted = 130 };

/// Returns the exit status for an error.
ExitStatus status_of(const codec::Error& error);

}  // namespace cframefs::tools
