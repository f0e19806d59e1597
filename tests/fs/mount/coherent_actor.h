// What each actor of coherent_access.cc has: a handle of the file, and reads that are checked.
//
// Thread safety: an Actor belongs to one thread.
#pragma once

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "coherent_state.h"

namespace coherent {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kWindow = 1U << 20;   // bytes of one look at a large file
constexpr std::size_t kReadAtOnce = 65536;  // as cat and cp do

struct Task {
  std::string file;
  unsigned seed;
  int rounds;
  Layout layout;
  std::string cframe;
  std::string frame;
  std::size_t writers = 0;
  std::size_t appenders = 0;
};

struct Free {
  void operator()(unsigned char* bytes) const { ::operator delete (bytes, std::align_val_t{kPage}); }
};
using Pages = std::unique_ptr<unsigned char, Free>;

inline Pages pages(std::size_t size) {
  return Pages(static_cast<unsigned char*>(::operator new (size, std::align_val_t{kPage})));
}

/// One way to access the file, by a thread of its own.
class Actor {
 public:
  Actor(Shared& shared, const Task& task, std::string name, std::size_t number, std::size_t turn)
      : shared_(shared),
        task_(task),
        name_(std::move(name)),
        turn_(turn),
        random_(task.seed * 1000 + static_cast<unsigned>(number)) {}
  virtual ~Actor() { close(); }
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  virtual void run() = 0;

 protected:
  const Layout& layout() const { return task_.layout; }
  bool is(const char* part) const { return name_.find(part) != std::string::npos; }
  void fail(const std::string& what, int why = errno) { shared_.fail(name_, what, why); }

  bool open(int flags) {
    close();
    fd_ = ::open(task_.file.c_str(), flags | O_CLOEXEC);
    if (fd_ < 0) fail("open");
    return fd_ >= 0;
  }
  void close() {
    if (fd_ >= 0 && ::close(fd_) != 0) fail("close");
    fd_ = -1;
  }

  /// Reads a range of slots and checks it.
  void look(int fd, std::size_t at, std::size_t length) {
    length = std::min(length, layout().size() - at);
    if (!buffer_) buffer_ = pages(std::min(kWindow, layout().size()) + layout().slot_size);
    const Expectation expected(shared_, layout(), at, length, Expectation::Level::acknowledged);
    for (std::size_t done = 0; done < length;) {
      const std::size_t part = is("direct") ? length : std::min(kReadAtOnce, length - done);
      const ssize_t got = ::pread(fd, buffer_.get() + done, part, static_cast<off_t>(at + done));
      if (got <= 0) return fail("read of " + std::to_string(part) + " at " + std::to_string(at + done));
      done += static_cast<std::size_t>(got);
    }
    verify(expected, buffer_.get(), length, "");
  }

  void verify(const Expectation& expected, const unsigned char* bytes, std::size_t length, const std::string& where) {
    const std::string fault = expected.fault_of(bytes, length);
    ++shared_.looks;
    if (!fault.empty()) fail(where + fault, 0);
  }

  /// A window of the file, all of it where it is small.
  void look_somewhere(int fd) {
    const std::size_t length = std::min(kWindow, layout().size());
    const std::size_t slots = (layout().size() - length) / layout().slot_size;
    look(fd, random_() % (slots + 1) * layout().slot_size, length);
  }

  void look_at_tail(int fd) {
    if (task_.appenders == 0) return;
    const TailExpectation expected(shared_, Expectation::Level::acknowledged);
    std::vector<unsigned char> bytes(expected.least() + 64 * kRecord);
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got =
          ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(layout().size() + done));
      if (got < 0) return fail("read of the records");
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    const std::string fault = expected.fault_of(bytes.data(), done);
    if (!fault.empty()) fail(fault, 0);
  }

  Shared& shared_;
  const Task& task_;
  std::string name_;
  std::size_t turn_;
  std::mt19937_64 random_;
  int fd_ = -1;
  Pages buffer_;
};

}  // namespace coherent
