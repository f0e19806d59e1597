// How much work a test does where a sanitizer watches it. A step then takes about ten times as long. The build without
// a sanitizer has taken all steps; what a sanitizer finds, it finds in a fourth of them, too.
#pragma once

#include <cstdint>

namespace cframefs::test {

/// True if the program is built with the address, thread or memory sanitizer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
#else
inline constexpr bool kIsSanitized = false;
#endif

/// Returns the number of steps, of `count`, that a test takes; and what it may expect of them.
template <class Number>
constexpr Number steps(Number count) {
  return kIsSanitized ? count / 4 : count;
}

/// Returns true if a test that goes through many cases takes the one of this number. The fourth that it takes has cases
/// of all kinds, however often a kind comes again.
constexpr bool takes_case(std::uint64_t number) {
  constexpr std::uint32_t kGoldenRatio = 2654435769;
  return !kIsSanitized || static_cast<std::uint32_t>(number) * kGoldenRatio >> 30 == 0;
}

}  // namespace cframefs::test
