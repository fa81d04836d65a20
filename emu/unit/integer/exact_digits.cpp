// Exact recombination and one rounding, in vectors of float64; per Highway target.
#include "emu/unit/integer/exact_digits.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/integer/exact_digits.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <vector>

#include "emu/unit/integer/block.hpp"
#include "emu/unit/integer/blocks.hpp"
#include "emu/unit/integer/convert.hpp"
#include "emu/unit/lanes/narrow-inl.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/prepared_operand.hpp"
#include "emu/unit/unit.hpp"
#include "formats/codec.hpp"

// Once, though this file is included for every target.
#ifndef NUMEMU_DIGIT_SUMS
#define NUMEMU_DIGIT_SUMS
namespace numemu::unit {

/// Planes of kBlock * kBlock: plane s holds the sums of digit products of weight 256^s. Every
/// partial recombination is an integer below 2^53 in magnitude (multiply_exact_digits() proves it).
struct DigitSums {
  const std::int32_t* planes = nullptr;
  int weights = 1;
  bool joins = false;        ///< 256 times one plane and another fit int32 together
  double* totals = nullptr;  ///< of earlier slices, or null
  double scale = 1;          ///< value of the integer 1, a power of two
};

}  // namespace numemu::unit
#endif

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Doubles = hn::CappedTag<double, 8>;
using DoubleVector = hn::Vec<Doubles>;
using Floats = hn::Rebind<float, Doubles>;
using Integers = hn::Rebind<std::int32_t, Doubles>;

HWY_INLINE hn::Vec<Integers> Plane(const DigitSums& s, int weight, std::int64_t at) {
  return hn::LoadU(Integers(), s.planes + weight * kBlock * kBlock + at);
}

/// Horner's rule from the largest weight on, two weights a step where int32 holds both; no step
/// rounds, so that it does not matter whether multiply-adds are fused.
HWY_INLINE DoubleVector Recombine(const DigitSums& s, std::int64_t at) {
  const Doubles d;
  int weight = s.weights - 1;
  auto total = hn::Zero(d);
  if (s.joins) {
    const auto base = hn::Set(d, 65536.0);
    if (weight % 2 == 0) total = hn::PromoteTo(d, Plane(s, weight--, at));
    for (; weight > 0; weight -= 2) {
      const auto high = hn::ShiftLeft<8>(Plane(s, weight, at));
      const auto both = hn::PromoteTo(d, hn::Add(high, Plane(s, weight - 1, at)));
      total = hn::MulAdd(total, base, both);
    }
  } else {
    const auto base = hn::Set(d, 256.0);
    for (; weight >= 0; --weight)
      total = hn::MulAdd(total, base, hn::PromoteTo(d, Plane(s, weight, at)));
  }
  return s.totals == nullptr ? total : hn::Add(total, hn::LoadU(d, s.totals + at));
}

void Fold(const DigitSums& s) {
  const Doubles d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < kBlock * kBlock; i += step)
    hn::StoreU(Recombine(s, i), d, s.totals + i);
}

/// Whole rows of kBlock.
bool Round(const DigitSums& s, std::int64_t rows, const float* c, float* to, std::int64_t stride) {
  const Doubles d;
  const Floats narrow;
  const hn::RebindToUnsigned<Floats> codes;
  const auto scale = hn::Set(d, s.scale);
  const auto canonical = hn::BitCast(narrow, hn::Set(codes, 0x7fc00000u));
  const auto minus_zero = hn::Set(codes, 0x80000000u);
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  bool found = false;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < kBlock; j += step) {
      const auto total = hn::Mul(Recombine(s, i * kBlock + j), scale);
      float* output = to + i * stride + j;
      if (c == nullptr) {
        hn::StoreU(ToFloat32(d, total), narrow, output);
        continue;
      }
      const auto start = hn::LoadU(narrow, c + i * stride + j);
      found |= !hn::AllFalse(codes, hn::Eq(hn::BitCast(codes, start), minus_zero));
      const auto rounded = ToFloat32(d, AddToOdd(d, total, hn::PromoteTo(d, start)));
      hn::StoreU(hn::IfThenElse(hn::IsNaN(rounded), canonical, rounded), narrow, output);
    }
  }
  return found;
}

}  // namespace
}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(Fold);
HWY_EXPORT(Round);

