#include "fs/kernel/backing_files.h"

#include <memory>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

// A device with ids is that of a mount: tests/fs/mount/passthrough_mount.py.

TEST(BackingFiles, AFileHasNoIdBeforeThereIsAConnection) {
  BackingFiles files;
  EXPECT_FALSE(files.add(STDIN_FILENO)->has_id());
}

TEST(BackingFiles, AFileHasNoIdIfTheDeviceRefuses) {
  const int device = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_GE(device, 0);
  BackingFiles files;
  files.begin(device);
  EXPECT_FALSE(files.add(STDIN_FILENO)->has_id());
  ::close(device);
}

TEST(BackingFiles, AFileOutlivesTheConnection) {
  std::shared_ptr<const BackingFile> file;
  {
    BackingFiles files;
    files.begin(STDIN_FILENO);
    file = files.add(STDIN_FILENO);
    files.end();
  }
  EXPECT_FALSE(file->has_id());
}

}  // namespace
}  // namespace cframefs::fs
