// Trees step by step in float64 lanes, every sum rounded to the register; per Highway target.
#include "emu/unit/tree/rounded_tree.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "emu/unit/tree/rounded_tree.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target these are compiled for.
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "emu/unit/chain/chain_tile.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/lanes/side.hpp"
#include "emu/unit/mac/plan.hpp"
#include "emu/unit/mac/register_values.hpp"
#include "emu/unit/mac/round-inl.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/tree/group_tile-inl.hpp"
#include "formats/float_guard.hpp"

#ifndef NUMEMU_ROUNDED_TREE_RULE
#define NUMEMU_ROUNDED_TREE_RULE
namespace numemu::unit {

struct RoundedTreeRule {
  mac::Plan plan;
  int group = 0, leaf = 1;
  bool round_products = true;  ///< of leaves of one product; all others are rounded
  bool plus_zero = false;      ///< a product that is zero is +0
  /// 0: the products of a leaf add up exactly in one double. Else 1.5 * 2^(52 + m): it rounds a
  /// product to a multiple of 2^m, and both the multiples of a leaf and the rests add up exactly.
  double splitter = 0;
};

}  // namespace numemu::unit
#endif

HWY_BEFORE_NAMESPACE();
namespace numemu::unit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace rounding = numemu::unit::mac::HWY_NAMESPACE;

/// Steps of one row and one vector of lanes.
template <mac::Rule kRule, bool kFree>
class TreeSteps {
  using D = hn::ScalableTag<double>;
  using V = hn::Vec<D>;

 public:
  TreeSteps(const RoundedTreeRule& rule, const mac::Constants<double>& constants)
      : rule_(rule), numbers_(D(), constants) {}

  /// The register after a step from `sum`; `level` has room for the leaves. Row and lanes as
  /// StepGroups() has them.
  HWY_INLINE V Step(const double* row, const double* lanes, V sum, double* level) const {
    const D d;
    const auto width = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < rule_.group; k += rule_.leaf, ++count) {
      const std::int64_t size = std::min<std::int64_t>(rule_.leaf, rule_.group - k);
      const double *const a = row + k * kGroupRows, *const b = lanes + k * width;
      hn::Store(size == 1 && rule_.leaf == 1 ? Product(a, b) : Leaf(a, b, size), d,
                level + count * width);
    }
    for (; count > 1; count = (count + 1) / 2) {
      for (std::int64_t i = 0; i < count / 2; ++i) {
        const double* const pair = level + 2 * i * width;
        hn::Store(Add(hn::Load(d, pair), hn::Load(d, pair + width)), d, level + i * width);
      }
      if (count % 2 == 1)
        hn::Store(hn::Load(d, level + (count - 1) * width), d, level + count / 2 * width);
    }
    return Add(sum, hn::Load(d, level));
  }

 private:
  /// Exact products fit a double, and so does their sign where they are zero.
  HWY_INLINE V Product(const double* a, const double* b) const {
    const D d;
    V t = hn::Mul(hn::Set(d, *a), hn::Load(d, b));
    if (rule_.plus_zero) t = hn::Add(t, hn::Zero(d));
    return rule_.round_products ? Round(t) : t;
  }

  HWY_INLINE V Leaf(const double* a, const double* b, std::int64_t size) const {
    const D d;
    const auto width = static_cast<std::int64_t>(hn::Lanes(d));
    const V splitter = hn::Set(d, rule_.splitter);
    V high = hn::Zero(d), low = hn::Zero(d), signs = hn::Zero(d);
    for (std::int64_t k = 0; k < size; ++k) {
      const V p = hn::Mul(hn::Set(d, a[k * kGroupRows]), hn::Load(d, b + k * width));
      // Zero, an exact sum is minus where all products are, rounded down where any is.
      signs = k == 0 ? p : kRule == mac::Rule::down ? hn::Or(signs, p) : hn::And(signs, p);
      if (rule_.splitter == 0) {
        high = hn::Add(high, p);
        continue;
      }
      const V multiple = hn::Sub(hn::Add(p, splitter), splitter);
      const auto finite = hn::Lt(hn::Abs(p), hn::Inf(d));
      high = hn::Add(high, multiple);
      low = hn::Add(low, hn::IfThenElseZero(finite, hn::Sub(p, multiple)));
    }
    V t = high;
    if (rule_.splitter != 0) t = rounding::MulAddToOdd(d, low, hn::Set(d, 1.0), high);
    return Round(hn::IfThenElse(hn::Eq(t, hn::Zero(d)), hn::And(signs, hn::SignBit(d)), t));
  }

  /// x + y in the register. `plain`: RNE to at most 24 bits after RNE to 53 is one RNE of a sum of
  /// two such numbers (53 >= 2 * 24 + 2), which is exact where it is subnormal.
  HWY_INLINE V Add(V x, V y) const {
    const D d;
    if constexpr (kRule == mac::Rule::plain) return Round(hn::Add(x, y));
    const V one = hn::Set(d, 1.0);
    V t = rounding::MulAddToOdd(d, y, one, x);
    if constexpr (kRule == mac::Rule::down) t = rounding::ZeroFromBelow(d, t, y, one, x);
    return Round(t);
  }

  HWY_INLINE V Round(V t) const {
    const D d;
    if constexpr (kFree)
      return rounding::Narrow<kRule>(d, numbers_, t, rounding::BinadeOf(d, t), nullptr);
    const V m = rounding::BinadeFrom(d, t, numbers_.first);
    V y = rounding::Narrow<kRule>(d, numbers_, t, m, nullptr);
    y = hn::OrAnd(y, t, numbers_.sign_kept);
    if (HWY_UNLIKELY(rounding::AnyBeyond(d, t, t, numbers_.largest)))
      y = rounding::Replaced(d, numbers_, t, y);
    return y;
  }

  const RoundedTreeRule& rule_;
  rounding::Numbers<D> numbers_;
};

