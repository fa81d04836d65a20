// Lets a loop that takes only whole steps of elements run over any number of them.
#pragma once
#include <algorithm>
#include <cstdint>

#include "formats/simd/convert_loops.hpp"

namespace numemu::simd {

/// Vectors of a step, so that four rows of codes or flags leave as one row of bytes.
inline constexpr int kStepVectors = 4;

/// Calls run(arrays) for the whole steps of `to`, then for the rest in a padded copy of one step.
/// So a loop holds its long body once, which halves the time to compile it.
template <class Run>
void run_whole_steps(const Arrays& to, std::int64_t step, const Run& run) {
  const std::int64_t rest = to.n % step, whole = to.n - rest;
  Arrays steps = to;
  steps.n = whole;
  if (whole != 0) run(steps);
  if (rest == 0) return;
  constexpr int kMost = kStepVectors * 16;
  alignas(64) float x[kMost] = {}, values[kMost];
  alignas(64) std::uint32_t random[kMost] = {}, codes32[kMost];
  std::uint8_t codes8[kMost], flags[kMost];
  std::uint16_t codes16[kMost];
  std::copy_n(to.x + whole, rest, x);
  if (to.random != nullptr) std::copy_n(to.random + whole, rest, random);
  run(Arrays{.x = x,
             .n = step,
             .values = to.values ? values : nullptr,
             .codes8 = to.codes8 ? codes8 : nullptr,
             .codes16 = to.codes16 ? codes16 : nullptr,
             .codes32 = to.codes32 ? codes32 : nullptr,
             .flags = to.flags ? flags : nullptr,
             .random = random});
  if (to.values) std::copy_n(values, rest, to.values + whole);
  if (to.codes8) std::copy_n(codes8, rest, to.codes8 + whole);
  if (to.codes16) std::copy_n(codes16, rest, to.codes16 + whole);
  if (to.codes32) std::copy_n(codes32, rest, to.codes32 + whole);
  if (to.flags) std::copy_n(flags, rest, to.flags + whole);
}

}  // namespace numemu::simd
