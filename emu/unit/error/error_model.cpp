#include "emu/unit/error/error_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/error/sum_walk.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::unit {
namespace {

constexpr double kSiegmund = 0.5826;  // -zeta(1/2) / sqrt(2 pi)
constexpr double kFarthestTail = 40;  // standard deviations

double mean_of(const SumLaw& s) { return s.mean * s.count; }
double deviation(const SumLaw& s) { return std::sqrt(s.variance * s.count); }

double above_at_end(const SumLaw& s, double limit) {
  const double sd = deviation(s);
  if (sd == 0) return mean_of(s) > limit ? 1 : 0;
  return normal::cdf((mean_of(s) - limit) / sd);
}

/// The running maximum above the limit.
double above_on_way(const SumLaw& s, double limit) {
  const double sd = deviation(s);
  if (sd == 0) return std::max(0.0, mean_of(s)) > limit ? 1 : 0;
  const double from = limit + kSiegmund * std::sqrt(s.variance);
  const double reflected = normal::cdf((-from - mean_of(s)) / sd);
  const double factor =
      reflected > 0 ? portable::exp(2 * s.mean * from / s.variance) * reflected : 0;
  return std::min(1.0, normal::cdf((mean_of(s) - from) / sd) + factor);
}

SumLaw mirrored(SumLaw s) {
  s.mean = -s.mean;
  return s;
}

/// The integral of 2 (x - limit) P(X > x) from the limit on, X the farthest that the sum comes on
/// its way: E[(X - limit)^2; X > limit].
double square_beyond(const SumLaw& s, double limit) {
  constexpr int kSteps = 2000;
  const double end = mean_of(s) + kFarthestTail * deviation(s);
  if (!(end > limit)) return 0;
  const double step = (end - limit) / kSteps;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double x = (i + 0.5) * step;
    sum += 2 * x * above_on_way(s, limit + x) * step;
  }
  return sum;
}

}  // namespace

double beyond_at_end(const SumLaw& s, double limit) {
  return std::min(1.0, above_at_end(s, limit) + above_at_end(mirrored(s), limit));
}

double beyond_on_way(const SumLaw& s, double limit) {
  return std::min(1.0, above_on_way(s, limit) + above_on_way(mirrored(s), limit));
}

double saturation_noise(const SumLaw& s, double limit) {
  return square_beyond(s, limit) + square_beyond(mirrored(s), limit);
}

double wrapping_noise(const SumLaw& s, double limit) {
  // (2 j limit)^2 in turn j: the square grows by 4 limit^2 (2 j - 1) where |S| passes its start.
  double sum = 0;
  for (int j = 1; j < 1000; ++j) {
    const double share = beyond_at_end(s, (2 * j - 1) * limit);
    sum += 4 * limit * limit * (2 * j - 1) * share;
    if (share < 1e-12) break;
  }
  return sum;
}

