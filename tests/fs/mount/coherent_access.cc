// Several threads and processes access one file of a mount at once, each in its own way, and each checks what it reads:
// whose bytes they are, and that they are no older than what was acknowledged before (coherent_state.h).
//
//   coherent_access make SLOTS SLOT_SIZE                       the file's first bytes, on standard output
//   coherent_access run FILE STATE SEED ROUNDS SLOTS SLOT_SIZE CFRAME FRAME ACTOR...
//   coherent_access check STATE SLOTS SLOT_SIZE                compares standard input with the last state
//
// Actors that write: buffered, writeonly, direct, async, mapped (each with "-reopen": a handle for each round; "-sync":
// an fsync after each slot; "-sparsely": few slots, and an fsync after each round), append, append-writeonly. Actors
// that look on until the writers have done their rounds: read, hot (what was written last), reopen, open, stat, map,
// readdirect, drop, fsync, cat (`CFRAME cat FRAME`), copy. Exit status 1 with the first difference on standard error.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coherent_actor.h"
#include "coherent_state.h"
#include "coherent_writers.h"

namespace {

using coherent::Actor;
using coherent::Appender;
using coherent::Expectation;
using coherent::kPage;
using coherent::kWindow;
using coherent::Layout;
using coherent::pages;
using coherent::Progress;
using coherent::Shared;
using coherent::TailExpectation;
using coherent::Task;
using coherent::Writer;
using Level = coherent::Expectation::Level;

constexpr int kProcesses = 3;

/// Reads until the writers have done their rounds.
class Onlooker : public Actor {
 public:
  using Actor::Actor;

  void run() override {
    const bool fresh = name_ == "reopen" || name_ == "open";
    do {
      if (name_ == "cat") {
        cat();
      } else if ((fd_ < 0 || fresh) && !open(name_ == "readdirect" ? O_RDONLY | O_DIRECT : O_RDONLY)) {
        break;
      } else {
        step();
      }
    } while (!shared_.stop && shared_.writers > 0);
  }

 private:
  void step() {
    if (name_ == "read" || name_ == "readdirect") {
      look_somewhere(fd_);
      look_at_tail(fd_);
    } else if (name_ == "reopen") {
      look(fd_, 0, std::min(layout().size(), kWindow));
      look_at_tail(fd_);
    } else if (name_ == "hot") {
      const std::size_t at = shared_.hot * layout().slot_size;
      look(fd_, at, layout().slot_size);
    } else if (name_ == "stat") {
      stat();
    } else if (name_ == "map") {
      map();
    } else if (name_ == "drop") {
      ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
      ::usleep(1000);
    } else if (name_ == "fsync") {
      fsync();
    } else if (name_ == "copy") {
      copy();
    } else if (name_ != "open") {
      fail("is no actor", EINVAL);
    }
  }

  void stat() {
    const std::size_t least = layout().size() + TailExpectation(shared_, Level::acknowledged).least();
    struct stat status {};
    if (::stat(task_.file.c_str(), &status) != 0) return fail("stat");
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size < least || (task_.appenders == 0 && size != least)) {
      fail("size " + std::to_string(size) + ", " + std::to_string(least) + " was expected", 0);
    }
  }

  void map() {
    const std::size_t length = std::min(kWindow, layout().size());
    const std::size_t at = random_() % ((layout().size() - length) / kPage + 1) * kPage;
    const std::size_t begin = at / layout().slot_size * layout().slot_size;
    if (!buffer_) buffer_ = pages(length + layout().slot_size);
    const Expectation expected(shared_, layout(), begin, length, Level::acknowledged);
    void* memory = ::mmap(nullptr, layout().size(), PROT_READ, MAP_SHARED, fd_, 0);
    if (memory == MAP_FAILED) return fail("mmap");
    std::memcpy(buffer_.get(), static_cast<unsigned char*>(memory) + begin, length);
    ::munmap(memory, layout().size());
    verify(expected, buffer_.get(), length, "");
  }

