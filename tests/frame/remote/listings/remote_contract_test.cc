// The contract of all file operations, kept by the files of servers that list states and of those that do not.
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/frame/io/file_ops_contract.h"
#include "tests/support/remote_world.h"

namespace cframefs::test {
namespace {

// The names of the test suites in file_ops_contract_test.cc.
using FileOpsReading = FileOpsContract;
using FileOpsRefusing = FileOpsContract;

/// Trees have no place for what their files need, so that it stays until the program ends.
template <bool kTellsStates>
std::unique_ptr<Tree> tree_of_server() {
  static std::vector<std::unique_ptr<RemoteWorld>> worlds;
  worlds.push_back(std::make_unique<RemoteWorld>(kTellsStates));
  RemoteWorld& world = *worlds.back();
  world.objects.put(kFile, content_of_file(), "\"1\"");
  world.objects.put(kOther, content_of_other(), "\"2\"");
  auto tree = std::make_unique<Tree>();
  tree->files = &world.files;
  const auto root = world.files.open_named("/", O_RDONLY | O_DIRECTORY);
  EXPECT_TRUE(root) << codec::describe(root.error());
  tree->root = frame::Descriptor(world.files, root.value_or(frame::OpenFile{}));
  if (!kTellsStates) {
    // An inode of a list is the file's own once the state of the file is known.
    for (const std::string& name : {kFile, kOther})
      EXPECT_TRUE(world.files.status_at(tree->root.handle(), name));
  }
  return tree;
}

const auto kServers = testing::Values(Implementation{"bucket", tree_of_server<true>},
                                      Implementation{"web_server", tree_of_server<false>});

INSTANTIATE_TEST_SUITE_P(Remote, FileOpsReading, kServers, name_of);
INSTANTIATE_TEST_SUITE_P(Remote, FileOpsRefusing, kServers, name_of);

}  // namespace
}  // namespace cframefs::test
