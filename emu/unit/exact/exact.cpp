// Sums cut into two doubles that hold the total exactly, and its one rounding; per Highway target.
#include "emu/unit/exact/exact.hpp"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/exact/exact.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include <bit>
#include <limits>
#include <type_traits>
#include <vector>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/integer/elements.hpp"
#include "emu/unit/integer/exact_digits.hpp"
#include "emu/unit/kulisch.hpp"
#include "emu/unit/lanes/narrow-inl.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/tiles.hpp"
#include "emu/unit/unit.hpp"

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Doubles = hn::CappedTag<double, kCombineSlack>;
using Floats = hn::Rebind<float, Doubles>;

/// Terms cut at one bit; both sums exact (can_combine).
struct Halves {
  hn::Vec<Doubles> high, low;

  /// Adding 1.5 * 2^52 times the unit of the cut rounds to that unit.
  HWY_INLINE void Add(hn::Vec<Doubles> term, hn::Vec<Doubles> cutter) {
    const auto upper = hn::Sub(hn::Add(term, cutter), cutter);
    high = hn::Add(high, upper);
    low = hn::Add(low, hn::Sub(term, upper));
  }
};

void Combine(const CombinedSums& s, double cut, std::int64_t outputs, const float* c, float* d) {
  const Doubles tag;
  const Floats narrow;
  const auto step = static_cast<std::int64_t>(hn::Lanes(tag));
  const auto cutter = hn::Set(tag, cut);
  const hn::RebindToUnsigned<Floats> codes;
  const auto canonical = hn::BitCast(narrow, hn::Set(codes, 0x7fc00000u));
  for (std::int64_t i = 0; i < outputs; i += step) {
    Halves total{hn::Zero(tag), hn::Zero(tag)};
    // Only sign bits: of a total that is zero they are all set or its terms have both signs.
    auto signs = c == nullptr ? hn::Zero(tag) : hn::Set(tag, -0.0);
    for (int p = 0; p < s.count; ++p) {
      const auto term = hn::LoadU(tag, s.sums[p] + i);
      signs = hn::And(signs, term);
      total.Add(term, cutter);
    }
    auto special = s.specials == nullptr ? hn::Zero(tag) : hn::LoadU(tag, s.specials + i);
    if (c != nullptr) {
      const auto start = hn::PromoteTo(tag, hn::LoadU(narrow, c + i));
      signs = hn::And(signs, start);
      special = hn::Add(special, start);
      total.Add(start, cutter);
    }
    const auto sum = AddToOdd(tag, total.high, total.low);
    const auto zero = hn::Eq(sum, hn::Zero(tag));
    auto result = ToFloat32(tag, hn::IfThenElse(zero, signs, sum));
    if (s.specials != nullptr || c != nullptr) {
      // A finite special is a count and C: far less than C's last bit where C is near infinity.
      const auto other = ToFloat32(tag, special);
      const auto ordinary = hn::IsFinite(other);
      result = hn::IfThenElse(ordinary, result, hn::IfThenElse(hn::IsNaN(other), canonical, other));
    }
    hn::StoreU(result, narrow, d + i);
  }
}

}  // namespace

void CombineWhole(const CombinedSums& s, double cut, std::int64_t outputs, const float* c,
                  float* d) {
  Combine(s, cut, outputs, c, d);
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

// Chooses the cheapest exact way: float32, float64, or the fewest pairs of pieces.

namespace {

// Limits of the host formats: bits of precision, smallest exponent of a bit, first exponent that
// overflows.
struct Limits {
  int bits, low, top;
};
constexpr Limits kFloat32{24, -149, 128}, kFloat64{53, -1074, 1024};
/// Sums of pieces are scaled by powers of two in float64 and added in 127 bits and a sign.
constexpr Limits kCombined{126, -1000, 1000};
constexpr int kMaxPieces = 3;

bool within(Exponents range, const Limits& limits) {
  return range.empty() || (range.top - range.low <= limits.bits && range.low >= limits.low &&
                           range.top <= limits.top);
}

/// Whether every value of the range is a number of the host format (single values are at most 24
/// bits wide).
bool representable(Exponents range, const Limits& limits) {
  return range.empty() || (range.low >= limits.low && range.top <= limits.top);
}

Exponents sum_of(Exponents term, std::int64_t count) {
  if (term.empty() || count == 0) return {};
  return {term.low,
          term.top + static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count - 1)))};
}