namespace {

/// totals += the recombined planes.
void fold_digit_sums(const DigitSums& s) { HWY_DYNAMIC_DISPATCH(Fold)(s); }

/// d[i * stride + j] = (total * scale + c) rounded once to nearest even, for rows x lanes outputs
/// of the block; c may be null. Whether some c is -0. Under a FloatGuard.
bool round_digit_sums(const DigitSums& s, std::int64_t rows, std::int64_t lanes, const float* c,
                      float* d, std::int64_t stride) {
  if (lanes == kBlock) return HWY_DYNAMIC_DISPATCH(Round)(s, rows, c, d, stride);
  float block[kBlock * kBlock] = {};
  for (std::int64_t i = 0; i < rows && c != nullptr; ++i)
    std::copy_n(c + i * stride, lanes, block + i * kBlock);
  const bool found =
      HWY_DYNAMIC_DISPATCH(Round)(s, rows, c == nullptr ? nullptr : block, block, kBlock);
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(block + i * kBlock, lanes, d + i * stride);
  return found;
}

/// Value of code x = 2^low * sum over i of 256^i * int8(tables[i][x]), for every code present.
struct Digits {
  std::vector<std::vector<std::uint8_t>> tables;  ///< 1 to 4, of 256
  int low = 0;
  int bits = 0;  ///< the integers are at least -2^bits and below 2^bits
};

constexpr int kCodes = 256;

/// n digits reach from -128 (256^n - 1) / 255 to 127 (256^n - 1) / 255: all of [-2^bits, 2^bits)
/// for these numbers of bits.
constexpr int kBitsOfDigits[] = {7, 14, 22, 30};

/// A finite value is a multiple of 2^low, at least -2^top and below 2^top.
struct Span {
  int low = 0, top = 0;
};

Span span_of(const Value& v) {
  const int low = v.exponent + std::countr_zero(v.significand);
  const int top = v.exponent + std::bit_width(v.significand);
  // -2^(top - 1) alone still is at least the negative end.
  const bool negative_power = v.negative && std::has_single_bit(v.significand);
  return {low, negative_power ? top - 1 : top};
}

std::vector<Value> values_of(const Format& format) {
  std::vector<Value> values;
  for (std::uint64_t code = 0; code < kCodes; ++code)
    values.push_back(decode(format, code & format.code_mask()));
  return values;
}

/// The span of the values present, or nothing where one is not finite.
std::optional<Span> span_present(const Operand& operand, const std::vector<Value>& values,
                                 std::int64_t count) {
  constexpr int kSpecial = 255, kZero = 255;
  int lowest = 0;
  for (const Value& v : values) {
    if (v.kind == Class::finite) lowest = std::min(lowest, span_of(v).low);
  }
  // Exponents above the lowest one as bytes; a zero has no lower end and the lowest upper one.
  std::vector<std::uint8_t> low(kCodes, kZero), top(kCodes, 0);
  for (std::size_t code = 0; code < values.size(); ++code) {
    if (values[code].kind == Class::zero) continue;
    top[code] = kSpecial;
    if (values[code].kind != Class::finite) continue;
    const Span span = span_of(values[code]);
    if (span.top - lowest >= kSpecial) continue;  // too wide for digits where it is present
    low[code] = static_cast<std::uint8_t>(span.low - lowest);
    top[code] = static_cast<std::uint8_t>(span.top - lowest);
  }
  const ByteRange present =
      range_of_bytes(static_cast<const std::uint8_t*>(operand.codes), count, low, top);
  if (present.high == kSpecial) return std::nullopt;
  if (present.low == kZero) return Span{};
  return Span{present.low + lowest, present.high + lowest};
}

/// value * 2^-low, where that has no more than `bits` bits; other codes are not present.
std::int64_t integer_of(const Value& v, int low, int bits) {
  if (v.kind != Class::finite) return 0;
  const Span span = span_of(v);
  if (span.low < low || span.top > low + bits) return 0;
  const int shift = v.exponent - low;
  const auto magnitude =
      static_cast<std::int64_t>(shift >= 0 ? v.significand << shift : v.significand >> -shift);
  return v.negative ? -magnitude : magnitude;
}

/// Nothing where NaN or infinity is present, four digits are too few, padding is not zero, or this
/// CPU has no has_byte_lookup(). Throws Error as source_size() does.
std::optional<Digits> find_digits(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  const Format& format = *operand.format;
  if (!has_byte_lookup() || container_of(format) != Container::bytes) return std::nullopt;
  const std::vector<Value> values = values_of(format);
  if (!operand.gather->padding.identity() && values[0].kind != Class::zero) return std::nullopt;
  const auto span = span_present(operand, values, source_size(operand, rows, depth));
  if (!span) return std::nullopt;
  Digits digits{{}, span->low, std::max(span->top - span->low, 0)};
  const auto* enough =
      std::lower_bound(std::begin(kBitsOfDigits), std::end(kBitsOfDigits), digits.bits);
  if (enough == std::end(kBitsOfDigits)) return std::nullopt;
  digits.tables.assign(static_cast<std::size_t>(enough - std::begin(kBitsOfDigits)) + 1,
                       std::vector<std::uint8_t>(kCodes));
  for (std::size_t code = 0; code < values.size(); ++code) {
    std::int64_t rest = integer_of(values[code], digits.low, digits.bits);
    for (std::vector<std::uint8_t>& table : digits.tables) {
      const auto digit = static_cast<std::int8_t>(rest & 255);
      table[code] = static_cast<std::uint8_t>(digit);
      rest = (rest - digit) / 256;
    }
  }
  return digits;
}

constexpr std::int64_t kPlane = kBlock * kBlock, kSliceChunks = 16;
constexpr std::int64_t kSliceDepth = kSliceChunks * kChunkBytes;

/// Whether every partial recombination is below 2^53. With |a| <= 2^p, |b| <= 2^q the exact sum is
/// at most k 2^(p+q). Horner's rule down to weight s gives that sum less its lower weights, over
/// 256^s. Weight r has at most r + 1 <= 4 pairs of digits, of at most 2^14 each, so the lower
/// weights are below 4 k 2^14 256^(s-1) 256/255, over 256^s less than k 2^8.1: in all below k
/// (2^(p+q) + 2^8.1) < k 2^(max(p+q, 9) + 1).
bool fits_float64(int p, int q, std::int64_t k) {
  const int doublings =
      std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(k, 1) - 1));
  return std::max(p + q, 9) + 1 + doublings <= 53;
}

