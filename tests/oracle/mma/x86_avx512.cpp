// AVX-512 dot products and multiply-adds, for comparison with the emulated ones.
#include <cstdint>
#include <cstring>

#include "tests/oracle/mma/x86_instructions.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace numemu::oracle::mma {

#if defined(__x86_64__)
namespace {

constexpr int kLanes = 16;

/// Lane j: the 4 / size elements of column j of B[k][16].
void columns_of(const void* b, int size, std::uint32_t* lanes) {
  const auto* in = static_cast<const std::uint8_t*>(b);
  auto* out = reinterpret_cast<std::uint8_t*>(lanes);
  for (int k = 0; k < 4 / size; ++k)
    for (int j = 0; j < kLanes; ++j)
      std::memcpy(out + 4 * j + k * size, in + (k * kLanes + j) * size,
                  static_cast<std::size_t>(size));
}

enum class Dot { bf16, busd, busds, wssd, wssds };

/// Row i: its elements of A in every lane, times the columns.
template <Dot kDot>
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,avx512vnni"))) void rows_of_dots(
    const void* a, const void* b, const void* c, void* d) {
  constexpr bool kBytes = kDot == Dot::busd || kDot == Dot::busds;
  alignas(64) std::uint32_t lanes[kLanes];
  columns_of(b, kBytes ? 1 : 2, lanes);
  const __m512i columns = _mm512_load_si512(lanes);
  for (int i = 0; i < kLanes; ++i) {
    std::uint32_t row = 0;
    std::memcpy(&row, static_cast<const std::uint8_t*>(a) + 4 * i, sizeof row);
    const __m512i elements = _mm512_set1_epi32(static_cast<int>(row));
    __m512i sum = _mm512_loadu_si512(static_cast<const std::uint32_t*>(c) + kLanes * i);
    if constexpr (kDot == Dot::bf16)
      sum = _mm512_castps_si512(
          _mm512_dpbf16_ps(_mm512_castsi512_ps(sum), (__m512bh)elements, (__m512bh)columns));
    if constexpr (kDot == Dot::busd) sum = _mm512_dpbusd_epi32(sum, elements, columns);
    if constexpr (kDot == Dot::busds) sum = _mm512_dpbusds_epi32(sum, elements, columns);
    if constexpr (kDot == Dot::wssd) sum = _mm512_dpwssd_epi32(sum, elements, columns);
    if constexpr (kDot == Dot::wssds) sum = _mm512_dpwssds_epi32(sum, elements, columns);
    _mm512_storeu_si512(static_cast<std::uint32_t*>(d) + kLanes * i, sum);
  }
}

}  // namespace

void run_vdpbf16ps(const void* a, const void* b, const void* c, void* d) {
  rows_of_dots<Dot::bf16>(a, b, c, d);
}
void run_vpdpbusd(const void* a, const void* b, const void* c, void* d) {
  rows_of_dots<Dot::busd>(a, b, c, d);
}
void run_vpdpbusds(const void* a, const void* b, const void* c, void* d) {
  rows_of_dots<Dot::busds>(a, b, c, d);
}
void run_vpdpwssd(const void* a, const void* b, const void* c, void* d) {
  rows_of_dots<Dot::wssd>(a, b, c, d);
}
void run_vpdpwssds(const void* a, const void* b, const void* c, void* d) {
  rows_of_dots<Dot::wssds>(a, b, c, d);
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512fp16"))) void run_vfmadd231ph(const void* a,
                                                                                     const void* b,
                                                                                     const void* c,
                                                                                     void* d) {
  const __m256i columns = _mm256_loadu_si256(static_cast<const __m256i*>(b));
  for (int i = 0; i < kLanes; ++i) {
    const __m256i element = _mm256_set1_epi16(static_cast<const std::int16_t*>(a)[i]);
    __m256i sum = _mm256_loadu_si256(static_cast<const __m256i*>(c) + i);
    // Written out, as compilers choose among 132, 213 and 231 and swap the factors: which NaN
    // survives depends on both.
    asm("vfmadd231ph %2, %1, %0" : "+v"(sum) : "v"(element), "v"(columns));
    _mm256_storeu_si256(static_cast<__m256i*>(d) + i, sum);
  }
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void run_vcvtneps2bf16(
    const float* x, std::uint16_t* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const __m256bh halves = _mm512_cvtneps_pbh(_mm512_loadu_ps(x + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), (__m256i)halves);
  }
}
#else
void run_vdpbf16ps(const void*, const void*, const void*, void*) {}
void run_vpdpbusd(const void*, const void*, const void*, void*) {}
void run_vpdpbusds(const void*, const void*, const void*, void*) {}
void run_vpdpwssd(const void*, const void*, const void*, void*) {}
void run_vpdpwssds(const void*, const void*, const void*, void*) {}
void run_vfmadd231ph(const void*, const void*, const void*, void*) {}
void run_vcvtneps2bf16(const float*, std::uint16_t*, std::int64_t) {}
#endif

}  // namespace numemu::oracle::mma