Exponents sum_of(Exponents a, Exponents b) {
  if (a.empty() || b.empty()) return join(a, b);
  return {std::min(a.low, b.low), std::max(a.top, b.top) + 1};
}

std::vector<Exponents> cut(Exponents whole, int count) {
  std::vector<Exponents> pieces;
  const int bits = (whole.top - whole.low + count - 1) / count;
  for (int low = whole.low; low < whole.top; low += bits)
    pieces.push_back({low, std::min(low + bits, whole.top)});
  return pieces;
}

bool pairs_fit(const std::vector<Exponents>& a, const std::vector<Exponents>& b, std::int64_t k) {
  return std::all_of(a.begin(), a.end(), [&](Exponents x) {
    return std::all_of(b.begin(), b.end(), [&](Exponents y) {
      return within(sum_of(product_range(x, y), k), kFloat64);
    });
  });
}

}  // namespace

ExactPlan plan_exact(Exponents a, Exponents b, Exponents c, std::int64_t k) {
  ExactPlan plan;
  const Exponents sum = sum_of(product_range(a, b), k), total = sum_of(sum, c);
  // Without any product that is not zero the result is C itself, however wide its range.
  const auto exact_in = [&](const Limits& host) {
    return representable(a, host) && representable(b, host) && (sum.empty() || within(total, host));
  };
  if (exact_in(kFloat32)) {
    plan.way = ExactPlan::Way::float32;
    return plan;
  }
  if (exact_in(kFloat64)) {
    plan.way = ExactPlan::Way::float64;
    return plan;
  }
  const bool combines = representable(a, kFloat64) && representable(b, kFloat64) && !sum.empty() &&
                        within(total, kCombined);
  if (!combines) return plan;
  for (int pairs = 1; pairs <= kMaxPieces * kMaxPieces; ++pairs) {
    for (int pieces = 1; pieces <= kMaxPieces; ++pieces) {
      if (pairs % pieces != 0 || pairs / pieces > kMaxPieces) continue;
      plan.a = cut(a, pieces);
      plan.b = cut(b, pairs / pieces);
      if (!pairs_fit(plan.a, plan.b, k)) continue;
      plan.way = ExactPlan::Way::split;
      plan.total = total;
      return plan;
    }
  }
  return plan;
}

double piece_of(const Value& value, Exponents piece) {
  __extension__ typedef unsigned __int128 Wide;
  Value part{.kind = Class::zero, .negative = value.negative};
  if (value.kind == Class::finite) {
    const int shift = value.exponent - piece.low, bits = piece.top - piece.low;
    Wide inside = 0;
    if (shift >= 0 && shift < bits) inside = Wide{value.significand} << shift;
    if (shift < 0 && shift > -64) inside = value.significand >> -shift;
    inside &= (Wide{1} << bits) - 1;
    if (inside != 0) {
      part.kind = Class::finite;
      part.exponent = piece.low;
      part.significand = static_cast<std::uint64_t>(inside);
    }
  }
  return value.kind == Class::nan || value.kind == Class::infinite ? 0.0 : to_double(part);
}

HWY_EXPORT(CombineWhole);

namespace {

/// A term keeps kLowBits bits below the cut.
constexpr int kLowBits = 49, kMostTerms = 16;

}  // namespace