/// What is kept of a block from slice to slice.
struct State {
  double* totals;
  std::int32_t* planes;
};

State state_of(const PackedBlock& b) {
  auto* totals = static_cast<double*>(b.state);
  return {totals, reinterpret_cast<std::int32_t*>(totals + kPlane)};
}

/// Adds the digit products of a slice to every plane, or begins them.
void add_slice(const PackedBlock& packed, int a_digits, int b_digits, bool fresh,
               BlockFunction multiply, std::int32_t* planes) {
  for (int weight = 0; weight < a_digits + b_digits - 1; ++weight) {
    Block block = packed.block;
    block.sums = planes + weight * kPlane;
    block.from_zero = fresh;
    const int first = std::max(0, weight - b_digits + 1), last = std::min(weight, a_digits - 1);
    block.rows += first * packed.plane_bytes;
    block.lanes += (weight - first) * packed.plane_bytes;
    block.more_planes = last - first;
    block.plane_step = packed.plane_bytes;
    multiply(block);
  }
}

/// Which outputs are -0: those of products that all are zeros of negative sign, and such a C.
/// Decodes the operands on first use.
class ZeroSigns {
 public:
  explicit ZeroSigns(const Gemm& g) : g_(g) {}

  bool all_negative(std::int64_t i, std::int64_t j) {
    std::call_once(decoded_, [&] {
      const auto same = [](const Value& v) { return v; };
      a_ = decode_source<Value>(g_.a, g_.m, g_.k, same);
      b_ = decode_source<Value>(g_.b, g_.n, g_.k, same);
    });
    for (std::int64_t k = 0; k < g_.k; ++k) {
      const Value &x = a_.values[a_.row[i] + a_.depth[k]], &y = b_.values[b_.row[j] + b_.depth[k]];
      const bool zero = x.kind == Class::zero || y.kind == Class::zero;
      if (!zero || x.negative == y.negative) return false;
    }
    return true;
  }

