// What a program reads from and writes to, passed in so that tests run the programs in process.
//
// Ownership: Io refers to its input and outputs and does not own them. Thread safety: each serves one thread at a time;
// the stop flag may be set from a signal handler.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::tools {

class Output {
 public:
  virtual ~Output() = default;
  /// All of `bytes`, or kind io: EPIPE when the reader has gone, EINTR when the program was told to stop.
  virtual codec::Result<void> write(codec::ByteView bytes) = 0;

  /// Text whose loss nobody could act on: messages and progress.
  void print(std::string_view text);
};

/// Writes to a descriptor, which the caller keeps open. `stop`: looked at when a write is interrupted by a signal.
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
  /// Fills `into`, but at the end, and returns how many bytes there were; or kind io: EINTR when the program was told
  /// to stop.
  virtual codec::Result<std::size_t> read(codec::ByteSpan into) = 0;
  /// What opens the same bytes as a file; empty where they come in order only, or some were read already.
  virtual std::string path() const { return {}; }
};

/// Reads a descriptor from where it stands; the caller keeps it open.
class DescriptorInput final : public Input {
 public:
  DescriptorInput(int fd, const std::atomic<bool>& stop) : fd_(fd), stop_(stop) {}
  codec::Result<std::size_t> read(codec::ByteSpan into) override;
  std::string path() const override;

 private:
  const int fd_;
  const std::atomic<bool>& stop_;
};

struct Io {
  Output& out;
  Output& err;
  bool err_is_terminal = false;
  const std::atomic<bool>& stop;  // set by Ctrl-C: end soon and cleanly
  Input* in = nullptr;            // null: there is nothing to read
  bool out_is_terminal = false;
};

/// What the exit status of every program says. `interrupted` never leaves the process as a status: main ends by
/// the signal itself.
enum ExitStatus : int { done = 0, kDataError = 1, kUsageError = 2, kSystemError = 3, interrupted = 130 };

/// Whose fault an error is.
ExitStatus status_of(const codec::Error& error);

}  // namespace cframefs::tools
