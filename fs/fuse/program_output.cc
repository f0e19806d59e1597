#include "fs/fuse/program_output.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <string_view>

#include <poll.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

using codec::io_error;
using ProgramClock = std::chrono::steady_clock;

constexpr const char* kRunProgram = "run the program for credentials";
constexpr std::chrono::seconds kProgramPatience(70);
constexpr std::size_t kMostOutputBytes = std::size_t{2} << 20;
// The first character.
constexpr char kIsOutput = 'o';
constexpr char kIsError = 'e';  // then the kind, a space, errno, a space, and the reason

std::string encoded_output(const codec::Result<std::string>& output) {
  if (output) return kIsOutput + *output;
  const codec::Error& error = output.error();
  const std::string where = error.path.empty() ? "" : error.path + ": ";
  return kIsError + std::to_string(static_cast<int>(error.kind)) + " " + std::to_string(error.sys) + " " + where +
         error.reason;
}

/// Takes a number and the space after it from the begin of the text.
int take_output_number(std::string_view& text) {
  int number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (!text.empty()) text.remove_prefix(1);
  return number;
}

codec::Result<std::string> decoded_output(std::string_view text) {
  if (text.empty()) return io_error(EIO, kRunProgram, "its process has ended without an answer");
  const char begin = text.front();
  text.remove_prefix(1);
  if (begin == kIsOutput) return std::string(text);
  codec::Error error;
  const int kind = take_output_number(text);
  error.kind = kind >= 0 && kind <= static_cast<int>(codec::ErrorKind::invalid) ? static_cast<codec::ErrorKind>(kind)
                                                                                : codec::ErrorKind::io;
  error.sys = take_output_number(text);
  error.reason = text;
  return codec::Failure(std::move(error));
}

}  // namespace

void write_output(int pipe, const codec::Result<std::string>& output) {
  const std::string text = encoded_output(output);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(pipe, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    at += static_cast<std::size_t>(written);
  }
}

codec::Result<std::string> read_output(int pipe) {
  std::string text;
  const auto until = ProgramClock::now() + kProgramPatience;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - ProgramClock::now()).count();
    if (left <= 0) return io_error(ETIMEDOUT, kRunProgram);
    pollfd ready{pipe, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(left)) <= 0) continue;
    std::array<char, 16384> buffer{};
    const ssize_t got = ::read(pipe, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(errno, kRunProgram);
    if (got == 0) return decoded_output(text);
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostOutputBytes) return io_error(EFBIG, kRunProgram);
  }
}

}  // namespace cframefs::fs
