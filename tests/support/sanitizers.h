// How much work a test does where a sanitizer watches it. A step then takes about ten times as long, so a test of
// very many steps takes a fourth of them. The build without a sanitizer takes all. A fault that only a sanitizer shows,
// in one of the other steps, is not seen.
#pragma once

#include <cstdint>

namespace cframefs::test {

#if defined(__has_feature)
inline constexpr bool kHasAddressSanitizer = __has_feature(address_sanitizer);
inline constexpr bool kHasOtherSanitizer = __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer);
#else
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kHasAddressSanitizer = true;
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kHasOtherSanitizer = true;
#else
inline constexpr bool kHasOtherSanitizer = false;
#endif
#endif
/// True if the program is built with the address, thread or memory sanitizer.
inline constexpr bool kIsSanitized = kHasAddressSanitizer || kHasOtherSanitizer;

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