namespace {

constexpr std::int64_t kMembers = 4096;
constexpr std::int64_t kFirstSteps = 16;
constexpr std::int64_t kMostTreeProducts = 1 << 22;
/// Share of the exact sums' mean square from which on a walk of moments gives way to additions one
/// by one, on at least so many members (their mean square is then known to 0.4 dB).
constexpr double kSwamped = 0.1;
constexpr std::int64_t kFewestMembers = 256;
constexpr double kMostAdditions = 1 << 22, kMostMade = 1 << 17;
/// Share of the sums' mean square up to which errors of one sign are followed: beyond, larger sums
/// have larger errors, which make larger sums.
constexpr double kMostLed = 0.1;
/// Share of sums that overflow up to which noise has a figure: of finite results, and of results
/// that saturate, where a sum that stays at its end makes no further errors of rounding.
constexpr double kMostInfinite = 0.01, kMostSaturated = 0.5;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

double end_of(const Register& r) {
  return r.format != nullptr ? largest_value(*r.format) : std::ldexp(1.0, r.bits - 1 - r.fraction);
}

/// An addend as it is, met by a register that stays.
Addends::Meets plain(const Sums& sums) {
  return [&sums](std::int64_t i, int) { return Meeting{.addend = sums.given[i]}; };
}

/// Of exact sums.
double mean_of(const Sums& sums) {
  return pairwise_sum(sums.size(), [&](std::int64_t i) { return sums.share(i) * sums.exact[i]; });
}

/// Of an ensemble; of fewer members, drawn from it, the more additions they make.
std::int64_t members_for(double count) {
  return std::clamp(static_cast<std::int64_t>(kMostAdditions / count), kFewestMembers, kMembers);
}

/// `count` addends in a register that starts at +0. `law`: what the addends are a sample of, where
/// it is known; they then meet a register that stays.
WalkState sum_of(const Register& r, const Sums& addends, const Addends::Meets& meets, double count,
                 Draws& draws, const Sums* law = nullptr) {
  const auto first =
      static_cast<std::int64_t>(std::min<double>(kFirstSteps, std::max(1.0, std::round(count))));
  const Sums begun = first_sums(r, addends, meets, first, draws);
  WalkState start = state_of(begun);
  // The members' mean is one of a sample; that of the law is known.
  const double mean = mean_of(law != nullptr ? *law : addends);
  start.mean += mean * static_cast<double>(first) - mean_of(begun);
  if (count <= static_cast<double>(first)) return start;
  const auto done = static_cast<double>(first);
  const Addends all(r, law != nullptr ? *law : addends, law != nullptr ? plain(*law) : meets,
                    count);
  const WalkState end = walk(start, all, done, count - done);
  // A register that stops where half a step exceeds most addends bounds its sums, whose law is then
  // far from normal: all additions are made on fewer members.
  const double squares = count * all.variance() + count * count * mean * mean;
  if (end.noise() < kSwamped * squares || count > kMostMade) return end;
  const Sums made = first_sums(r, addends, meets, std::llround(count), draws, members_for(count));
  WalkState swamped = state_of(made);
  swamped.mean += mean * count - mean_of(made);
  return swamped;
}

double cut(double x, int exponent, RoundingMode mode) {
  const double unit = std::ldexp(1.0, exponent), steps = x / unit, down = std::floor(steps);
  if (steps == down) return x;
  switch (mode) {
    case RoundingMode::rdn:
      return down * unit;
    case RoundingMode::rne: {
      const double rest = steps - down;
      const bool odd = std::fmod(down, 2.0) != 0;
      return (down + (rest > 0.5 || (rest == 0.5 && odd) ? 1 : 0)) * unit;
    }
    case RoundingMode::rodd:
      return (down + (std::fmod(down, 2.0) == 0 ? 1 : 0)) * unit;
    default:
      return std::trunc(steps) * unit;
  }
}

/// Steps of a unit: members of `size` products each.
class StepMembers {
 public:
  StepMembers(const UnitDescription& u, const ProductLaw& law, std::int64_t size, Draws& draws)
      : u_(u), size_(size) {
    // Of a symmetric law the second half mirrors the first.
    const std::int64_t drawn = law.symmetric ? kMembers / 2 : kMembers;
    for (std::int64_t t = 0; t < kMembers; ++t) {
      double sum = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        if (t >= drawn) {
          const std::int64_t at = (t - drawn) * size + i;
          products_.push_back(-products_[at]);
          exponents_.push_back(exponents_[at]);
          sum += products_.back();
          continue;
        }
        const std::int64_t at = draws.from_deck(std::ssize(law.products));
        products_.push_back(law.products[at]);
        exponents_.push_back(law.exponents[at]);
        if (products_.back() == 0 && u.alignment.zero_exponent)
          exponents_.back() = *u.alignment.zero_exponent;
        sum += products_.back();
      }
      sums_.exact.push_back(sum);
    }
    const Steps rounded(u.accumulator);
    switch (u.core) {
      case CoreKind::fused:
        for (std::int64_t t = 0; t < kMembers; ++t) sums_.given.push_back(sums_.exact[t]);
        break;
      case CoreKind::tree:
        for (std::int64_t t = 0; t < kMembers; ++t) sums_.given.push_back(tree(t, draws));
        break;
      case CoreKind::chain:
        for (const double p : sums_.exact)
          sums_.given.push_back(u.chain.fused ? p : rounded.round(p, draws.word()));
        break;
      default:
        sums_.given = sums_.exact;
    }
  }

