// Runs a test for every vector instruction set of this machine, and once without vectors.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace cframefs {

template <class Test>
void for_each_vector_target(const Test& test) {
  // 0: the plain code, the last entry of each of Highway's function tables.
  for (std::int64_t left = hwy::SupportedTargets(), target = 0;; left &= left - 1) {
    hwy::GetChosenTarget().Update(target);
    SCOPED_TRACE(target == 0 ? "no vectors" : hwy::TargetName(target));
    test();
    if (left == 0) break;
    target = left & -left;
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace cframefs
