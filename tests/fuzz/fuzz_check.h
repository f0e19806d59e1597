// What a fuzz target claims to hold; a false claim stops the fuzzer like a crash.
#pragma once

#include <cstdio>
#include <cstdlib>

#define FUZZ_CHECK(claim)                                                      \
  do {                                                                         \
    if (!(claim)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #claim); \
      std::abort();                                                            \
    }                                                                          \
  } while (false)
