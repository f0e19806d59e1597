// XXH3 of 64 bits, by libxxhash: the digests of a seal, for instance.
//
// Thread safety: functions; a running digest serves one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "codec/base/bytes.h"

struct XXH3_state_s;  // of libxxhash

namespace cframefs::frame {

std::uint64_t xxh3(codec::ByteView bytes, std::uint64_t seed = 0);
std::uint64_t xxh3_of_text(std::string_view text, std::uint64_t seed);

/// A digest of bytes that come in pieces.
class RunningXxh3 {
 public:
  explicit RunningXxh3(std::uint64_t seed = 0);

  void add(codec::ByteView bytes);
  /// Returns the digest of all added bytes.
  std::uint64_t value() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace cframefs::frame