  const Sums& sums() const { return sums_; }
  Addends::Meets meets() const {
    if (u_.core != CoreKind::fused || u_.scaling.point == Scaling::Point::groups)
      return plain(sums_);
    return [this](std::int64_t i, int binade) { return aligned(i, binade); };
  }

 private:
  int largest(std::int64_t member, std::int64_t first, std::int64_t stride) const {
    int most = u_.alignment.floor.value_or(ProductLaw::kNoExponent);
    for (std::int64_t i = first; i < size_; i += stride)
      most = std::max(most, exponents_[member * size_ + i]);
    return most;
  }
  double cut_sum(std::int64_t member, std::int64_t first, std::int64_t stride, int exponent) const {
    double sum = 0;
    for (std::int64_t i = first; i < size_; i += stride)
      sum += cut(products_[member * size_ + i], exponent - u_.alignment.fraction_bits,
                 u_.alignment.rounding);
    return sum;
  }

  Meeting aligned(std::int64_t member, int binade) const {
    const int own = largest(member, 0, 1);
    if (own == ProductLaw::kNoExponent) return {};
    if (u_.c_entry == CEntry::in_alignment) {
      const int most = std::max(own, binade);
      return {.addend = cut_sum(member, 0, 1, most),
              .grid = std::ldexp(1.0, most - u_.alignment.fraction_bits)};
    }
    double sum = 0;
    if (u_.alignment.parts == 1) {
      sum = cut_sum(member, 0, 1, own);
    } else {
      for (const std::int64_t part : {0, 1}) {
        const int exponent = largest(member, part, 2);
        if (exponent == ProductLaw::kNoExponent) continue;
        sum += cut(cut_sum(member, part, 2, exponent), own - u_.alignment.fraction_bits,
                   RoundingMode::rdn);
      }
    }
    if (u_.c_entry == CEntry::after_rounding)
      return {.addend = sum, .grid = std::ldexp(1.0, own - u_.alignment.fraction_bits)};
    const int most = std::max(own, binade);
    return {.addend = cut(sum, most - u_.second.fraction_bits, RoundingMode::rdn),
            .grid = std::ldexp(1.0, most - u_.second.c_fraction_bits),
            .down = true};
  }

  /// Products added pairwise, every sum rounded.
  double tree(std::int64_t member, Draws& draws) const {
    std::vector<double> level;
    const Steps r(u_.accumulator);
    const std::int64_t leaf = u_.tree.leaf;
    for (std::int64_t i = 0; i < size_; i += leaf) {
      double sum = 0;
      for (std::int64_t j = i; j < std::min(size_, i + leaf); ++j)
        sum += products_[member * size_ + j];
      const bool rounding = leaf > 1 || u_.tree.round_products;
      level.push_back(rounding ? r.round(sum, draws.word()) : sum);
    }
    while (level.size() > 1) {
      std::vector<double> next;
      for (std::size_t i = 0; i < level.size(); i += 2)
        next.push_back(i + 1 == level.size() ? level[i]
                                             : r.round(level[i] + level[i + 1], draws.word()));
      level = std::move(next);
    }
    return level.front();
  }

  const UnitDescription& u_;
  std::int64_t size_;
  std::vector<double> products_;
  std::vector<int> exponents_;
  Sums sums_;
};

/// Sums of two, three ... members, each sum rounded: pairs of pairs.
Sums paired(const Steps& r, Sums level, int count, Draws& draws) {
  for (; count > 1; count = (count + 1) / 2) {
    Sums next;
    for (std::int64_t i = 0; i < level.size(); ++i) {
      const std::int64_t a = draws.below(level.size()), b = draws.below(level.size());
      next.given.push_back(r.round(level.given[a] + level.given[b], draws.word()));
      next.exact.push_back(level.exact[a] + level.exact[b]);
    }
    level = std::move(next);
  }
  return level;
}

class Model {
 public:
  Model(const UnitDescription& u, const ProductLaw& law, std::int64_t k, std::uint64_t seed)
      : u_(u), law_(law), k_(static_cast<double>(k)), draws_(seed) {}