/// With the cut at 2^m, m = low + 49: a term's lower part is a multiple of 2^low of magnitude at
/// most 2^(m - 1), so that up to 16 of them stay at most 2^(m + 3) = 2^(low + 52). Upper parts are
/// multiples of 2^m below or at 2^top: 16 of them are at most 2^(top + 4) <= 2^(m + 52). Terms are
/// below 2^(m + 48), so that 1.5 * 2^(m + 52) and a term keep the unit 2^m. The factors keep every
/// number far from the ends of float64.
bool can_combine(int count, Exponents range) {
  return count < kMostTerms && range.top <= range.low + kLowBits + 48 && range.low >= -900 &&
         range.top <= 800;
}

void combine_sums(const CombinedSums& s, std::int64_t outputs, const float* c, float* d) {
  const double cut = std::ldexp(1.5, s.range.low + kLowBits + 52);
  const std::int64_t whole = outputs / kCombineSlack * kCombineSlack, rest = outputs - whole;
  HWY_DYNAMIC_DISPATCH(CombineWhole)(s, cut, whole, c, d);
  if (rest == 0) return;
  const double* sums[kMostTerms] = {};
  for (int p = 0; p < s.count; ++p) sums[p] = s.sums[p] + whole;
  CombinedSums last = s;
  last.sums = sums;
  if (s.specials != nullptr) last.specials += whole;
  float start[kCombineSlack] = {}, end[kCombineSlack];
  if (c != nullptr) std::copy_n(c + whole, rest, start);
  HWY_DYNAMIC_DISPATCH(CombineWhole)
  (last, cut, kCombineSlack, c == nullptr ? nullptr : start, end);
  std::copy_n(end, rest, d + whole);
}

namespace {

__extension__ typedef __int128 Integer;
__extension__ typedef unsigned __int128 Magnitude;

/// Outputs combined at a time: many enough that packing the operands again for each tile costs
/// little.
constexpr TileShape kSlab{.rows = 256, .lanes = 512};

/// 2^e for a normal double.
double power_of_two(int e) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52);
}

/// integer * 2^low rounded to float32: first to odd at 53 bits, which the second rounding cannot
/// tell from the exact value (Boldo and Melquiond, IEEE Trans. Comput. 57(4), 2008: 53 >= 24 + 2).
float round_once(Integer integer, int low) {
  const bool negative = integer < 0;
  Magnitude magnitude = static_cast<Magnitude>(integer);
  if (negative) magnitude = -magnitude;
  const auto high = static_cast<std::uint64_t>(magnitude >> 64);
  const int width =
      high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<std::uint64_t>(magnitude));
  const int shift = std::max(width - 53, 0);
  const bool inexact = (magnitude & ((Magnitude{1} << shift) - 1)) != 0;
  const auto odd =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(magnitude >> shift) | inexact);
  const double rounded = static_cast<double>(odd) * power_of_two(low + shift);
  return static_cast<float>(negative ? -rounded : rounded);
}

/// C as a multiple of 2^low; a finite value.
Integer scaled(float c, int low) {
  const Value value = value_of(c);
  if (value.kind == Class::zero) return 0;
  const int shift = value.exponent - low;
  const Integer integer = shift >= 0 ? static_cast<Integer>(value.significand) << shift
                                     : static_cast<Integer>(value.significand >> -shift);
  return value.negative ? -integer : integer;
}

/// Keeps what decides NaN and infinity: specials as they are, other values as +-1 or +-0.
double proxy_of(const Value& value) {
  const double sign = value.negative ? -1.0 : 1.0;
  switch (value.kind) {
    case Class::nan:
      return std::numeric_limits<double>::quiet_NaN();
    case Class::infinite:
      return sign * std::numeric_limits<double>::infinity();
    case Class::zero:
      return sign * 0.0;
    case Class::finite:
      break;
  }
  return sign;
}

