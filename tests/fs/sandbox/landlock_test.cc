// What Landlock takes from a process: files, directories, ports.
#include "fs/sandbox/landlock.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"

namespace cframefs::fs {
namespace {

constexpr int kPermitted = 200;

/// Returns what `call` ends with in a process that may use `trees` and `ports`: its errno, or kPermitted.
int errno_within(const std::vector<OpenTree>& trees, const std::vector<std::uint16_t>& ports,
                 const std::function<bool()>& call) {
  const pid_t child = ::fork();
  if (child == 0) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!restrict_access(trees, ports)) ::_exit(kPermitted + 1);
    errno = 0;
    ::_exit(call() ? kPermitted : errno);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WEXITSTATUS(status);
}

bool can_open(const std::filesystem::path& path, int flags) {
  return ::open(path.c_str(), flags | O_CLOEXEC, 0600) >= 0;
}

class LandlockTest : public testing::Test {
 protected:
  void SetUp() override {
    if (landlock_version() == 0) GTEST_SKIP() << "no Landlock here";
  }
};

TEST_F(LandlockTest, OneFileIsReadAndNothingBesideIt) {
  const test::TempDir dir;
  const auto file = dir.write("file", std::vector<std::uint8_t>(1));
  const auto other = dir.write("other", std::vector<std::uint8_t>(1));
  const int fd = ::open(file.c_str(), O_PATH | O_CLOEXEC);
  const std::vector<OpenTree> trees = {{.descriptor = fd, .is_directory = false}};
  EXPECT_EQ(errno_within(trees, {}, [&] { return can_open(file, O_RDONLY); }), kPermitted);
  EXPECT_EQ(errno_within(trees, {}, [&] { return can_open(file, O_WRONLY); }), EACCES);
  EXPECT_EQ(errno_within(trees, {}, [&] { return can_open(other, O_RDONLY); }), EACCES);
  ::close(fd);
}

TEST_F(LandlockTest, ConnectionsGoToThePortsAlone) {
  if (!restricts_ports()) GTEST_SKIP() << "Landlock does not restrict TCP here";
  std::array<sockaddr_in, 2> addresses{};
  std::array<int, 2> listening{};
  for (std::size_t i = 0; i < 2; ++i) {
    addresses[i].sin_family = AF_INET;
    addresses[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listening[i] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof addresses[i];
    ASSERT_EQ(::bind(listening[i], reinterpret_cast<const sockaddr*>(&addresses[i]), length), 0);
    ASSERT_EQ(::listen(listening[i], 4), 0);
    ASSERT_EQ(::getsockname(listening[i], reinterpret_cast<sockaddr*>(&addresses[i]), &length), 0);
  }
  const std::vector<std::uint16_t> ports = {1, ntohs(addresses[0].sin_port)};
  const auto connects = [&](std::size_t to) {
    return errno_within({}, ports, [&, to] {
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      return ::connect(fd, reinterpret_cast<const sockaddr*>(&addresses[to]), sizeof addresses[to]) == 0;
    });
  };
  EXPECT_EQ(connects(0), kPermitted);
  EXPECT_EQ(connects(1), EACCES);
  for (const int fd : listening)
    ::close(fd);
}

}  // namespace
}  // namespace cframefs::fs
