// Owns a descriptor of the kernel. Thread safety: as a value.
#pragma once

#include <utility>

#include <unistd.h>

namespace cframefs::frame {

/// Owns a descriptor and closes it. Movable.
class SystemFd {
 public:
  SystemFd() = default;
  explicit SystemFd(int number) : number_(number) {}
  SystemFd(SystemFd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  SystemFd& operator=(SystemFd&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~SystemFd() {
    if (is_open()) ::close(number_);
  }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

}  // namespace cframefs::frame