/// The chains of one tile: sums[pair][output], and `proxies` where specials are present. Vectors
/// may be read beyond the last output.
class Slab {
 public:
  Slab(std::size_t pairs, bool specials, std::int64_t outputs)
      : stride_(outputs + kCombineSlack),
        memory_(static_cast<std::int64_t>(pairs + (specials ? 1 : 0)) * stride_ *
                static_cast<std::int64_t>(sizeof(double))),
        proxies_(specials ? row(pairs) : nullptr) {
    for (std::size_t p = 0; p < pairs; ++p) sums_.push_back(row(p));
  }
  const std::vector<double*>& sums() const { return sums_; }
  double* proxies() const { return proxies_; }

 private:
  double* row(std::size_t p) const {
    return reinterpret_cast<double*>(memory_.get()) + static_cast<std::int64_t>(p) * stride_;
  }

  std::int64_t stride_;
  Scratch memory_;
  double* proxies_;
  std::vector<double*> sums_;
};

/// One pair of decoded pieces and the unit of its sums.
struct Pair {
  const Source<double>* a;
  const Source<double>* b;
  double to_integer = 1;  ///< 2^-unit
  int shift = 0;          ///< unit - low of the plan
};

void run_pair(const Gemm& g, const Pair& pair, const Tile& tile, const double* start,
              double* sums) {
  const Source<double>&a = *pair.a, &b = *pair.b;
  Chain<double, double> chain{tile.row_end - tile.row_begin,
                              tile.lane_end - tile.lane_begin,
                              g.k,
                              {a.values, a.row + tile.row_begin, a.depth},
                              {b.values, b.row + tile.lane_begin, b.depth}};
  chain.c = start;
  chain.d = sums;
  run_chain(chain);
}

/// D of output `index` of the tile, `c` its C.
float combine(const std::vector<Pair>& pairs, const Slab& slab, std::int64_t index, float c,
              int low) {
  const double special = (slab.proxies() == nullptr ? 0.0 : slab.proxies()[index]) + c;
  if (std::isnan(special)) return std::numeric_limits<float>::quiet_NaN();
  if (std::isinf(special)) return static_cast<float>(special);
  Integer total = scaled(c, low);
  bool negative_zero = std::signbit(c) && c == 0;
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    const double sum = slab.sums()[p][index];
    total += static_cast<Integer>(static_cast<std::int64_t>(sum * pairs[p].to_integer))
             << pairs[p].shift;
    negative_zero = negative_zero && std::signbit(sum);
  }
  if (total == 0) return negative_zero ? -0.0f : 0.0f;
  return round_once(total, low);
}

/// One row of a tile, from output `index` of the tile on.
void combine_row(const std::vector<Pair>& pairs, const Slab& slab, std::int64_t index,
                 std::int64_t lanes, Exponents range, const float* c, float* d) {
  const int count = static_cast<int>(pairs.size());
  if (!can_combine(count, range)) {
    for (std::int64_t j = 0; j < lanes; ++j)
      d[j] = combine(pairs, slab, index + j, c == nullptr ? 0.0f : c[j], range.low);
    return;
  }
  std::vector<const double*> sums;
  for (const double* of_pair : slab.sums()) sums.push_back(of_pair + index);
  const double* proxies = slab.proxies() == nullptr ? nullptr : slab.proxies() + index;
  combine_sums({sums.data(), count, proxies, range}, lanes, c, d);
}

