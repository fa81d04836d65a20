// Products of every difficult kind for the lane kernels, and their comparison with ReferenceDot.
#pragma once
#include <omp.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "emu/unit/description.hpp"
#include "emu/unit/lanes/lanes.hpp"
#include "emu/unit/reference/dot.hpp"
#include "formats/codec.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/by_path.hpp"
#include "tests/emu/unit/problem.hpp"

namespace numemu::unit::test {

/// Whether the host flushes subnormals as x86 does; says so where it does not.
inline bool flushes() {
  if (!FlushGuard::kSupported) WARN("skipped: this CPU has no FTZ and DAZ of x86");
  return FlushGuard::kSupported;
}

enum class LaneData {
  gaussian,
  codes,       ///< every finite code alike
  wide,        ///< seven of eight are zeros, the others of any exponent
  cancelling,  ///< k and its neighbour differ in sign and little else
  tiny,        ///< subnormal and smallest normal numbers
  zeros,       ///< zeros of one sign per row, and little else
  specials,    ///< gaussian with rows that hold NaN, infinity or the largest number
};
constexpr LaneData kAllLaneData[] = {LaneData::gaussian,   LaneData::codes, LaneData::wide,
                                     LaneData::cancelling, LaneData::tiny,  LaneData::zeros,
                                     LaneData::specials};

inline float gaussian(Dice& dice) {
  double sum = 0;
  for (int i = 0; i < 12; ++i) sum += dice.bits() * 0x1p-32;
  return static_cast<float>(sum - 6);
}

/// A code of the kind at depth `k` of row `row`.
inline std::uint64_t draw_lane_code(const Format& f, LaneData data, std::int64_t row,
                                    std::int64_t k, Dice& dice) {
  const auto any = [&] {
    for (;;) {
      const std::uint64_t code = dice.bits() & f.code_mask();
      const Class kind = decode(f, code).kind;
      if (kind == Class::finite || kind == Class::zero) return code;
    }
  };
  const auto of = [&](float x) {
    return encode(f, value_of(x), Rounding{}, Overflow::saturate).code;
  };
  const std::uint64_t sign = dice.below(2) == 0 ? 0 : f.sign_bit();
  const std::uint64_t one_bit = std::uint64_t{1} << f.mantissa_bits;
  switch (data) {
    case LaneData::gaussian:
      return of(gaussian(dice));
    case LaneData::codes:
      return any();
    case LaneData::wide:
      return dice.below(8) != 0 ? 0 : any();
    case LaneData::cancelling: {
      const float x = 1 + static_cast<float>(row % 7) / 8;
      const float y = k % 2 == 0 ? x : -x * (1 + static_cast<float>(dice.below(3)) * 0x1p-9f);
      return of(y);
    }
    case LaneData::tiny: {
      const std::uint64_t code = dice.bits() % (4 * one_bit) | sign;
      return decode(f, code).kind == Class::nan ? 0 : code;
    }
    case LaneData::zeros:
      if (dice.below(256) == 0) return any();
      return f.has_negative_zero() && row % 2 == 1 ? f.sign_bit() : 0;
    case LaneData::specials:
      break;
  }
  if (row % 3 == 1 && dice.below(6) == 0) {
    const std::int64_t which = dice.below(4);
    if (which == 0 && f.has_nan()) return f.nan_code();
    if (which == 1 && f.has_infinity()) return f.infinity_code(sign != 0);
    if (which == 2) return f.largest_code() | sign;
    return sign != 0 && !f.has_negative_zero() ? 0 : sign;
  }
  return of(gaussian(dice));
}

inline void fill_operand(OperandData& o, LaneData data, Dice& dice) {
  const std::int64_t depth =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(o.gather.depth.size()));
  const auto at = [&](std::size_t i) {
    const auto index = static_cast<std::int64_t>(i);
    return draw_lane_code(*o.format, data, index / depth, index % depth, dice);
  };
  for (std::size_t i = 0; i < o.bytes.size(); ++i) o.bytes[i] = static_cast<std::uint8_t>(at(i));
  for (std::size_t i = 0; i < o.halves.size(); ++i) o.halves[i] = static_cast<std::uint16_t>(at(i));
  for (std::size_t i = 0; i < o.floats.size(); ++i) {
    // Bits below the format's are dropped by the unit: they must not matter.
    const auto below = dice.bits() & ((1u << o.format->container_shift) - 1);
    const auto code = static_cast<std::uint32_t>(at(i)) << o.format->container_shift;
    o.floats[i] = std::bit_cast<float>(code | below);
  }
}

