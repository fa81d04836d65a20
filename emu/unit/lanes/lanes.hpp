// Fast paths of units that are chains of float32 multiply-adds with x86's rules, and of what they
// share with other lane kernels.
#pragma once
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kLaneFields[] = {"core",
                                                   "k",
                                                   "order",
                                                   "c_entry",
                                                   "accumulator.format",
                                                   "c",
                                                   "d",
                                                   "chain.chains",
                                                   "subnormals.flush_inputs",
                                                   "subnormals.flush_c",
                                                   "subnormals.flush_results",
                                                   "nan",
                                                   "nan_code"};

/// Computes the product as ReferenceDot does. False, with nothing written, where it does not cover
/// the case. It covers chains into float32, rounded to nearest even: one chain, k ascending or odd
/// before even; or two over even and odd k from +0, added, and then C, once per instruction;
/// subnormals kept everywhere or flushed everywhere. Throws Error as Unit::multiply does.
bool multiply_lanes(const UnitDescription&, const Gemm&);

/// The fields of a description that the next one understands.
inline constexpr std::string_view kHalfLaneFields[] = {
    "core", "k", "accumulator.format", "c", "d", "nan", "nan_code"};

/// multiply_lanes() for single chains into float16, on processors with AVX512-FP16.
bool multiply_halves(const UnitDescription&, const Gemm&);

/// C, D and the register are float32.
bool float32_register(const UnitDescription&);

// Subnormal numbers flushed by the processor itself, as x86 does it, for as long as a scope lasts.

/// Reads subnormal operands as zeros of their sign and makes results that are tiny after rounding
/// zeros of their sign (MXCSR DAZ and FTZ). The arithmetic must be in another function than the
/// guard: compilers may move operations within one.
class FlushGuard {
 public:
  FlushGuard(const FlushGuard&) = delete;
  FlushGuard& operator=(const FlushGuard&) = delete;
#if defined(__SSE__)
  static constexpr bool kSupported = true;
  explicit FlushGuard(bool flush) : saved_(_mm_getcsr()) {
    if (flush) _mm_setcsr(saved_ | kFlushes);
  }
  ~FlushGuard() { _mm_setcsr(saved_); }

 private:
  static constexpr unsigned kFlushes = 0x8040;  // FTZ, DAZ
  unsigned saved_;
#else
  // Arm's FZ judges before rounding, so nothing else than x86 computes x86's bits.
  static constexpr bool kSupported = false;
  explicit FlushGuard(bool) {}
#endif
};

}  // namespace numemu::unit