/// D = A x B + C exactly, rounded once, by a plan whose way is `split`. `specials`: whether A or B
/// holds NaN or infinity.
void multiply_split(const Gemm& g, const ExactPlan& plan, bool specials) {
  std::vector<Source<double>> a, b;
  for (const Exponents& piece : plan.a) {
    a.push_back(
        decode_source<double>(g.a, g.m, g.k, [&](const Value& v) { return piece_of(v, piece); }));
  }
  for (const Exponents& piece : plan.b) {
    b.push_back(
        decode_source<double>(g.b, g.n, g.k, [&](const Value& v) { return piece_of(v, piece); }));
  }
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      const int unit = plan.a[i].low + plan.b[j].low;
      pairs.push_back({&a[i], &b[j], power_of_two(-unit), unit - plan.total.low});
    }
  }
  Source<double> proxy_a, proxy_b;
  if (specials) {
    proxy_a = decode_source<double>(g.a, g.m, g.k, proxy_of);
    proxy_b = decode_source<double>(g.b, g.n, g.k, proxy_of);
  }

  const auto* c = static_cast<const float*>(g.c);
  auto* d = static_cast<float*>(g.d);
  TileShape shape = kSlab;
  if (g.n < shape.lanes) shape.rows = shape.rows * shape.lanes / g.n;
  for_each_tile(g.m, g.n, g.k, shape, [&](const Tile& tile) {
    const std::int64_t lanes = tile.lane_end - tile.lane_begin;
    const std::int64_t outputs = (tile.row_end - tile.row_begin) * lanes;
    // From -0 a chain of zeros stays -0 exactly as long as every product is -0.
    const std::vector<double> start(c == nullptr ? 0 : static_cast<std::size_t>(outputs), -0.0);
    const double* from = c == nullptr ? nullptr : start.data();
    const Slab slab(pairs.size(), specials, outputs);
    for (std::size_t p = 0; p < pairs.size(); ++p)
      run_pair(g, pairs[p], tile, from, slab.sums()[p]);
    if (specials) run_pair(g, {&proxy_a, &proxy_b}, tile, from, slab.proxies());
    std::int64_t index = 0;
    for (std::int64_t i = tile.row_begin; i < tile.row_end; ++i, index += lanes) {
      const std::int64_t at = i * g.n + tile.lane_begin;
      combine_row(pairs, slab, index, lanes, plan.total, c == nullptr ? nullptr : c + at, d + at);
    }
  });
}

/// The chain of decoded operands from C. The plan proved that T holds every value present.
template <class T>
void multiply_as(const Gemm& g, const Source<T>& a, const Source<T>& b) {
  Chain<T, float> chain{g.m, g.n, g.k, {a.values, a.row, a.depth}, {b.values, b.row, b.depth}};
  chain.c = static_cast<const float*>(g.c);
  chain.d = static_cast<float*>(g.d);
  run_chain(chain);
}

Exponents present_in_c(const Gemm& g) {
  Exponents range;
  if (g.c == nullptr) return range;
  const auto* c = static_cast<const float*>(g.c);
  for (std::int64_t i = 0; i < g.m * g.n; ++i) range.include(value_of(c[i]));
  return range;
}

bool covered(const UnitDescription& u) {
  const auto float32 = [](const Format* f) { return f != nullptr && f->name == "float32"; };
  return u.core == CoreKind::exact && float32(u.accumulator.format) && float32(c_format(u)) &&
         float32(result_format(u));
}

}  // namespace

bool multiply_exact(const UnitDescription& u, const Gemm& g) {
  if (!covered(u)) return false;
  if (multiply_exact_digits(g)) return true;
  const Present a = scan(g.a, g.m, g.k), b = scan(g.b, g.n, g.k);
  const ExactPlan plan = plan_exact(a.exponents, b.exponents, present_in_c(g), g.k);
  switch (plan.way) {
    case ExactPlan::Way::float32:
      multiply_as(g, decode_numbers<float>(g.a, g.m, g.k), decode_numbers<float>(g.b, g.n, g.k));
      return true;
    case ExactPlan::Way::float64:
      multiply_as(g, decode_numbers<double>(g.a, g.m, g.k), decode_numbers<double>(g.b, g.n, g.k));
      return true;
    case ExactPlan::Way::split:
      multiply_split(g, plan, a.specials || b.specials);
      return true;
    case ExactPlan::Way::kulisch:
      break;
  }
  return false;
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
