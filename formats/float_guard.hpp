// The IEEE default environment (nearest even, subnormals kept) while host arithmetic is used.
#pragma once
#if defined(__SSE__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#else
#include <cfenv>
#endif

namespace numemu {

/// Sets the thread's floating-point control to the IEEE default with exceptions masked; restores it
/// at scope end.
class FloatGuard {
 public:
  FloatGuard(const FloatGuard&) = delete;
  FloatGuard& operator=(const FloatGuard&) = delete;

#if defined(__SSE__)
  // Writing MXCSR is slow and almost never needed, so it is compared first.
  FloatGuard() : saved_(_mm_getcsr()) {
    if ((saved_ & kControl) != kDefault) _mm_setcsr((saved_ & ~kControl) | kDefault);
  }
  ~FloatGuard() {
    if ((saved_ & kControl) != kDefault) _mm_setcsr(saved_);
  }

 private:
  static constexpr unsigned kControl = 0xffc0;  // FTZ, rounding, six exception masks, DAZ
  static constexpr unsigned kDefault = 0x1f80;  // only the masks
  unsigned saved_;
#elif defined(__aarch64__)
  FloatGuard() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    if (saved_ != 0) asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}) : "memory");
  }
  ~FloatGuard() {
    if (saved_ != 0) asm volatile("msr fpcr, %0" : : "r"(saved_) : "memory");
  }

 private:
  std::uint64_t saved_;
#else
  FloatGuard() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatGuard() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
#endif
};

}  // namespace numemu