  void fsync() {
    std::vector<std::uint32_t> before;
    for (std::size_t slot = 0; slot < layout().slots; ++slot)
      before.push_back(shared_.slots[slot].acknowledged);
    std::uint32_t records[coherent::kMaxAppenders];
    for (std::size_t i = 0; i < coherent::kMaxAppenders; ++i)
      records[i] = shared_.appenders[i].acknowledged;
    if (::fsync(fd_) != 0) return fail("fsync");
    for (std::size_t slot = 0; slot < layout().slots; ++slot)
      raise(shared_.slots[slot], before[slot]);
    for (std::size_t i = 0; i < coherent::kMaxAppenders; ++i)
      raise(shared_.appenders[i], records[i]);
    ::usleep(5000);
  }

  static void raise(Progress& progress, std::uint32_t to) {
    std::uint32_t was = progress.durable;
    while (was < to && !progress.durable.compare_exchange_weak(was, to)) {
    }
  }

  /// The other program reads what is on disk: whole, and no older than what fsync has acknowledged.
  void cat() {
    const Expectation expected(shared_, layout(), 0, layout().size(), Level::durable);
    const TailExpectation records(shared_, Level::durable);
    std::vector<unsigned char> bytes;
    // NOLINTNEXTLINE(cert-env33-c): the test itself names the program and the frame
    std::FILE* output = ::popen((task_.cframe + " cat '" + task_.frame + "'").c_str(), "re");
    if (output == nullptr) return fail("popen");
    unsigned char part[65536];
    for (std::size_t got = 0; (got = std::fread(part, 1, sizeof part, output)) > 0;)
      bytes.insert(bytes.end(), part, part + got);
    // It says itself why, on the standard error that we share.
    if (::pclose(output) != 0) return fail("failed after " + std::to_string(bytes.size()) + " bytes", 0);
    if (bytes.size() < layout().size()) return fail(std::to_string(bytes.size()) + " bytes on disk", 0);
    verify(expected, bytes.data(), layout().size(), "on disk: ");
    const std::string fault = records.fault_of(bytes.data() + layout().size(), bytes.size() - layout().size());
    if (!fault.empty()) fail("on disk: " + fault, 0);
  }

  /// A copy within the mount holds what was acknowledged before.
  void copy() {
    const std::string name = task_.file + "-copy";
    const int to = ::open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (to < 0) return fail("creating a copy");
    const std::size_t length = std::min(layout().size(), kWindow);
    const Expectation expected(shared_, layout(), 0, length, Level::acknowledged);
    off64_t in = 0;
    off64_t out = 0;
    while (static_cast<std::size_t>(out) < length) {
      const ssize_t got = ::copy_file_range(fd_, &in, to, &out, length - static_cast<std::size_t>(out), 0);
      if (got <= 0) {
        fail("copy_file_range");
        break;
      }
    }
    std::vector<unsigned char> bytes(length);
    if (!shared_.stop && ::pread(to, bytes.data(), length, 0) != static_cast<ssize_t>(length)) fail("read of a copy");
    ::close(to);
    ::unlink(name.c_str());
    if (!shared_.stop) verify(expected, bytes.data(), length, "in a copy: ");
  }
};

bool is_writer(const std::string& name) {
  static const char* const kWays[] = {"buffered", "writeonly", "direct", "async", "mapped"};
  return std::any_of(std::begin(kWays), std::end(kWays), [&](const char* way) { return name.rfind(way, 0) == 0; });
}

bool is_appender(const std::string& name) {
  return name.rfind("append", 0) == 0;
}

void act(Shared& shared, const Task& task, const std::vector<std::string>& actors, std::size_t process) {
  std::vector<std::unique_ptr<Actor>> own;
  std::size_t writer = 0;
  std::size_t appender = 0;
  for (std::size_t i = 0; i < actors.size(); ++i) {
    std::unique_ptr<Actor> actor;
    if (is_writer(actors[i])) {
      actor = std::make_unique<Writer>(shared, task, actors[i], i, writer++);
    } else if (is_appender(actors[i])) {
      actor = std::make_unique<Appender>(shared, task, actors[i], i, appender++);
    } else {
      actor = std::make_unique<Onlooker>(shared, task, actors[i], i, 0);
    }
    if (i % kProcesses == process) own.push_back(std::move(actor));
  }
  std::vector<std::thread> threads;
  for (auto& actor : own)
    threads.emplace_back([&] { actor->run(); });
  for (auto& thread : threads)
    thread.join();
}

