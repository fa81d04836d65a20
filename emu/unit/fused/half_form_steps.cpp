// One step of the half form in AVX512-FP16: scale, multiply, truncate to int16, add in int32.
#include "emu/unit/fused/half_form_steps.hpp"

#include "emu/unit/cpu.hpp"

// clang before 16 has the intrinsics only where the whole file is compiled for the instructions.
#if defined(__x86_64__) && (!defined(__clang__) || __clang_major__ >= 16)
#include <immintrin.h>

#include <cstring>

#if !defined(__clang__)
// gcc 12 warns of the undefined vectors inside its own intrinsics (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace numemu::unit {
namespace {

constexpr int kVectors = 4;      ///< of 16 lanes
constexpr int kField = 1 << 23;  ///< one in a float32 exponent field

/// Constants in vectors, so that a row loads them.
struct Vectors {
  __m512i power_mask, magnitude_mask, no_product, field_offset, exponent_of_none, fast_from;
  __m512i unit_top;   ///< minus the bits of 2^E: those of 2^(F - E)
  __m512i scale_top;  ///< minus the bits of 2^E: a float16 field at bit 23
  __m512i fraction;   ///< subtracted from the bits of 2^E: those of 2^(E - F)
  __m512i kept, ones;
};

__attribute__((target("avx512fp16,avx512vnni"))) inline Vectors vectors_of(
    const HalfFormConstants& s) {
  Vectors v;
  v.power_mask = _mm512_set1_epi32(0x7f800000);
  v.magnitude_mask = _mm512_set1_epi32(0x7fffffff);
  v.no_product = _mm512_set1_epi8(127);
  v.field_offset = _mm512_set1_epi8(static_cast<char>(s.field_offset));
  // A step without products has the exponent -107, no larger than that of any C.
  v.exponent_of_none = _mm512_set1_epi8(20);
  v.fast_from = _mm512_set1_epi8(static_cast<char>(s.fast_from));
  // 2^(F - E) has the field 254 + F - (E + 127); the difference is taken modulo 2^32.
  const auto top = static_cast<std::uint32_t>(254 + s.fraction_bits) << 23;
  v.unit_top = _mm512_set1_epi32(static_cast<int>(top));
  // The float16 field of 2^t, t = F - E - power, is t + 15.
  v.scale_top = _mm512_set1_epi32((15 + s.fraction_bits - s.power + 127) * kField);
  v.fraction = _mm512_set1_epi32(s.fraction_bits * kField);
  v.kept = _mm512_set1_epi32(static_cast<int>(s.kept));
  v.ones = _mm512_set1_epi16(1);
  return v;
}

/// One vector of lanes between the step's beginning and its end.
struct Aligned {
  __m512i largest;     ///< bits of 2^E
  __m512i c;           ///< C cut, in units of 2^(E - F)
  __m512h scale;       ///< 2^(F - E - power), twice per lane
  __m512h more_scale;  ///< slow steps: a second factor,
  __m512i shift;       ///< and a third as a shift of the sum
};

/// Largest byte sums of a row, 127 where no product is.
__attribute__((target("avx512fp16,avx512vnni"))) inline __m512i largest_bytes(
    const Vectors& v, int group, const std::uint32_t* exponents,
    const std::uint8_t* lane_exponents) {
  __m512i most = v.no_product;
  for (int k = 0; k < group; ++k) {
    const __m512i b = _mm512_load_si512(lane_exponents + k * kHalfFormWidth);
    const __m512i a = _mm512_set1_epi32(static_cast<int>(exponents[k]));
    most = _mm512_max_epu8(most, _mm512_add_epi8(a, b));
  }
  return most;
}

/// The bits of the power of two with C's exponent, 0 for zero. Every non-zero float16 is at least
/// 2^-24 and counts with at least 2^-14.
template <bool kHalf>
__attribute__((target("avx512fp16,avx512vnni"))) inline __m512i power_of(const Vectors& v,
                                                                         __m512 c) {
  const __m512i power = _mm512_and_si512(_mm512_castps_si512(c), v.power_mask);
  if constexpr (!kHalf) return power;
  const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(c), v.magnitude_mask);
  const __m512 raised = _mm512_mul_ps(_mm512_castsi512_ps(magnitude), _mm512_set1_ps(0x1p10f));
  return _mm512_max_epi32(power,
                          _mm512_castps_si512(_mm512_min_ps(raised, _mm512_set1_ps(0x1p-14f))));
}

/// 2^(field - 15) as float16, twice per lane, from exponent fields (0..30) at bit 23; field 0 is
/// +0.
__attribute__((target("avx512fp16,avx512vnni"))) inline __m512h half_powers(__m512i fields) {
  return _mm512_castsi512_ph(
      _mm512_or_si512(_mm512_slli_epi32(fields, 3), _mm512_srli_epi32(fields, 13)));
}

