#include "frame/base/xxh3.h"

#include <new>

#include <xxhash.h>
#ifdef CFRAMEFS_XXHASH_CHOOSES_BY_CPU
// Replaces the functions by those that choose a vector unit when the program runs: three times as fast with AVX2.
#include <xxh_x86dispatch.h>
#endif

namespace cframefs::frame {

std::uint64_t xxh3(codec::ByteView bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t xxh3_of_text(std::string_view text, std::uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

RunningXxh3::RunningXxh3(std::uint64_t seed) : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_64bits_reset_withSeed(state_.get(), seed);
}

void RunningXxh3::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

void RunningXxh3::add(codec::ByteView bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}

std::uint64_t RunningXxh3::value() const {
  return XXH3_64bits_digest(state_.get());
}

}  // namespace cframefs::frame