  SumError figure() {
    SumError out;
    if (u_.subnormals.flush_inputs && subnormal_operands())
      return none("it flushes subnormal operands");
    if (u_.core == CoreKind::table) return none("its products are those of a table");
    if (is_integer_core(u_)) {
      add_overflow(out);
      return out;
    }
    if (u_.chain.kahan) {
      kahan(out);
    } else {
      const WalkState end = total();
      end_ = end;
      if (!unknown_.empty()) return none(unknown_);
      const double squares = k_ * law_.variance() + k_ * k_ * law_.mean * law_.mean;
      const auto directed = [](const Register& r) {
        return r.rounding.mode == RoundingMode::rup || r.rounding.mode == RoundingMode::rdn;
      };
      if ((directed(u_.accumulator) || directed(result_register(u_))) &&
          end.noise() > kMostLed * squares)
        return none("its directed rounding, whose errors add up to sums of their own size");
      out.noise = end.noise();
      out.bias = end.bias;
    }
    add_overflow(out);
    const bool saturates =
        u_.accumulator.format == nullptr || (u_.accumulator.overflow == Overflow::saturate &&
                                             result_register(u_).overflow == Overflow::saturate);
    if (out.overflow > (saturates ? kMostSaturated : kMostInfinite)) {
      SumError withheld = none(saturates ? "most of its sums saturate" : "its sums overflow");
      withheld.overflow = out.overflow;
      return withheld;
    }
    return out;
  }

 private:
  static SumError none(std::string why) {
    return {.noise = kUnknown, .bias = kUnknown, .overflow = kUnknown, .none = std::move(why)};
  }

  /// Of formats whose subnormals are not those of float32.
  bool subnormal_operands() const {
    constexpr int kWideExponent = 8;
    const auto narrow = [](const Format* f) {
      return f != nullptr && f->kind == Kind::floating && f->exponent_bits < kWideExponent;
    };
    return narrow(u_.a) || narrow(u_.b);
  }

  WalkState total() {
    if (u_.outer.every == 0) return level(k_);
    const double inner = std::min(k_, static_cast<double>(u_.outer.every));
    inner_ = level(inner);
    const Sums sums = members_of(*inner_, u_.accumulator, kMembers);
    return sum_of(u_.outer.accumulator, sums, plain(sums), k_ / inner, draws_);
  }

  /// Sums of `count` products that end in the unit's register.
  WalkState level(double count) {
    const Register& r = u_.accumulator;
    if (u_.c_entry == CEntry::after_rounding && u_.k != 0 && count > u_.k) {
      const Sums sums = members_of(instruction(u_.k), r, kMembers);
      Register with_c = r;
      with_c.rounding = u_.core == CoreKind::fused ? u_.c_rounding : r.rounding;
      return sum_of(with_c, sums, plain(sums), count / u_.k, draws_);
    }
    return instruction(count);
  }

  WalkState instruction(double count) {
    const Register& r = u_.accumulator;
    if (u_.core == CoreKind::chain) {
      const StepMembers steps(u_, law_, 1, draws_);
      const double inner =
          u_.chain.chunk != 0 ? std::min(count, double(u_.chain.chunk)) : count / u_.chain.chains;
      const Sums law{law_.values, law_.values, law_.shares};
      const WalkState one = sum_of(r, steps.sums(), plain(steps.sums()), inner, draws_,
                                   u_.chain.fused && law.size() > 0 ? &law : nullptr);
      if (u_.chain.chunk == 0 && u_.chain.chains == 1) return one;
      if (u_.chain.chunk != 0) inner_ = one;
      const Sums sums = members_of(one, r, kMembers);
      if (u_.chain.chunk != 0) return sum_of(r, sums, plain(sums), count / inner, draws_);
      return state_of(paired(Steps(r), sums, u_.chain.chains, draws_));
    }
    const int size = products_of_step(u_);
    if (size == 0) return whole(count);
    const double own = std::min<double>(size, count);
    const StepMembers steps(u_, law_, static_cast<std::int64_t>(own), draws_);
    return sum_of(r, steps.sums(), steps.meets(), count / own, draws_);
  }

