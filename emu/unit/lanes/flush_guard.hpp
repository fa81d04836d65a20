// Subnormal numbers flushed by the processor itself, as x86 does it, for as long as a scope lasts.
#pragma once
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace numemu::unit {

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