/// C: none, moderate, far above the products, far below, zeros of both signs, anything.
constexpr int kKindsOfC = 6;
inline void fill_c(std::vector<float>& c, std::int64_t size, int kind, Dice& dice) {
  c.clear();
  if (kind == 0) return;
  c.resize(static_cast<std::size_t>(size));
  for (float& x : c) {
    const float g = gaussian(dice);
    const float chosen[] = {g,
                            g,
                            std::ldexp(g, 20 + static_cast<int>(dice.below(20))),
                            std::ldexp(g, -20 - static_cast<int>(dice.below(125))),
                            dice.below(4) != 0 ? std::copysign(0.0f, g) : std::ldexp(g, -130),
                            any_float(dice)};
    x = chosen[kind];
  }
}

struct Counts {
  std::int64_t differing = 0, declined = 0, compared = 0;
};

/// One product by the fast path on `threads` threads and by the reference. D has `T` elements.
template <class T = float>
void compare(const UnitDescription& u, Multiply fast, const Problem& p, int threads, Counts& counts,
             const void* c) {
  const auto size = static_cast<std::size_t>(p.m * p.n);
  std::vector<T> ours(size, T{1}), theirs(size, T{1});
  std::vector<float> unused;
  Gemm g = p.gemm(unused);
  g.c = c;
  g.d = ours.data();
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  const bool taken = by_path(fast, u, g);
  omp_set_num_threads(before);
  if (!taken) {
    ++counts.declined;
    counts.differing += std::any_of(ours.begin(), ours.end(), [](T x) { return x != T{1}; });
    return;
  }
  g.d = theirs.data();
  const ReferenceDot reference(u, g);
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) reference.write(i, j);
  }
  for (std::size_t i = 0; i < size; ++i)
    counts.differing += std::memcmp(&ours[i], &theirs[i], sizeof(T)) != 0;
  counts.compared += p.m * p.n;
}

/// Every kind of data and of C, odd sizes, K tails, transposed operands and a padded convolution.
inline Counts compare_all(const UnitDescription& u, Multiply fast, const std::string& a,
                          const std::string& b) {
  constexpr std::int64_t kShapes[][3] = {{5, 7, 1}, {3, 37, 19}, {35, 2, 45}, {9, 33, 72}};
  Counts counts;
  std::uint64_t seed = 1;
  for (const LaneData data : kAllLaneData) {
    for (int kind = 0; kind < kKindsOfC; ++kind, ++seed) {
      const auto& s = kShapes[seed % 4];
      const MatrixLayout layout{.a_transposed = kind % 2 == 1, .b_transposed = kind % 3 == 1};
      Problem p = make_matrices(a, b, s[0], s[1], s[2], layout, Fill::any, seed);
      Dice dice(seed);
      fill_operand(p.a, data, dice);
      fill_operand(p.b, data, dice);
      fill_c(p.c, p.m * p.n, kind, dice);
      compare(u, fast, p, 1 + static_cast<int>(seed % 3), counts,
              p.c.empty() ? nullptr : p.c.data());
    }
    Problem p =
        make_convolution(a, b, {.height = 5, .width = 4, .dilation = 2}, 9, Fill::any, seed);
    Dice dice(seed);
    fill_operand(p.a, data, dice);
    fill_operand(p.b, data, dice);
    compare(u, fast, p, 2, counts, nullptr);
  }
  return counts;
}

}  // namespace numemu::unit::test
