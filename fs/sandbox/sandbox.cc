#include "fs/sandbox/sandbox.h"

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/sandbox/capabilities.h"
#include "fs/sandbox/landlock.h"
#include "fs/sandbox/syscall_filter.h"

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
      ::close(tree.directory);
  }
  Trees(const Trees&) = delete;
  Trees& operator=(const Trees&) = delete;

  Result<void> add(const std::string& path, bool is_writable, bool is_executable) {
    const int fd = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
      Failure failure = codec::io_error(errno, "open");
      failure.value().path = path;
      return failure;
    }
    trees_.push_back({fd, is_writable, is_executable});
    return {};
  }
  const std::vector<OpenTree>& all() const { return trees_; }

 private:
  std::vector<OpenTree> trees_;
};

/// Returns a path of the directory that the source is, or lies in.
Result<std::string> directory_of(int source) {
  const std::string link = "/proc/self/fd/" + std::to_string(source);
  struct stat status {};
  if (::fstat(source, &status) != 0) return codec::io_error(errno, "fstat");
  if (S_ISDIR(status.st_mode)) return link;
  std::error_code failed;
  const std::filesystem::path file = std::filesystem::read_symlink(link, failed);
  if (failed) return codec::io_error(failed.value(), "readlink");
  return file.parent_path().string();
}

Result<void> give_up_files(int source, const SourceUse& use) {
  const auto directory = directory_of(source);
  if (!directory) return Failure(directory.error());
  Trees trees;
  if (auto added = trees.add(*directory, use.writes, use.passes_files); !added) return added;
  // What callers are, and whether they still wait.
  if (auto added = trees.add("/proc", false, false); !added) return added;
  return restrict_files(trees.all());
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

Result<void> Sandbox::enter(int source, const SourceUse& use) const {
  if (!is_on_) return {};
  // Reads the file of the time zone, for the times in the log.
  tzset();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return codec::io_error(errno, "prctl(PR_SET_NO_NEW_PRIVS)");
  if (landlock_ > 0) {
    if (auto done = give_up_files(source, use); !done) return done;
  }
  if (auto done = reduce_capabilities(); !done) return done;
  if (!filters_) return {};
  return filter_daemon(mode_ == Sandboxing::strict ? Unexpected::kills : Unexpected::fails);
}

void Sandbox::enter_decoder() const {
  if (!is_on_) return;
  drop_capabilities();
  // Without this filter the thread still has that of the process.
  if (filters_) static_cast<void>(filter_decoder(mode_ == Sandboxing::strict ? Unexpected::kills : Unexpected::fails));
}

std::string Sandbox::description() const {
  return fmt::format("{}{}capabilities", landlock_ > 0 ? fmt::format("Landlock {}, ", landlock_) : "",
                     filters_ ? "system calls, " : "");
}

}  // namespace cframefs::fs
