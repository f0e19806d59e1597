// SHA-256, as the manifests give it: lower-case hexadecimal.
//
// Thread safety: one thread per object.
#pragma once

#include <memory>
#include <string>

#include "codec/base/bytes.h"

namespace cframefs::test {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(codec::ByteView bytes);
  /// Of all that was added; nothing can be added afterwards.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256(codec::ByteView bytes);

}  // namespace cframefs::test
