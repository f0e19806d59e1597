#include "fs/fuse/program_output.h"

#include <array>
#include <cerrno>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

using codec::Result;

/// Returns what comes out of a pipe into which `text` went; nullptr: nothing.
Result<std::string> through_pipe(const Result<std::string>* output) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  std::thread writing([&] {
    if (output != nullptr) write_output(ends[1], *output);
    ::close(ends[1]);
  });
  auto read = read_output(ends[0]);
  writing.join();
  ::close(ends[0]);
  return read;
}

TEST(ProgramOutput, TheOutputComesAsItIs) {
  for (const std::string& text :
       {std::string(), std::string("e1 2 3\n\0x", 9), std::string(std::size_t{1} << 20, 'x')}) {
    const Result<std::string> output = text;
    EXPECT_EQ(through_pipe(&output).value(), text);
  }
}

TEST(ProgramOutput, AnErrorKeepsItsKindItsErrnoAndItsReason) {
  const Result<std::string> failed = codec::io_error(EACCES, "run tool", "it ended with status 3");
  const auto io = through_pipe(&failed);
  ASSERT_FALSE(io);
  EXPECT_EQ(io.error().kind, codec::ErrorKind::io);
  EXPECT_EQ(io.error().sys, EACCES);
  EXPECT_EQ(io.error().reason, failed.error().reason);
  const Result<std::string> wrong = codec::invalid("no command");
  EXPECT_EQ(through_pipe(&wrong).error().kind, codec::ErrorKind::invalid);
  EXPECT_EQ(through_pipe(&wrong).error().reason, "no command");
}

TEST(ProgramOutput, AProcessThatEndsWithoutAnAnswerIsAnError) {
  const auto nothing = through_pipe(nullptr);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().sys, EIO);
}

TEST(ProgramOutput, MoreThanTwoMebibytesAreAnError) {
  const Result<std::string> output = std::string(std::size_t{3} << 20, 'x');
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::thread writing([&] {
    write_output(ends[1], output);
    ::close(ends[1]);
  });
  EXPECT_EQ(read_output(ends[0]).error().sys, EFBIG);
  // Takes the rest, so that the writer ends.
  std::array<char, 65536> rest{};
  while (::read(ends[0], rest.data(), rest.size()) > 0) {
  }
  writing.join();
  ::close(ends[0]);
}

}  // namespace
}  // namespace cframefs::fs