int run(const Task& task, const std::vector<std::string>& actors, const char* state) {
  // The state is a file that all processes map: it stays for the check.
  const int fd = ::open(state, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 || ::ftruncate(fd, sizeof(Shared)) != 0) return 2;
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 2;
  Shared& shared = *new (memory) Shared{};
  shared.writers = static_cast<int>(task.writers + task.appenders);
  pid_t children[kProcesses];
  for (std::size_t process = 0; process < kProcesses; ++process) {
    children[process] = ::fork();
    if (children[process] == 0) {
      act(shared, task, actors, process);
      ::_exit(0);
    }
  }
  for (int left = kProcesses; left > 0; --left) {
    int status = 0;
    if (::wait(&status) > 0 && status != 0) {
      shared.fail("a process", "wait status " + std::to_string(status), 0);
    }
  }
  std::printf("%llu looks\n", static_cast<unsigned long long>(shared.looks));
  if (shared.failed != 0) std::fprintf(stderr, "%s\n", shared.message);
  return shared.failed != 0 ? 1 : 0;
}

int make(const Layout& layout) {
  std::vector<unsigned char> slot(layout.slot_size);
  for (std::size_t i = 0; i < layout.slots; ++i) {
    coherent::fill(slot.data(), slot.size(), static_cast<std::uint32_t>(i), 0);
    if (std::fwrite(slot.data(), 1, slot.size(), stdout) != slot.size()) return 1;
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}

int check(const char* state, const Layout& layout) {
  const int fd = ::open(state, O_RDONLY | O_CLOEXEC);
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (fd < 0 || memory == MAP_FAILED) return 2;
  auto& shared = *static_cast<Shared*>(memory);
  std::vector<unsigned char> bytes;
  unsigned char part[65536];
  for (std::size_t got = 0; (got = std::fread(part, 1, sizeof part, stdin)) > 0;)
    bytes.insert(bytes.end(), part, part + got);
  const TailExpectation records(shared, Level::acknowledged);
  if (bytes.size() != layout.size() + records.least()) {
    std::fprintf(stderr, "%zu bytes, %zu were expected\n", bytes.size(), layout.size() + records.least());
    return 1;
  }
  std::string fault =
      Expectation(shared, layout, 0, layout.size(), Level::acknowledged).fault_of(bytes.data(), layout.size());
  if (fault.empty()) fault = records.fault_of(bytes.data() + layout.size(), bytes.size() - layout.size());
  if (!fault.empty()) std::fprintf(stderr, "%s\n", fault.c_str());
  return fault.empty() ? 0 : 1;
}

std::size_t number(const char* text) {
  return std::strtoul(text, nullptr, 10);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "make" && argc == 4) return make({number(argv[2]), number(argv[3])});
  if (what == "check" && argc == 5) return check(argv[2], {number(argv[3]), number(argv[4])});
  if (what != "run" || argc < 11 || number(argv[6]) > coherent::kMaxSlots) {
    std::fputs("usage: see the head of coherent_access.cc\n", stderr);
    return 2;
  }
  Task task{argv[2],
            static_cast<unsigned>(number(argv[4])),
            static_cast<int>(number(argv[5])),
            {number(argv[6]), number(argv[7])},
            argv[8],
            argv[9]};
  const std::vector<std::string> actors(argv + 10, argv + argc);
  for (const std::string& actor : actors) {
    task.writers += is_writer(actor) ? 1 : 0;
    task.appenders += is_appender(actor) ? 1 : 0;
  }
  return run(task, actors, argv[3]);
}
