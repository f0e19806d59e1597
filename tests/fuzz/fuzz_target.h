// How a fuzz target is written:
//
//   FUZZ_TARGET(NAME)(const std::uint8_t* data, std::size_t size) { ...; return 0; }
//
// With -Dfuzzers=true it is what libFuzzer calls, one target a program; else it is known to replay_main.cc by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace cframefs::test {

using FuzzTarget = int (*)(const std::uint8_t* data, std::size_t size);

/// Those that are linked in. Filled before main().
inline std::map<std::string, FuzzTarget>& fuzz_targets() {
  static std::map<std::string, FuzzTarget> targets;
  return targets;
}

inline FuzzTarget known_as(const char* name, FuzzTarget target) {
  fuzz_targets()[name] = target;
  return target;
}

}  // namespace cframefs::test

#ifdef CFRAMEFS_LIBFUZZER
#define FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput
#else
#define FUZZ_TARGET(name)                                                                            \
  static int fuzz_##name(const std::uint8_t* data, std::size_t size);                                \
  [[maybe_unused]] static const auto target_##name = ::cframefs::test::known_as(#name, fuzz_##name); \
  static int fuzz_##name
#endif