 private:
  const Gemm& g_;
  std::once_flag decoded_;
  Source<Value> a_, b_;
};

}  // namespace

bool multiply_exact_digits(const Gemm& g) {
  // Zeros of C are looked at again after D is written.
  if (!has_amx() || (g.c != nullptr && g.c == g.d)) return false;
  struct Found {
    std::optional<Digits> digits;
  };
  const auto find = [&](const Operand& operand, std::int64_t rows) {
    return prepared<Found>(operand,
                           [&](const Operand& o) { return Found{find_digits(o, rows, g.k)}; })
        ->digits;
  };
  const auto a = find(g.a, g.m);
  const auto b = a ? find(g.b, g.n) : std::nullopt;
  // Sums of float64 with any float32 stay far from its ends.
  constexpr int kLargestExponent = 800;
  if (!b || !fits_float64(a->bits, b->bits, g.k) || std::abs(a->low + b->low) > kLargestExponent)
    return false;

  const auto rows = read_planes(g.a, g.m, g.k, a->tables);
  const auto lanes = read_planes(g.b, g.n, g.k, b->tables);
  const int a_digits = static_cast<int>(rows.size()), b_digits = static_cast<int>(lanes.size());
  const int weights = a_digits + b_digits - 1;
  const bool one_slice = g.k <= kSliceDepth;
  BlockProduct product{rows, lanes};
  product.shape = {
      .rows = one_slice ? 256 : 128, .lanes = one_slice ? 512 : 256, .granule = kBlock};
  product.slice_chunks = kSliceChunks;
  product.state_bytes = kPlane * (8 + 4 * weights);
  product.kernel = amx_kernel(false, false);

  // Digits are from -128 to 127: pairs * depth * 2^14 < 2^31 keeps a plane exact.
  const int pairs = std::min(a_digits, b_digits);
  const std::int64_t slices_per_fold = ((std::int64_t{1} << 17) - 1) / (pairs * kSliceDepth);
  // w + 256 w' of two planes: |w| + 256 |w'| <= 257 pairs depth 2^14 < 2^31.
  const bool joins = one_slice && 257 * pairs * g.k < std::int64_t{1} << 17;
  const double scale = std::ldexp(1.0, a->low + b->low);
  const auto* c = static_cast<const float*>(g.c);
  auto* d = static_cast<float*>(g.d);
  ZeroSigns zeros(g);
  for_each_block(product, [&](const PackedBlock& packed) {
    const State state = state_of(packed);
    const std::int64_t slice = packed.depth / kSliceDepth;
    const bool fresh = slice % slices_per_fold == 0;
    DigitSums sums{state.planes, weights, joins, state.totals, scale};
    if (fresh && slice == slices_per_fold) std::fill_n(state.totals, kPlane, 0.0);
    if (fresh && slice != 0) fold_digit_sums(sums);
    add_slice(packed, a_digits, b_digits, fresh, product.kernel.run, state.planes);
    if (!packed.last) return;
    if (slice < slices_per_fold) sums.totals = nullptr;
    const std::int64_t at = packed.row * g.n + packed.lane;
    const bool minus_zeros = round_digit_sums(sums, packed.block.row_count, packed.block.lane_count,
                                              c == nullptr ? nullptr : c + at, d + at, g.n);
    if (!minus_zeros) return;
    for (std::int64_t i = packed.row; i < packed.row + packed.block.row_count; ++i) {
      for (std::int64_t j = packed.lane; j < packed.lane + packed.block.lane_count; ++j) {
        const std::int64_t output = i * g.n + j;
        const bool candidate = c[output] == 0 && std::signbit(c[output]) && d[output] == 0;
        if (candidate && zeros.all_negative(i, j)) d[output] = -0.0f;
      }
    }
  });
  return true;
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
