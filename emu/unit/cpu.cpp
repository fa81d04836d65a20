// CPUID beside what Highway found and what it was told.
#include "emu/unit/cpu.hpp"

#include <hwy/highway.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace numemu::unit {

bool has_wide_vectors() { return (hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX3_DL)) != 0; }

#if defined(__x86_64__)
bool has_wide_float16() {
  constexpr unsigned kFloat16 = 1u << 23;  // CPUID leaf 7, EDX
  unsigned a = 0, b = 0, c = 0, d = 0;
  return has_wide_vectors() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kFloat16) != 0;
}
#else
bool has_wide_float16() { return false; }
#endif

}  // namespace numemu::unit
