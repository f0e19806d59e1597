#include "fs/sandbox/landlock.h"

#include <cerrno>
#include <cstdint>

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

// The headers of the oldest release that this is built on have version 2. The kernel takes a longer structure as it
// takes a longer set of bits: it refuses what it does not know, so only what its version has is set.
struct Ruleset {
  std::uint64_t files = 0;
  std::uint64_t network = 0;
  std::uint64_t scopes = 0;
};

constexpr unsigned kRenames = 2;
constexpr unsigned kTruncates = 3;
constexpr unsigned kNetwork = 4;
constexpr unsigned kDevices = 5;
constexpr unsigned kScopes = 6;

constexpr std::uint64_t kReads = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kTruncate = std::uint64_t{1} << 14;
constexpr std::uint64_t kControlDevice = std::uint64_t{1} << 15;
constexpr std::uint64_t kWrites =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
    LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER;
constexpr std::uint64_t kExecutes = LANDLOCK_ACCESS_FS_EXECUTE;
constexpr std::uint64_t kConnect = 2;
constexpr std::uint64_t kTcp = 1 | kConnect;  // bind and connect
constexpr int kPortRule = 2;
constexpr std::uint64_t kSignalScope = 2;  // signals to processes without these restrictions

/// A rule for a port.
struct PortRule {
  std::uint64_t access = 0;
  std::uint64_t port = 0;
};

Ruleset ruleset_of(unsigned version) {
  Ruleset rules;
  rules.files = kReads | kWrites | kExecutes;
  if (version >= kTruncates) rules.files |= kTruncate;
  if (version >= kDevices) rules.files |= kControlDevice;
  if (version >= kNetwork) rules.network = kTcp;
  if (version >= kScopes) rules.scopes = kSignalScope;
  return rules;
}

std::size_t ruleset_length(unsigned version) {
  return sizeof(std::uint64_t) * (version >= kScopes ? 3 : version >= kNetwork ? 2 : 1);
}

/// Closes a descriptor at the end of the block.
class Closing {
 public:
  explicit Closing(int fd) : fd_(fd) {}
  ~Closing() {
    if (fd_ >= 0) ::close(fd_);
  }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

 private:
  int fd_;
};

}  // namespace

unsigned landlock_version() {
  const auto version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version >= static_cast<long>(kRenames) ? static_cast<unsigned>(version) : 0;
}

bool restricts_ports() {
  return landlock_version() >= kNetwork;
}

codec::Result<void> restrict_access(std::span<const OpenTree> trees, std::span<const std::uint16_t> ports) {
  const unsigned version = landlock_version();
  const Ruleset rules = ruleset_of(version);
  const auto ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, ruleset_length(version), 0));
  if (ruleset < 0) return codec::io_error(errno, "landlock_create_ruleset");
  const Closing closing(ruleset);
  for (const OpenTree& tree : trees) {
    landlock_path_beneath_attr beneath{};
    beneath.allowed_access = !tree.is_directory ? LANDLOCK_ACCESS_FS_READ_FILE
                             : tree.is_writable ? rules.files & (kReads | kWrites | kTruncate)
                                                : kReads;
    if (tree.is_executable) beneath.allowed_access |= kExecutes;
    beneath.parent_fd = tree.descriptor;
    if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0) {
      return codec::io_error(errno, "landlock_add_rule");
    }
  }
  for (const std::uint16_t port : ports) {
    const PortRule rule{kConnect, port};
    if (rules.network != 0 && ::syscall(SYS_landlock_add_rule, ruleset, kPortRule, &rule, 0) != 0) {
      return codec::io_error(errno, "landlock_add_rule");
    }
  }
  if (::syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) return codec::io_error(errno, "landlock_restrict_self");
  return {};
}

}  // namespace cframefs::fs
