// The vector loops of float32 conversions, dispatched at run time to the best instruction set.
#pragma once
#include <algorithm>
#include <cstdint>

#include "formats/simd/plan.hpp"

namespace numemu::simd {

/// Where a loop reads and writes. Every output may be absent; lengths are n elements.
struct Arrays {
  const float* x = nullptr;
  std::int64_t n = 0;
  float* values = nullptr;           ///< y = decode(encode(x)); may be x itself
  std::uint8_t* codes8 = nullptr;    ///< formats of at most 8 bits
  std::uint16_t* codes16 = nullptr;  ///< formats of 9 to 16 bits
  std::uint32_t* codes32 = nullptr;  ///< formats of 17 to 32 bits, in their containers
  std::uint8_t* flags = nullptr;
  const std::uint32_t* random = nullptr;  ///< one word per element, r in its low bits
  const std::uint8_t* random8 = nullptr;  ///< instead one byte per element, r in its top bits
  bool stream = false;                    ///< values and codes32 bypass the caches
  bool ask = false;  ///< x comes from memory: convert_vectors() asks for it ahead of the loop

  void set_output(float* out) { values = out; }
  void set_output(std::uint8_t* out) { codes8 = out; }
  void set_output(std::uint16_t* out) { codes16 = out; }
  void set_output(std::uint32_t* out) { codes32 = out; }
};

/// Exactly one of values, codes8 and codes16 is given (codes32: shared_exponent.hpp). The host's
/// floating-point control must be the IEEE default except for its rounding, which is the plan's
/// (FloatGuard).
void convert_vectors(const Plan&, const Arrays&);

/// How many bytes of `flags` have each Flag bit, into counts[0..5): NX UF OF DZ NV.
void count_flags(const std::uint8_t* flags, std::int64_t n, std::int64_t counts[5]);

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
  std::uint8_t codes8[kMost], flags[kMost], random8[kMost] = {};
  std::uint16_t codes16[kMost];
  std::copy_n(to.x + whole, rest, x);
  if (to.random != nullptr) std::copy_n(to.random + whole, rest, random);
  if (to.random8 != nullptr) std::copy_n(to.random8 + whole, rest, random8);
  run(Arrays{.x = x,
             .n = step,
             .values = to.values ? values : nullptr,
             .codes8 = to.codes8 ? codes8 : nullptr,
             .codes16 = to.codes16 ? codes16 : nullptr,
             .codes32 = to.codes32 ? codes32 : nullptr,
             .flags = to.flags ? flags : nullptr,
             .random = to.random ? random : nullptr,
             .random8 = to.random8 ? random8 : nullptr});
  if (to.values) std::copy_n(values, rest, to.values + whole);
  if (to.codes8) std::copy_n(codes8, rest, to.codes8 + whole);
  if (to.codes16) std::copy_n(codes16, rest, to.codes16 + whole);
  if (to.codes32) std::copy_n(codes32, rest, to.codes32 + whole);
  if (to.flags) std::copy_n(flags, rest, to.flags + whole);
}

/// n results of 4 bytes from `out` on: more than a second-level cache holds, and aligned to a cache
/// line, as streaming stores require.
inline bool worth_streaming(const void* out, std::int64_t n) {
  constexpr std::int64_t kLeast = std::int64_t{1} << 22;
  constexpr std::uintptr_t kLine = 64;
  return n >= kLeast && reinterpret_cast<std::uintptr_t>(out) % kLine == 0;
}

/// Whether arrays of n elements come from memory, so that it pays to ask for them early.
inline bool worth_asking(std::int64_t n) { return n >= std::int64_t{1} << 20; }
/// Asks for n elements of x that are read soon. Loops that compute more than they read leave the
/// memory idle in between, and few loads are under way at a time.
/// (Inlined, because gcc takes a function that asks only for one without effect, and leaves out its
/// calls.)
[[gnu::always_inline]] inline void ask_for(const float* x, std::int64_t n) {
  constexpr std::int64_t kLine = 16;
  for (std::int64_t i = 0; i < n; i += kLine) __builtin_prefetch(x + i);
}

}  // namespace numemu::simd