template <mac::Rule kRule, bool kFree>
HWY_NOINLINE void StepTrees(const RoundedTreeRule& rule, const mac::Constants<double>& constants,
                            const double* rows, const double* lanes, std::int64_t groups,
                            double* registers, double* level) {
  const hn::ScalableTag<double> d;
  const auto width = static_cast<std::int64_t>(hn::Lanes(d));
  const TreeSteps<kRule, kFree> steps(rule, constants);
  for (std::int64_t i = 0; i < kGroupRows; ++i) {
    auto sum = hn::Load(d, registers + i * width);
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t k = g * rule.group;
      sum = steps.Step(rows + k * kGroupRows + i, lanes + k * width, sum, level);
    }
    hn::Store(sum, d, registers + i * width);
  }
}

template <mac::Rule kRule, bool kFree = false>
void RunTrees(const RoundedTreeRule& rule, const ChainTile<float, float>& tile) {
  const mac::Constants<double> constants(rule.plan);
  const auto level = hwy::AllocateAligned<double>(static_cast<std::size_t>(rule.group) *
                                                  hn::Lanes(hn::ScalableTag<double>()));
  const auto steps = [&](const double* rows, const double* lanes, std::int64_t groups,
                         double* registers) {
    StepTrees<kRule, kFree>(rule, constants, rows, lanes, groups, registers, level.get());
  };
  GroupTile<double>(rule.group, steps, tile).Compute();
}

void RunRoundedTrees(const RoundedTreeRule& rule, const ChainTile<float, float>& tile) {
  const bool free = rule.plan.ends == mac::Ends::free;
  switch (rule.plan.rule) {
    case mac::Rule::plain:
      return free ? RunTrees<mac::Rule::plain, true>(rule, tile)
                  : RunTrees<mac::Rule::plain>(rule, tile);
    case mac::Rule::away:
      return RunTrees<mac::Rule::away>(rule, tile);
    case mac::Rule::zero:
      return free ? RunTrees<mac::Rule::zero, true>(rule, tile)
                  : RunTrees<mac::Rule::zero>(rule, tile);
    case mac::Rule::up:
      return RunTrees<mac::Rule::up>(rule, tile);
    case mac::Rule::down:
      return RunTrees<mac::Rule::down>(rule, tile);
    case mac::Rule::odd:
      return RunTrees<mac::Rule::odd>(rule, tile);
    default:
      return RunTrees<mac::Rule::even>(rule, tile);
  }
}

}  // namespace numemu::unit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::unit {

HWY_EXPORT(RunRoundedTrees);

