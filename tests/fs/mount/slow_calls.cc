// A library to preload into the daemon: calls of the system that take long.
//
// SLOW_CALLS in the environment names calls and milliseconds: "second_fork=500". second_fork: what the child of a child
// does first.
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <unistd.h>

namespace {

int forks = 0;

void wait_for_call(std::string_view call) {
  const char* given = std::getenv("SLOW_CALLS");
  const std::string_view calls = given == nullptr ? "" : given;
  const auto at = calls.find(call);
  if (at == std::string_view::npos) return;
  usleep(static_cast<useconds_t>(std::strtoul(calls.data() + at + call.size(), nullptr, 10)) * 1000);
}

}  // namespace

extern "C" pid_t fork() noexcept {
  using Fork = pid_t (*)();
  static const Fork real = reinterpret_cast<Fork>(dlsym(RTLD_NEXT, "fork"));
  const pid_t child = real();
  if (child == 0 && ++forks == 2) wait_for_call("second_fork=");
  return child;
}
