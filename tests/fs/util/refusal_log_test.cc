// How many lines the log gets about refused requests (fs/util/refusal_log.h), by a clock that the tests move.
#include "fs/util/refusal_log.h"

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

class RefusalLogTest : public testing::Test {
 protected:
  std::optional<std::string> note(const std::string& file, const std::string& cause) {
    return log_.note(
        file, cause,
        [&] {
          ++names_;
          return file;
        },
        now_);
  }

  RefusalLog log_;
  RefusalLog::Clock::time_point now_{std::chrono::hours(1)};
  int names_ = 0;
};

TEST_F(RefusalLogTest, ALineForEachFileAndCause) {
  EXPECT_EQ(note("a", "x"), "a: refused: x");
  EXPECT_EQ(note("a", "y"), "a: refused: y");
  EXPECT_EQ(note("b", "x"), "b: refused: x");
  for (int i = 0; i < 1000; ++i)
    EXPECT_FALSE(note("a", "x"));
  EXPECT_EQ(names_, 3);
}

TEST_F(RefusalLogTest, TheNextLineReportsWhatWasLeftOut) {
  note("a", "x");
  note("a", "x");
  note("a", "x");
  now_ += RefusalLog::kPause;
  EXPECT_EQ(note("a", "x"), "a: refused: x (2 times more since the last such line)");
  EXPECT_FALSE(log_.rest());
}

TEST_F(RefusalLogTest, TenThousandFilesGetAHundredLines) {
  unsigned lines = 0;
  for (int i = 0; i < 10000; ++i)
    lines += note("file " + std::to_string(i), "x") ? 1 : 0;
  EXPECT_EQ(lines, RefusalLog::kMost);
  now_ += RefusalLog::kPause;
  EXPECT_EQ(note("another", "x"), "another: refused: x (9900 refusals of other files and causes were not logged)");
  EXPECT_FALSE(log_.rest());
}

TEST_F(RefusalLogTest, TheRestIsReportedOnce) {
  note("a", "x");
  note("a", "x");
  EXPECT_EQ(log_.rest(), "1 more refused requests were not logged");
  EXPECT_FALSE(log_.rest());
}

}  // namespace
}  // namespace cframefs::fs
