#include "fs/sandbox/sandbox.h"

#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/sandbox/capabilities.h"
#include "fs/sandbox/landlock.h"

namespace cframefs::fs {
namespace {

using codec::Failure;
using codec::Result;

// The sanitizers start a process at the end that examines this one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanRestrict = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
constexpr bool kCanRestrict = false;
#else
constexpr bool kCanRestrict = true;
#endif
#else
constexpr bool kCanRestrict = true;
#endif

/// The open directories of the rules.
class Trees {
 public:
  Trees() = default;
  ~Trees() {
    for (const OpenTree& tree : trees_)
      ::close(tree.descriptor);
  }
  Trees(const Trees&) = delete;
  Trees& operator=(const Trees&) = delete;

  Result<void> add(const PermittedPath& permitted) {
    const int fd = ::open(permitted.path.c_str(), O_PATH | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0) {
      if (permitted.may_be_missing) return {};
      Failure failure = codec::io_error(errno, "open");
      failure.value().path = permitted.path;
      return failure;
    }
    trees_.push_back({fd, S_ISDIR(status.st_mode), permitted.is_writable, permitted.is_executable});
    return {};
  }
  const std::vector<OpenTree>& all() const { return trees_; }

 private:
  std::vector<OpenTree> trees_;
};

Result<void> give_up_access(const Permissions& permissions) {
  Trees trees;
  for (const PermittedPath& permitted : permissions.paths) {
    if (auto added = trees.add(permitted); !added) return added;
  }
  // What callers are, and whether they still wait.
  if (auto added = trees.add({.path = "/proc"}); !added) return added;
  return restrict_access(trees.all(), permissions.ports);
}

/// Returns whether a thread of this process can gain privileges, which no sandbox permits.
bool is_free(const std::filesystem::path& thread) {
  std::ifstream status(thread / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("NoNewPrivs:")) return line.back() == '0';
  }
  return false;  // it has ended
}

/// Waits for the end of threads that resolve a name for a request that was given up.
Result<void> await_other_threads() {
  constexpr std::chrono::milliseconds kPause(5);
  constexpr int kLooks = 2000;
  const std::string self = std::to_string(::gettid());
  for (int looks = 0; looks < kLooks; ++looks) {
    std::error_code failed;
    bool has_free = false;
    for (std::filesystem::directory_iterator thread("/proc/self/task", failed), end; !failed && thread != end;
         thread.increment(failed))
      has_free = has_free || (thread->path().filename() != self && is_free(thread->path()));
    if (failed) return codec::io_error(failed.value(), "list /proc/self/task");
    if (!has_free) return {};
    std::this_thread::sleep_for(kPause);
  }
  return codec::io_error(EBUSY, "enter the sandbox", "a thread outside of it does not end");
}

}  // namespace

Result<Sandbox> Sandbox::plan(Sandboxing mode) {
  Sandbox sandbox;
  sandbox.mode_ = mode;
  if (mode == Sandboxing::off) return sandbox;
  sandbox.landlock_ = kCanRestrict ? landlock_version() : 0;
  sandbox.filters_ = kCanRestrict && has_syscall_filter();
  sandbox.is_on_ = sandbox.landlock_ > 0 || sandbox.filters_;
  if (mode == Sandboxing::strict && (sandbox.landlock_ == 0 || !sandbox.filters_)) {
    return codec::unsupported(fmt::format("sandbox=strict: {} lacks {}",
                                          kCanRestrict ? "the kernel" : "a build with sanitizers",
                                          sandbox.filters_        ? "Landlock 2 or later"
                                          : sandbox.landlock_ > 0 ? "seccomp"
                                                                  : "Landlock and seccomp"));
  }
  return sandbox;
}

Result<void> Sandbox::give_up(const Permissions& permissions) const {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return codec::io_error(errno, "prctl(PR_SET_NO_NEW_PRIVS)");
  return landlock_ > 0 ? give_up_access(permissions) : Result<void>();
}

Result<void> Sandbox::enter(const Permissions& permissions) const {
  if (!is_on_) return {};
  // Reads the file of the time zone, for the times in the log.
  tzset();
  auto awaited = await_other_threads();
  if (auto done = give_up(permissions); !done) return done;
  if (auto done = reduce_capabilities(); !done) return done;
  if (filters_) {
    if (auto done = filter_daemon(mode_ == Sandboxing::strict ? Unexpected::kills : Unexpected::fails); !done)
      return done;
  }
  return awaited;
}

Result<void> Sandbox::enter_fetcher(const Permissions& permissions) const {
  if (!is_on_) return {};
  if (auto done = give_up(permissions); !done) return done;
  read_as_other_user();
  drop_capabilities();
  if (!filters_) return {};
  return filter_fetcher(mode_ == Sandboxing::strict ? Unexpected::kills : Unexpected::fails);
}

bool Sandbox::restricts_ports() const {
  return landlock_ > 0 && fs::restricts_ports();
}

Result<std::string> Sandbox::directory_of(int source) {
  const std::string link = "/proc/self/fd/" + std::to_string(source);
  struct stat status {};
  if (::fstat(source, &status) != 0) return codec::io_error(errno, "fstat");
  if (S_ISDIR(status.st_mode)) return link;
  std::error_code failed;
  const std::filesystem::path file = std::filesystem::read_symlink(link, failed);
  if (failed) return codec::io_error(failed.value(), "readlink");
  return file.parent_path().string();
}

void Sandbox::enter_decoder(DecodesFrom from) const {
  if (!is_on_) return;
  drop_capabilities();
  // Without this filter the thread still has that of the process.
  if (filters_)
    static_cast<void>(filter_decoder(mode_ == Sandboxing::strict ? Unexpected::kills : Unexpected::fails, from));
}

std::string Sandbox::description() const {
  return fmt::format("{}{}capabilities", landlock_ > 0 ? fmt::format("Landlock {}, ", landlock_) : "",
                     filters_ ? "system calls, " : "");
}

}  // namespace cframefs::fs