namespace {

constexpr std::int64_t kLargestTree = 4096;

/// Products are multiples of 2^low below 2^top, sums of a leaf below 2^(top + growth). One double
/// holds those if they have at most 53 bits. Two: multiples of 2^m, m = low + 50 - growth, have at
/// most top + growth - m <= 50 bits, rests of at most 2^(m - 1) add up to at most 2^(low + 49).
bool choose_leaf_splitter(const Exponents& a, const Exponents& b, RoundedTreeRule& rule) {
  if (rule.leaf == 1 || a.empty() || b.empty()) return true;
  const int low = a.low + b.low, growth = log2_ceil(rule.leaf), top = a.top + b.top + growth;
  if (top - low <= 53) return true;
  const int middle = low + 50 - growth;
  rule.splitter = std::ldexp(1.5, 52 + middle);
  return top - middle <= 50;
}

/// Whether the register's ends are idle (Ends::free): products and C are multiples of its smallest
/// subnormal number, and so is every sum; none exceeds the largest number; none is -0 but where a
/// -0 of C or rounding down makes it so. From the start to the end a sum is rounded once per step,
/// and in a tree once per level, each time by less than 2^-M of it.
bool ends_idle(const UnitDescription& u, const RoundedTreeRule& rule, const Gemm& g,
               const std::array<Present, 2>& of, const std::vector<double>& c) {
  if (of[0].specials || of[1].specials || rule.plan.rule == mac::Rule::down) return false;
  const Exponents &a = of[0].exponents, &b = of[1].exponents;
  double bound = 0;
  if (!a.empty() && !b.empty()) {
    if (a.low + b.low < rule.plan.first_binade - rule.plan.mantissa_bits) return false;
    bound = static_cast<double>(g.k) * std::ldexp(1.0, a.top + b.top);
  }
  double largest_c = 0;
  for (const double x : c) {
    if (!std::isfinite(x) || (x == 0 && std::signbit(x))) return false;
    largest_c = std::max(largest_c, std::abs(x));
  }
  if (mac::is_foreign(u, c)) return false;
  constexpr int kLevels = 16;  // 2 + log2(4096), and more
  const double roundings = static_cast<double>(g.k / rule.group) + kLevels;
  const double growth = roundings * std::ldexp(1.0, -rule.plan.mantissa_bits);
  // 1 + growth < e^growth < 3 for growth < 1.
  return growth < 1 && 3 * (bound + largest_c) <= rule.plan.largest;
}

std::optional<RoundedTreeRule> rounded_tree_rule(const UnitDescription& u, const Gemm& g) {
  const Register& r = u.accumulator;
  if (u.core != CoreKind::tree || !mac::floats_known(u) || r.rounding.stochastic() ||
      (r.overflow_to_infinity && (r.overflow != Overflow::ieee || !r.format->has_infinity())) ||
      !fits_float32(*g.a.format) || !fits_float32(*g.b.format))
    return std::nullopt;
  const std::int64_t depth = u.k != 0 ? u.k : g.k, group = u.group != 0 ? u.group : depth;
  if (group == 0 || group > kLargestTree || (u.k != 0 && u.k % group != 0)) return std::nullopt;
  RoundedTreeRule rule;
  rule.plan = mac::double_plan(r);
  rule.group = static_cast<int>(group);
  rule.leaf = std::min(u.tree.leaf, rule.group);
  rule.round_products = u.tree.round_products || u.tree.leaf > 1;
  rule.plus_zero = u.tree.plus_zero_products;
  return rule;
}

}  // namespace

bool multiply_rounded_tree(const UnitDescription& u, const Gemm& g) {
  std::optional<RoundedTreeRule> rule = rounded_tree_rule(u, g);
  if (!rule || !dense_copies_fit(g, std::max(u.k, rule->group))) return false;
  const std::array<Present, 2> present = {scan(g.a, g.m, g.k), scan(g.b, g.n, g.k)};
  if (!choose_leaf_splitter(present[0].exponents, present[1].exponents, *rule)) return false;
  const FloatGuard guard;
  const std::vector<double> exact_c = mac::read_c(u, g);
  // A sum of numbers that are not the register's may not be exact where it is subnormal.
  if (rule->plan.rule == mac::Rule::even && rule->round_products && !mac::is_foreign(u, exact_c))
    rule->plan.rule = mac::Rule::plain;
  if (ends_idle(u, *rule, g, present, exact_c)) rule->plan.ends = mac::Ends::free;
  const std::vector<float> c(exact_c.begin(), exact_c.end());
  const Source<float> a = decode_lanes(g.a, g.m, g.k), b = decode_lanes(g.b, g.n, g.k);
  const std::int64_t instruction = u.k != 0 ? u.k : rule->group;
  const LaneRule read{.instruction = instruction};
  const LaneSide side_a(g.a, a, g.m, g.k, read), side_b(g.b, b, g.n, g.k, read);
  std::vector<float> d(static_cast<std::size_t>(g.m * g.n));
  Gemm floats = g;
  floats.d = d.data();
  for_each_lane_part(floats, side_a, side_b, instruction, g.c == nullptr ? nullptr : c.data(),
                     [&](const ChainTile<float, float>& part) {
                       HWY_DYNAMIC_DISPATCH(RunRoundedTrees)(*rule, part);
                     });
  const mac::ResultWriter writer(u, g);
  for_each_tile(g.m, g.n, 1, {.granule = 32}, [&](const Tile& tile) {
    for (std::int64_t i = tile.row_begin; i < tile.row_end; ++i)
      writer.write(i, tile.lane_begin, tile.lane_end - tile.lane_begin,
                   d.data() + i * g.n + tile.lane_begin);
  });
  return true;
}

}  // namespace numemu::unit
#endif  // HWY_ONCE