  /// One step that takes the whole depth.
  WalkState whole(double count) {
    if (count * kMembers <= kMostTreeProducts) {
      const StepMembers steps(u_, law_, static_cast<std::int64_t>(count), draws_);
      return sum_of(u_.accumulator, steps.sums(), steps.meets(), 1, draws_);
    }
    if (u_.core != CoreKind::exact) {
      unknown_ = "a step of so many products";
      return {};
    }
    // The exact sum, which lies on the products' lowest bit.
    WalkState s;
    s.mean = count * law_.mean;
    s.variance = count * law_.variance();
    Sums sums = members_of(s, lowest_bits(), kMembers);
    sums.exact = sums.given;
    return sum_of(u_.accumulator, sums, plain(sums), 1, draws_);
  }

  /// The last rounding of the sum, and that of every product less what the one before it lost.
  void kahan(SumError& out) {
    WalkState s;
    s.mean = k_ * law_.mean;
    s.variance = k_ * law_.variance();
    const Steps steps(u_.accumulator);
    const Sums sums = rounded(members_of(s, lowest_bits(), kMembers), steps);
    Sums products;
    for (std::int64_t t = 0; t < kMembers; ++t) {
      const std::int64_t other = draws_.below(kMembers);
      products.given.push_back(law_.products[draws_.from_deck(std::ssize(law_.products))] -
                               (sums.given[other] - sums.exact[other]));
    }
    const WalkState last = state_of(sums), each = state_of(rounded(products, steps));
    out.bias = last.bias + k_ * each.bias;
    out.noise = last.spread + k_ * each.spread + out.bias * out.bias;
  }

  /// A register of steps of the products' lowest bit: that of exact sums.
  Register lowest_bits() const {
    Register r;
    r.bits = 64;
    r.fraction = -law_.lowest_bit;
    return r;
  }

  Sums rounded(const Sums& sums, const Steps& steps) {
    Sums out{.given = {}, .exact = sums.given};
    for (const double x : out.exact) out.given.push_back(steps.round(x, draws_.word()));
    return out;
  }

  /// Sums that start at 0 in the unit's register, and what they end in.
  void add_overflow(SumError& out) const {
    const double chunk = u_.outer.every != 0   ? u_.outer.every
                         : u_.chain.chunk != 0 ? u_.chain.chunk
                                               : k_;
    const double size = std::max<double>(1, products_of_step(u_)), inner = std::min(chunk, k_);
    const bool two = inner < k_;
    add_register(out, u_.accumulator, two ? inner_ : end_, inner, std::min(size, inner),
                 k_ / inner);
    if (two) add_register(out, result_register(u_), end_, k_, inner, 1);
  }

  /// `state`: of the register at the end, where it rounds.
  void add_register(SumError& out, const Register& r, const std::optional<WalkState>& state,
                    double count, double size, double sums) const {
    SumLaw law{law_.mean * size, law_.variance() * size, count / size};
    if (state) law = {state->mean / law.count, state->variance / law.count, law.count};
    const double limit = end_of(r);
    const bool at_end = r.format == nullptr && r.integer == IntegerOverflow::wrap;
    const double one = at_end ? beyond_at_end(law, limit) : beyond_on_way(law, limit);
    out.overflow = std::min(1.0, out.overflow + one * sums);
    if (r.format == nullptr)
      out.noise += sums * (at_end ? wrapping_noise(law, limit) : saturation_noise(law, limit));
    else if (r.overflow == Overflow::saturate)
      out.noise += sums * saturation_noise(law, limit);
  }

  const UnitDescription& u_;
  const ProductLaw& law_;
  double k_;
  Draws draws_;
  std::string unknown_;
  std::optional<WalkState> inner_, end_;  ///< of floating sums
};

}  // namespace

SumError sum_error(const UnitDescription& u, const ProductLaw& law, std::int64_t k,
                   std::uint64_t seed) {
  if (k < 1) throw Error("error model: expected at least one product");
  return Model(u, law, k, seed).figure();
}

}  // namespace numemu::unit
