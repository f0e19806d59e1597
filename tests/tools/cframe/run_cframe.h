// Runs cframe in process and keeps what it printed.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "tools/cframe/cframe.h"

namespace cframefs::test {

struct Ran {
  int status = -1;
  std::string out;
  std::string err;
};

inline Ran run_cframe(const std::vector<std::string>& arguments) {
  const std::atomic<bool> stop = false;
  tools::StringOutput out;
  tools::StringOutput err;
  tools::Io io{out, err, false, stop};
  const int status = tools::cframe_main(arguments, io);
  return {status, std::move(out.text), std::move(err.text)};
}

/// Fails every write with this errno.
class BrokenOutput final : public tools::Output {
 public:
  explicit BrokenOutput(int sys) : sys_(sys) {}
  codec::Result<void> write(codec::ByteView) override {
    ++writes;
    return codec::io_error(sys_, "write");
  }
  int writes = 0;

 private:
  const int sys_;
};

}  // namespace cframefs::test