template <bool kHalf, bool kSlow>
__attribute__((target("avx512fp16,avx512vnni"))) inline Aligned begin(const Vectors& v,
                                                                      const std::uint8_t* fields,
                                                                      const float* state) {
  Aligned x;
  const __m512 c = _mm512_load_ps(state);
  const __m512i product = _mm512_slli_epi32(
      _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(fields))), 23);
  x.largest = _mm512_max_epi32(product, power_of<kHalf>(v, c));
  const __m512i unit = _mm512_sub_epi32(v.unit_top, x.largest);
  x.c = _mm512_cvttps_epi32(_mm512_mul_ps(c, _mm512_castsi512_ps(unit)));
  __m512i field =
      _mm512_max_epi32(_mm512_sub_epi32(v.scale_top, x.largest), _mm512_setzero_si512());
  if constexpr (kSlow) {
    const __m512i first = _mm512_min_epi32(field, _mm512_set1_epi32(30 * kField));
    const __m512i rest = _mm512_sub_epi32(field, first);
    const __m512i second = _mm512_min_epi32(rest, _mm512_set1_epi32(15 * kField));
    x.more_scale = half_powers(_mm512_add_epi32(second, _mm512_set1_epi32(15 * kField)));
    x.shift = _mm512_srli_epi32(_mm512_sub_epi32(rest, second), 23);
    field = first;
  }
  x.scale = half_powers(field);
  return x;
}

/// The sum with two more products per lane.
template <bool kSlow>
__attribute__((target("avx512fp16,avx512vnni"))) inline __m512i accumulate(
    const Vectors& v, __m512h a, const std::uint32_t* b, const Aligned& x, __m512i sum) {
  __m512h product = _mm512_mul_ph(_mm512_mul_ph(a, _mm512_load_ph(b)), x.scale);
  if constexpr (kSlow) product = _mm512_mul_ph(product, x.more_scale);
  return _mm512_dpwssd_epi32(sum, _mm512_cvttph_epi16(product), v.ones);
}

template <bool kHalf>
__attribute__((target("avx512fp16,avx512vnni"))) inline void end(const Vectors& v, const Aligned& x,
                                                                 __m512i sum, float* state) {
  const __m512i unit = _mm512_sub_epi32(x.largest, v.fraction);
  const __m512 exact = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_castsi512_ps(unit));
  if constexpr (kHalf) {
    // A register that overflowed stays infinite; the sum is then no number of use.
    const __m512 before = _mm512_load_ps(state);
    const __mmask16 infinite = _mm512_cmpeq_epi32_mask(
        _mm512_and_si512(_mm512_castps_si512(before), v.magnitude_mask), v.power_mask);
    const __m512 rounded = _mm512_cvtph_ps(_mm512_cvtps_ph(exact, _MM_FROUND_TO_NEAREST_INT));
    _mm512_store_ps(state, _mm512_mask_mov_ps(rounded, infinite, before));
  } else {
    _mm512_store_si512(state, _mm512_and_si512(_mm512_castps_si512(exact), v.kept));
  }
}

template <bool kHalf, bool kSlow>
__attribute__((target("avx512fp16,avx512vnni"))) inline void run_row(const Vectors& v,
                                                                     const HalfFormOperands& row,
                                                                     int group,
                                                                     const std::uint8_t* fields,
                                                                     float* state) {
  Aligned x[kVectors];
  __m512i sums[kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) {
    x[i] = begin<kHalf, kSlow>(v, fields + 16 * i, state + 16 * i);
    sums[i] = kSlow ? _mm512_setzero_si512() : x[i].c;
  }
  const std::uint32_t* b = row.lanes;
  for (int k = 0; k < group; k += 2, b += kHalfFormWidth) {
    std::uint32_t pair;
    std::memcpy(&pair, row.values + k, sizeof pair);
    const __m512h a = _mm512_castsi512_ph(_mm512_set1_epi32(static_cast<int>(pair)));
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) sums[i] = accumulate<kSlow>(v, a, b + 16 * i, x[i], sums[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) {
    if (kSlow) sums[i] = _mm512_add_epi32(_mm512_sllv_epi32(sums[i], x[i].shift), x[i].c);
    end<kHalf>(v, x[i], sums[i], state + 16 * i);
  }
}

template <bool kHalf>
__attribute__((target("avx512fp16,avx512vnni"))) void run_rows(const HalfFormConstants& s,
                                                               HalfFormOperands x,
                                                               std::int64_t rows, float* state) {
  const Vectors v = vectors_of(s);
  const int group = s.group;
  for (std::int64_t row = 0; row < rows; ++row) {
    const __m512i most = largest_bytes(v, group, x.exponents, x.lane_exponents);
    const __mmask64 none = _mm512_cmpeq_epi8_mask(most, v.no_product);
    alignas(64) std::uint8_t fields[kHalfFormWidth];
    _mm512_store_si512(fields, _mm512_mask_mov_epi8(_mm512_add_epi8(most, v.field_offset), none,
                                                    v.exponent_of_none));
    if (_mm512_cmplt_epu8_mask(most, v.fast_from) == 0) {
      run_row<kHalf, false>(v, x, group, fields, state);
    } else {
      run_row<kHalf, true>(v, x, group, fields, state);
    }
    x.values += group;
    x.exponents += group;
    state += kHalfFormWidth;
  }
}

}  // namespace

bool half_form_available() { return has_wide_float16() && __builtin_cpu_supports("avx512vnni"); }

void half_form_step(const HalfFormConstants& s, const HalfFormOperands& x, std::int64_t rows,
                    float* state) {
  s.half ? run_rows<true>(s, x, rows, state) : run_rows<false>(s, x, rows, state);
}

}  // namespace numemu::unit

#else

namespace numemu::unit {

bool half_form_available() { return false; }
void half_form_step(const HalfFormConstants&, const HalfFormOperands&, std::int64_t, float*) {}

}  // namespace numemu::unit

#endif
