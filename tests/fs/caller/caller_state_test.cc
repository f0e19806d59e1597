// What is told of threads that wait, have pending signals or capabilities, or have ended.
#include "fs/caller/caller_state.h"

#include <array>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

/// A process that does `work` and then sleeps until this object is destroyed. Its name contains text that looks like
/// fields of /proc files, as the name of any program may.
class Sleeper {
 public:
  template <class Work>
  explicit Sleeper(const Work& work) {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_NAME, ") 0 (\nState:\tZ");
      work();
      static_cast<void>(!write(ready[1], "", 1));
      for (;;)
        pause();
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

void block(int signal) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, signal);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
}

TEST(CallerState, OfAThreadThatWaits) {
  EXPECT_EQ(caller_state(gettid()), CallerState::waits);
  EXPECT_EQ(caller_state(0), CallerState::waits);
  const Sleeper sleeper([] {});
  EXPECT_EQ(caller_state(sleeper.pid()), CallerState::waits);
}

TEST(CallerState, OfAThreadWithAPendingSignal) {
  // The signal is blocked, so that it stays pending as it does for a thread in the kernel.
  const Sleeper interrupted([] { block(SIGINT); });
  kill(interrupted.pid(), SIGINT);
  EXPECT_EQ(caller_state(interrupted.pid()), CallerState::interrupted);
  const Sleeper other([] { block(SIGUSR1); });
  kill(other.pid(), SIGUSR1);
  EXPECT_EQ(caller_state(other.pid()), CallerState::waits);
  const Sleeper dumps([] { block(SIGQUIT); });
  kill(dumps.pid(), SIGQUIT);
  EXPECT_EQ(caller_state(dumps.pid()), CallerState::waits) << "a blocked signal does not end the process";
}

TEST(CallerState, OfAThreadWithoutCapabilities) {
  EXPECT_TRUE(may_bypass_rights(0));
  EXPECT_TRUE(may_act_as_owner(0));
  const Sleeper ordinary([] {
    if (geteuid() == 0) {
      EXPECT_EQ(setresuid(3001, 3001, 3001), 0);
    }
  });
  EXPECT_FALSE(may_bypass_rights(ordinary.pid()));
  EXPECT_FALSE(may_act_as_owner(ordinary.pid()));
}

TEST(CallerState, OfAThreadWithTheCapabilitiesOfThisOne) {
  // Only root has any.
  EXPECT_EQ(may_bypass_rights(gettid()), geteuid() == 0);
  EXPECT_EQ(may_act_as_owner(gettid()), geteuid() == 0);
}

TEST(CallerState, OfAThreadThatHasEnded) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(caller_state(child), CallerState::gone);  // a zombie
  waitpid(child, nullptr, 0);
  EXPECT_EQ(caller_state(child), CallerState::gone);
}

TEST(CallerState, OfAThreadThatIsNotTheFirst) {
  pid_t thread = 0;
  std::thread([&] { thread = gettid(); }).join();
  // The kernel has the thread for a moment longer than it keeps join() waiting.
  while (tgkill(getpid(), thread, 0) == 0)
    std::this_thread::yield();
  EXPECT_EQ(caller_state(thread), CallerState::gone);
}

}  // namespace
}  // namespace cframefs::fs
