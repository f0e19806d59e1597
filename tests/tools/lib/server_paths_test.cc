// Names of what lies on servers, on a disk and in messages.
#include "tools/lib/server_paths.h"

#include <gtest/gtest.h>

namespace cframefs::test {
namespace {

TEST(ServerPaths, NamesOnADiskAreDecoded) {
  const std::string web = "https://host/data/";
  EXPECT_EQ(tools::path_on_disk(web, "data/a%20b/c%C3%A9.b2frame"), "data/a b/c\u00e9.b2frame");
  EXPECT_EQ(tools::path_on_disk(web, "data/x"), "data/x");
  EXPECT_EQ(tools::path_on_disk("s3://bucket/data/", "data/a%20b"), "data/a%20b");
  EXPECT_EQ(tools::path_on_disk("/a/directory", "a%20b"), "a%20b");
}

TEST(ServerPaths, NoEncodedNameLeadsToAnotherDirectory) {
  const std::string web = "https://host/data/";
  for (const char* name : {"%2e%2e/x", "..%2Fx", "%2E%2E", "a%2F..%2F..%2Fx", "%2Fetc%2Fx", "%", "%zz", "%00"}) {
    EXPECT_EQ(tools::path_on_disk(web, name), name);
  }
}

TEST(ServerPaths, MessagesHoldNoPasswordAndNoQuery) {
  EXPECT_EQ(tools::shown_path("https://user:secret@host/x.b2frame?key=secret"), "https://host/x.b2frame");
  EXPECT_EQ(tools::shown_path("s3://bucket/a?b#c"), "s3://bucket/a?b#c");
  EXPECT_EQ(tools::shown_path("a/user:pass@x?y"), "a/user:pass@x?y");
}

}  // namespace
}  // namespace cframefs::test
