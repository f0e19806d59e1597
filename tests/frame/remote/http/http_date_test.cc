#include "frame/remote/http/http_date.h"

#include <gtest/gtest.h>

namespace cframefs::frame {
namespace {

TEST(HttpDate, ReadsTheExampleOfTheStandard) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
}

TEST(HttpDate, ReadsTheFirstAndTheLastDate) {
  EXPECT_EQ(parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  EXPECT_EQ(parse_http_date("Fri, 31 Dec 9999 23:59:59 GMT"), 253402300799);
}

TEST(HttpDate, KnowsLeapYears) {
  EXPECT_EQ(parse_http_date("Tue, 29 Feb 2000 00:00:00 GMT"), 951782400);
  EXPECT_EQ(parse_http_date("Thu, 29 Feb 2024 12:00:00 GMT"), 1709208000);
  EXPECT_FALSE(parse_http_date("Mon, 29 Feb 2100 00:00:00 GMT"));
  EXPECT_FALSE(parse_http_date("Wed, 29 Feb 2023 00:00:00 GMT"));
}

TEST(HttpDate, ReadsWhatItWrites) {
  for (std::int64_t seconds = 0; seconds <= 253402300799; seconds += 86400LL * 97 + 3607) {
    ASSERT_EQ(parse_http_date(http_date(seconds)), seconds) << http_date(seconds);
  }
  for (std::int64_t day = 0; day < 366 * 5; ++day) {
    ASSERT_EQ(parse_http_date(http_date(day * 86400 + 86399)), day * 86400 + 86399) << day;
  }
}

TEST(HttpDate, RefusesWhatIsNoDate) {
  for (const char* text : {
           "",
           "Sun, 06 Nov 1994 08:49:37",
           "Sun, 06 Nov 1994 08:49:37 UTC",
           "Sun, 06 Nov 1994 08:49:37 GMT ",
           " Sun, 06 Nov 1994 08:49:37 GMT",
           "Mon, 06 Nov 1994 08:49:37 GMT",
           "sun, 06 Nov 1994 08:49:37 GMT",
           "Sun, 06 nov 1994 08:49:37 GMT",
           "Sun, 6 Nov 1994 08:49:37 GMT",
           "Sun, +6 Nov 1994 08:49:37 GMT",
           "Sun, 06 Nov 1994 24:49:37 GMT",
           "Sun, 06 Nov 1994 08:60:37 GMT",
           "Sun, 06 Nov 1994 08:49:60 GMT",
           "Sun, 06-Nov-1994 08:49:37 GMT",
           "Sunday, 06-Nov-94 08:49:37 GMT",
           "Sun Nov  6 08:49:37 1994",
           "Wed, 31 Dec 1969 23:59:59 GMT",
           "Sun, 00 Nov 1994 08:49:37 GMT",
           "Thu, 31 Nov 1994 08:49:37 GMT",
       }) {
    EXPECT_FALSE(parse_http_date(text)) << text;
  }
}

}  // namespace
}  // namespace cframefs::frame
