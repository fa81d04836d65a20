// CPUID beside what Highway chose.
#include "emu/unit/cpu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/highway.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {

bool IsWide() { return HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL; }

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(IsWide);

bool has_least_vectors() { return (hwy::SupportedTargets() & HWY_STATIC_TARGET) != 0; }

// Through the dispatch, whose choice is kept: to ask Highway for its targets executes CPUID, which
// in a virtual machine leaves the guest and takes longer than a small product.
bool has_wide_vectors() { return HWY_DYNAMIC_DISPATCH(IsWide)(); }

#if defined(__x86_64__)
namespace {

bool cpu_has_float16() {
  constexpr unsigned kFloat16 = 1u << 23;  // CPUID leaf 7, EDX
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kFloat16) != 0;
}

}  // namespace

bool has_wide_float16() {
  static const bool has = cpu_has_float16();
  return has && has_wide_vectors();
}
#else
bool has_wide_float16() { return false; }
#endif

}  // namespace numemu::unit
#endif  // HWY_ONCE
