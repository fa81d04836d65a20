// Dot products of VEX-encoded instructions, for comparison with the emulated ones.
#include <cstdint>
#include <cstring>

#include "tests/oracle/mma/x86_instructions.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace numemu::oracle::mma {

#if defined(__x86_64__)
namespace {

constexpr int kTile = 16, kHalf = 8;

/// Lane j: the 4 / size elements of column first + j of B[k][16].
void half_of_columns(const void* b, int size, int first, std::uint32_t* lanes) {
  const auto* in = static_cast<const std::uint8_t*>(b);
  auto* out = reinterpret_cast<std::uint8_t*>(lanes);
  for (int k = 0; k < 4 / size; ++k)
    for (int j = 0; j < kHalf; ++j)
      std::memcpy(out + 4 * j + k * size, in + (k * kTile + first + j) * size,
                  static_cast<std::size_t>(size));
}

// A lambda has not the target of the function around it: each instruction has a type.

struct SaturatingPairs {
  static constexpr int kSize = 1;
  __attribute__((target("avx2"))) static __m256i add(__m256i sum, __m256i a, __m256i b) {
    const __m256i pairs = _mm256_maddubs_epi16(a, b);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

struct Busd {
  static constexpr int kSize = 1;
  __attribute__((target("avx2,avxvnni"))) static __m256i add(__m256i sum, __m256i a, __m256i b) {
    return _mm256_dpbusd_avx_epi32(sum, a, b);
  }
};

struct Busds {
  static constexpr int kSize = 1;
  __attribute__((target("avx2,avxvnni"))) static __m256i add(__m256i sum, __m256i a, __m256i b) {
    return _mm256_dpbusds_avx_epi32(sum, a, b);
  }
};

struct Wssd {
  static constexpr int kSize = 2;
  __attribute__((target("avx2,avxvnni"))) static __m256i add(__m256i sum, __m256i a, __m256i b) {
    return _mm256_dpwssd_avx_epi32(sum, a, b);
  }
};

struct Wssds {
  static constexpr int kSize = 2;
  __attribute__((target("avx2,avxvnni"))) static __m256i add(__m256i sum, __m256i a, __m256i b) {
    return _mm256_dpwssds_avx_epi32(sum, a, b);
  }
};

/// Row i: its elements of A in every lane, times the columns.
template <class Instruction>
__attribute__((target("avx2"))) void rows_of_halves(const void* a, const void* b, const void* c,
                                                    void* d) {
  alignas(32) std::uint32_t lanes[kHalf];
  for (int first = 0; first < kTile; first += kHalf) {
    half_of_columns(b, Instruction::kSize, first, lanes);
    const __m256i columns = _mm256_load_si256(reinterpret_cast<const __m256i*>(lanes));
    for (int i = 0; i < kTile; ++i) {
      std::uint32_t row = 0;
      std::memcpy(&row, static_cast<const std::uint8_t*>(a) + 4 * i, sizeof row);
      const std::int64_t at = kTile * i + first;
      const __m256i sum = _mm256_loadu_si256(
          reinterpret_cast<const __m256i*>(static_cast<const std::uint32_t*>(c) + at));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(static_cast<std::uint32_t*>(d) + at),
                          Instruction::add(sum, _mm256_set1_epi32(static_cast<int>(row)), columns));
    }
  }
}

}  // namespace

void run_vpmaddubsw(const void* a, const void* b, const void* c, void* d) {
  rows_of_halves<SaturatingPairs>(a, b, c, d);
}
void run_vex_vpdpbusd(const void* a, const void* b, const void* c, void* d) {
  rows_of_halves<Busd>(a, b, c, d);
}
void run_vex_vpdpbusds(const void* a, const void* b, const void* c, void* d) {
  rows_of_halves<Busds>(a, b, c, d);
}
void run_vex_vpdpwssd(const void* a, const void* b, const void* c, void* d) {
  rows_of_halves<Wssd>(a, b, c, d);
}
void run_vex_vpdpwssds(const void* a, const void* b, const void* c, void* d) {
  rows_of_halves<Wssds>(a, b, c, d);
}
#else
void run_vpmaddubsw(const void*, const void*, const void*, void*) {}
void run_vex_vpdpbusd(const void*, const void*, const void*, void*) {}
void run_vex_vpdpbusds(const void*, const void*, const void*, void*) {}
void run_vex_vpdpwssd(const void*, const void*, const void*, void*) {}
void run_vex_vpdpwssds(const void*, const void*, const void*, void*) {}
#endif

}  // namespace numemu::oracle::mma
