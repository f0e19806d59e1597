#include "tools/lib/first_errors.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::test {
namespace {

using codec::Error;
using codec::ErrorKind;
using tools::FirstErrors;

Error at(std::optional<std::int64_t> chunk, const std::string& reason = "bad") {
  Error error{ErrorKind::corruption, 0, reason};
  error.chunk = chunk;
  return error;
}

std::vector<std::int64_t> chunks_of(FirstErrors& errors) {
  std::vector<std::int64_t> chunks;
  for (const Error& error : errors.release())
    chunks.push_back(error.chunk.value_or(-1));
  return chunks;
}

TEST(FirstErrors, ListsTheSameErrorsInWhateverOrderTheyAreFound) {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int64_t> order(100);
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<std::int64_t>(i);
    std::shuffle(order.begin(), order.end(), random);
    FirstErrors errors(4);
    for (const std::int64_t chunk : order)
      errors.add(chunk == 50 ? at(std::nullopt, "no chunk") : at(chunk));
    EXPECT_EQ(errors.count(), 100U);
    EXPECT_EQ(chunks_of(errors), (std::vector<std::int64_t>{-1, 0, 1, 2}));
  }
}

TEST(FirstErrors, SaysWhenAllLaterOnesWouldBeRefused) {
  FirstErrors errors(2);
  EXPECT_TRUE(errors.add(at(7)));
  EXPECT_TRUE(errors.add(at(8)));
  EXPECT_FALSE(errors.add(at(9)));
  EXPECT_TRUE(errors.add(at(6)));
  errors.add_unlisted(ErrorKind::corruption, 3);
  EXPECT_EQ(errors.count(), 7U);
  EXPECT_EQ(chunks_of(errors), (std::vector<std::int64_t>{6, 7}));
}

TEST(FirstErrors, KnowsTheKindsOfErrorsThatItDoesNotList) {
  FirstErrors errors(1);
  errors.add(at(1));
  EXPECT_FALSE(errors.has(ErrorKind::io));
  Error io = at(2);
  io.kind = ErrorKind::io;
  errors.add(io);
  EXPECT_TRUE(errors.has(ErrorKind::io));
  EXPECT_FALSE(errors.has(ErrorKind::unsupported));
  errors.add_unlisted(ErrorKind::unsupported, 0);
  EXPECT_FALSE(errors.has(ErrorKind::unsupported));
  errors.add_unlisted(ErrorKind::unsupported, 1);
  EXPECT_TRUE(errors.has(ErrorKind::unsupported));
}

}  // namespace
}  // namespace cframefs::test
