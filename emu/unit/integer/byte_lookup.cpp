// Lookups in tables of 256 bytes, 64 codes at a time: AVX-512 VBMI.
#include "emu/unit/cpu.hpp"
#include "emu/unit/integer/convert.hpp"
#include "formats/error.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

namespace numemu::unit {
namespace {

struct Table {
  __m512i quarter[4];
};

__attribute__((target("avx512f,avx512bw,avx512vbmi"))) inline Table load_table(
    const std::uint8_t* table) {
  return {{_mm512_loadu_si512(table), _mm512_loadu_si512(table + 64),
           _mm512_loadu_si512(table + 128), _mm512_loadu_si512(table + 192)}};
}

/// A permutation of two registers looks at the low 7 bits of a code; its top bit, as a mask,
/// chooses between two of them.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) inline __m512i look_up(const Table& t,
                                                                              __m512i codes) {
  const __m512i low = _mm512_permutex2var_epi8(t.quarter[0], codes, t.quarter[1]);
  const __m512i high = _mm512_permutex2var_epi8(t.quarter[2], codes, t.quarter[3]);
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(codes), low, high);
}

__attribute__((target("avx512f,avx512bw,avx512vbmi"))) inline __mmask64 first(std::int64_t count) {
  return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
}

}  // namespace

bool has_byte_lookup() { return has_wide_vectors() && __builtin_cpu_supports("avx512vbmi"); }

__attribute__((target("avx512f,avx512bw,avx512vbmi"))) void look_up_bytes(const std::uint8_t* codes,
                                                                          std::int64_t count,
                                                                          const std::uint8_t* table,
                                                                          std::uint8_t* to) {
  const Table t = load_table(table);
  for (std::int64_t i = 0; i < count; i += 64) {
    const __mmask64 valid = first(count - i);
    const __m512i x = _mm512_maskz_loadu_epi8(valid, codes + i);
    _mm512_mask_storeu_epi8(to + i, valid, look_up(t, x));
  }
}

__attribute__((target("avx512f,avx512bw,avx512vbmi"))) ByteRange range_of_bytes(
    const std::uint8_t* codes, std::int64_t count, const std::vector<std::uint8_t>& low_table,
    const std::vector<std::uint8_t>& high_table) {
  const Table low = load_table(low_table.data()), high = load_table(high_table.data());
  __m512i smallest = _mm512_set1_epi8(-1), largest = _mm512_setzero_si512();
  for (std::int64_t i = 0; i < count; i += 64) {
    const __mmask64 valid = first(count - i);
    const __m512i x = _mm512_maskz_loadu_epi8(valid, codes + i);
    smallest = _mm512_mask_min_epu8(smallest, valid, smallest, look_up(low, x));
    largest = _mm512_mask_max_epu8(largest, valid, largest, look_up(high, x));
  }
  alignas(64) std::uint8_t lows[64], highs[64];
  _mm512_store_si512(lows, smallest);
  _mm512_store_si512(highs, largest);
  ByteRange range;
  for (int i = 0; i < 64; ++i) {
    range.low = lows[i] < range.low ? lows[i] : range.low;
    range.high = highs[i] > range.high ? highs[i] : range.high;
  }
  return range;
}

}  // namespace numemu::unit
#else
namespace numemu::unit {

bool has_byte_lookup() { return false; }

void look_up_bytes(const std::uint8_t*, std::int64_t, const std::uint8_t*, std::uint8_t*) {
  throw Error("byte lookup on a CPU without it, expected has_byte_lookup()");
}

ByteRange range_of_bytes(const std::uint8_t*, std::int64_t, const std::vector<std::uint8_t>&,
                         const std::vector<std::uint8_t>&) {
  throw Error("byte lookup on a CPU without it, expected has_byte_lookup()");
}

}  // namespace numemu::unit
#endif
