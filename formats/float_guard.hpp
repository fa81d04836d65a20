// The IEEE default environment (subnormals kept, no traps) while host arithmetic is used.
#pragma once
#if defined(__SSE__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#else
#include <cfenv>
#endif

namespace numemu {

enum class HostRounding : unsigned char { nearest, toward_zero, up, down };

/// Sets the thread's floating-point control to the IEEE default with exceptions masked, and its
/// rounding; restores it at scope end. With another rounding than nearest, the arithmetic must
/// be in another function than the guard: compilers may move operations within one.
class FloatGuard {
 public:
  FloatGuard(const FloatGuard&) = delete;
  FloatGuard& operator=(const FloatGuard&) = delete;

#if defined(__SSE__)
  // Writing MXCSR is slow and almost never needed, so it is compared first.
  explicit FloatGuard(HostRounding rounding = HostRounding::nearest)
      : saved_(_mm_getcsr()), wanted_(kDefault | direction(rounding)) {
    if ((saved_ & kControl) != wanted_) _mm_setcsr((saved_ & ~kControl) | wanted_);
  }
  ~FloatGuard() {
    if ((saved_ & kControl) != wanted_) _mm_setcsr(saved_);
  }

 private:
  static constexpr unsigned kControl = 0xffc0;  // FTZ, rounding, six exception masks, DAZ
  static constexpr unsigned kDefault = 0x1f80;  // only the masks
  static constexpr unsigned direction(HostRounding rounding) {
    constexpr unsigned kDirections[] = {0, 0x6000, 0x4000, 0x2000};  // MXCSR.RC
    return kDirections[static_cast<unsigned>(rounding)];
  }
  unsigned saved_, wanted_;
#elif defined(__aarch64__)
  explicit FloatGuard(HostRounding rounding = HostRounding::nearest) {
    constexpr std::uint64_t kDirections[] = {0, 0xc00000, 0x400000, 0x800000};  // FPCR.RMode
    wanted_ = kDirections[static_cast<unsigned>(rounding)];
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    if (saved_ != wanted_) asm volatile("msr fpcr, %0" : : "r"(wanted_) : "memory");
  }
  ~FloatGuard() {
    if (saved_ != wanted_) asm volatile("msr fpcr, %0" : : "r"(saved_) : "memory");
  }

 private:
  std::uint64_t saved_, wanted_;
#else
  explicit FloatGuard(HostRounding rounding = HostRounding::nearest) {
    constexpr int kDirections[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
    std::fesetround(kDirections[static_cast<unsigned>(rounding)]);
  }
  ~FloatGuard() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
#endif
};

}  // namespace numemu
