// Loops over the elements of tensors: static chunks on OpenMP threads, vectorised, one neutral NaN.
#pragma once
#include <bit>
#include <cstdint>

#include "formats/float_guard.hpp"

namespace numemu::net {

/// Below this many elements starting the threads costs more than the loop (measured: about 5 us on
/// two cores).
inline constexpr std::int64_t kSerialElements = 8192;

/// x, or the neutral NaN for any NaN: which payload an addition passes on differs between CPUs.
inline float neutral(float x) { return x == x ? x : std::bit_cast<float>(0x7fc00000u); }

/// f(i) for i in [0, n); the calls must not depend on each other.
template <class F>
void for_each_element(std::int64_t n, F&& f) {
#pragma omp parallel if (n > kSerialElements)
  {
    const FloatGuard guard;
#pragma omp for simd schedule(static)
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
}

/// f(i) for i in [0, n), each call worth about `elements` elements of work.
template <class F>
void for_each_row(std::int64_t n, std::int64_t elements, F&& f) {
#pragma omp parallel if (n > 1 && n * elements > kSerialElements)
  {
    const FloatGuard guard;
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
}

}  // namespace numemu::net
