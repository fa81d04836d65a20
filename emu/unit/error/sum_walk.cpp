#include "emu/unit/error/sum_walk.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "formats/analysis/normal_law.hpp"
#include "formats/analysis/outcome_law.hpp"

namespace numemu::unit {

std::int64_t Draws::from_deck(std::int64_t n) {
  if (deck_.empty()) {
    for (std::int64_t i = 0; i < n; ++i) deck_.push_back(i);
    for (std::int64_t i = n - 1; i > 0; --i) std::swap(deck_[i], deck_[below(i + 1)]);
  }
  const std::int64_t top = deck_.back();
  deck_.pop_back();
  return top;
}

Steps::Steps(const Register& r) : rounding_(r.rounding) {
  constexpr int kFixed = 1 << 12;  // above the exponent of every sum
  if (r.format != nullptr) {
    least_ = std::ilogb(smallest_normal(*r.format));
    mantissa_ = r.format->mantissa_bits;
  } else {
    least_ = kFixed;
    mantissa_ = kFixed + r.fraction;
  }
}

namespace {

/// The probability that a number `fraction` of a step above a multiple of the step goes up, not
/// down: over random words, and over whether the multiple is odd, which has the probability `odd`.
double up_share(const Rounding& rounding, double fraction, double odd, bool negative) {
  switch (rounding.mode) {
    case RoundingMode::rne:
      return fraction == 0.5 ? odd : fraction > 0.5 ? 1 : 0;
    case RoundingMode::rna:
      return fraction == 0.5 ? !negative : fraction > 0.5 ? 1 : 0;
    case RoundingMode::rtz:
      return negative;
    case RoundingMode::rup:
      return 1;
    case RoundingMode::rdn:
      return 0;
    case RoundingMode::rodd:
      return 1 - odd;
    case RoundingMode::sr:
      return negative ? 1 - up_probability(rounding, 1 - fraction)
                      : up_probability(rounding, fraction);
  }
  return 0;
}

bool is_odd(double whole) { return std::fmod(whole, 2.0) != 0; }

}  // namespace

double Steps::round(double x, double word) const {
  if (x == 0) return x;
  const double u = at(std::ilogb(x));
  const double down = std::floor(x / u), fraction = x / u - down;
  if (fraction == 0) return x;
  const double share = up_share(rounding_, fraction, is_odd(down), x < 0);
  // A word decides on going away from zero.
  const bool up = x > 0 ? word < share : word >= 1 - share;
  return (down + (up ? 1 : 0)) * u;
}

RoundingError rounding_error(const Rounding& rounding, double x, double u, bool negative) {
  const double down = std::floor(x / u), fraction = x / u - down;
  if (fraction == 0) return {};
  // Under rodd S is odd, as an inexact sum before left it; else it is odd half of the time.
  const double odd = rounding.mode != RoundingMode::rodd ? 0.5 : is_odd(down) ? 0 : 1;
  const double up = up_share(rounding, fraction, odd, negative);
  const double below = -fraction * u, above = (1 - fraction) * u;
  return {up * above + (1 - up) * below, up * above * above + (1 - up) * below * below};
}

namespace {

constexpr std::int64_t kGroups = 24;
constexpr double kSparse = 48;        // steps taken together are at most this share of those done
constexpr double kMostPulled = 0.1;   // of the variance of sums, in one stride
constexpr int kLowestBinade = -2000;  // of zero
constexpr double kFarthest = 9;       // standard deviations: less than 1e-18 lies beyond

/// Of cutting a register that lies on steps of u anywhere on them.
RoundingError cut_error(const Meeting& m, double u, bool negative) {
  if (m.grid <= u) return {};
  const double mean = (m.grid - u) / 2;
  return {negative && !m.down ? mean : -mean, (m.grid - u) * (2 * m.grid - u) / 6};
}

}  // namespace

Addends::Addends(const Register& r, const Sums& sums, const Meets& meets, double count) {
  const std::int64_t n = sums.size();
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::int64_t i) { return sums.exact[i]; });
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double p = sums.exact[i];
    mean_ += sums.share(i) * p;
    variance_ += sums.share(i) * p * p;
    largest = std::max(largest, std::fabs(p));
  }
  variance_ = std::max(0.0, variance_ - mean_ * mean_);
  const double most =
      std::max(largest, std::fabs(mean_) * count + kFarthest * std::sqrt(variance_ * count));
  first_ = (most > 0 ? std::ilogb(most) : 0) + 2 - kBinades;
  const Steps steps(r);
  double taken = 0;  // share of the groups so far
  std::int64_t begin = 0, end = 0;
  for (std::int64_t g = 0; g < kGroups && begin < n; ++g, begin = end) {
    double size = 0;
    const double to = static_cast<double>(g + 1) / static_cast<double>(kGroups);
    while (end < n && (end == begin || taken + size + sums.share(order[end]) / 2 <= to))
      size += sums.share(order[end++]);
    if (g + 1 == kGroups)
      for (; end < n; ++end) size += sums.share(order[end]);
    taken += size;
    Group& group = groups_.emplace_back();
    group.share = size;
    for (std::int64_t i = begin; i < end; ++i) {
      const double p = sums.exact[order[i]], share = sums.share(order[i]) / size;
      group.mean += share * p;
      group.variance += share * p * p;
    }
    group.variance = std::max(0.0, group.variance - group.mean * group.mean);
    for (std::vector<Cell>& cells : group.by_binade) cells.resize(kBinades);
    for (std::int64_t i = begin; i < end; ++i) {
      const double p = sums.exact[order[i]], share = sums.share(order[i]) / size;
      for (int b = 0; b < kBinades; ++b) {
        const double u = steps.at(first_ + b);
        const Meeting meeting = meets(order[i], first_ + b);
        for (const bool negative : {false, true}) {
          Cell& cell = group.by_binade[negative ? 1 : 0][b];
          const RoundingError rounding = rounding_error(r.rounding, meeting.addend, u, negative);
          const RoundingError cut = cut_error(meeting, u, negative);
          const double before = meeting.addend - p, mean = rounding.mean + cut.mean;
          cell.error += share * (before + mean);
          cell.square += share * (before * before + 2 * before * mean + rounding.square +
                                  cut.square + 2 * rounding.mean * cut.mean);
          cell.product += share * p * (before + mean);
        }
      }
    }
  }
}

Sums first_sums(const Register& r, const Sums& addends, const Addends::Meets& meets,
                std::int64_t count, Draws& draws, std::int64_t members) {
  const Steps steps(r);
  Sums out;
  for (std::int64_t t = 0; t < (members > 0 ? members : addends.size()); ++t) {
    double given = 0, exact = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = draws.below(addends.size());
      const Meeting m = meets(at, given == 0 ? kLowestBinade : std::ilogb(given));
      if (m.grid > 0) {
        const double cut = given / m.grid;
        given = (m.down ? std::floor(cut) : std::trunc(cut)) * m.grid;
      }
      given = steps.round(given + m.addend, draws.word());
      exact += addends.exact[at];
    }
    out.given.push_back(given);
    out.exact.push_back(exact);
  }
  return out;
}

WalkState state_of(const Sums& sums) {
  WalkState s;
  const auto n = static_cast<double>(sums.size());
  for (std::int64_t i = 0; i < sums.size(); ++i) {
    s.mean += sums.given[i] / n;
    s.bias += (sums.given[i] - sums.exact[i]) / n;
  }
  for (std::int64_t i = 0; i < sums.size(); ++i) {
    const double x = sums.given[i] - s.mean, d = sums.given[i] - sums.exact[i] - s.bias;
    s.variance += x * x / n;
    s.spread += d * d / n;
    s.common += x * d / n;
  }
  return s;
}

namespace {

/// Means over one addition: of the error, its square, its covariance with the addend and with S.
struct StepError {
  double error = 0, square = 0, product = 0, sum = 0;
};

StepError expected(const WalkState& s, const Addends& addends) {
  StepError all;
  for (const Addends::Group& group : addends.groups()) {
    const double mean = s.mean + group.mean;
    const double variance = s.variance + group.variance, sd = std::sqrt(variance);
    const double slope = variance > 0 ? s.variance / variance : 0;
    for (const bool negative : {false, true}) {
      const std::vector<Addends::Cell>& cells = group.by_binade[negative ? 1 : 0];
      const double centre = negative ? -mean : mean;  // of the magnitude
      // From the top down: below `low` nothing is left that counts.
      double high_z = HUGE_VAL;
      for (int b = addends.binades() - 1; b >= 0; --b) {
        const double low = b == 0 ? 0 : std::ldexp(1.0, addends.first_binade() + b);
        double share = 0, first = 0;
        if (sd > 0) {
          const double low_z = (low - centre) / sd;
          if (low_z < kFarthest && high_z > -kFarthest) {
            share = normal::between(low_z, high_z);
            first = sd * (normal::pdf(low_z) - normal::pdf(high_z));  // of the magnitude's distance
          }
          high_z = low_z;
        } else {
          const double high = b + 1 == addends.binades() ? HUGE_VAL : std::ldexp(low, 1);
          share = centre >= low && centre < high && (centre > 0 || !negative) ? 1 : 0;
        }
        if (share == 0) continue;
        const Addends::Cell& cell = cells[b];
        const double weight = group.share * share;
        all.error += weight * cell.error;
        all.square += weight * cell.square;
        all.product += weight * cell.product;
        all.sum += group.share * slope * (negative ? -first : first) * cell.error;
      }
    }
  }
  all.product -= addends.mean() * all.error;
  return all;
}

}  // namespace

WalkState walk(WalkState s, const Addends& addends, double done, double steps) {
  const double end = done + steps;
  while (done < end) {
    const StepError e = expected(s, addends);
    // Where rounding pulls sums back, as toward zero, a stride beyond the time that takes would
    // overshoot.
    const double pull = s.variance > 0 ? 2 * std::fabs(e.sum + e.product) / s.variance : 0;
    double stride = std::floor(done / kSparse);
    if (pull * stride > kMostPulled) stride = std::floor(kMostPulled / pull);
    const double now = std::min(end - done, std::max(1.0, stride));
    const double own = std::max(0.0, e.square - e.error * e.error);
    const double tie = s.variance > 0 ? s.common / s.variance : 0;
    s.mean += now * (addends.mean() + e.error);
    s.bias += now * e.error;
    s.spread = std::max(0.0, s.spread + now * (own + 2 * tie * e.sum));
    s.common += now * (tie * e.sum + e.sum + e.product + own);
    s.variance =
        std::max(0.0, s.variance + now * (addends.variance() + own + 2 * e.product + 2 * e.sum));
    done += now;
  }
  return s;
}

Sums members_of(const WalkState& s, const Register& r, std::int64_t count) {
  Sums out;
  const double tie = s.variance > 0 ? s.common / s.variance : 0;
  const double rest = std::sqrt(std::max(0.0, s.spread - tie * s.common));
  Register nearest = r;
  nearest.rounding = {};
  const Steps steps(nearest);
  constexpr std::int64_t kShuffle = 389;  // odd: every other quantile once, count a power of two
  for (std::int64_t i = 0; i < count; ++i) {
    const auto quantile = [&](std::int64_t at) {
      return normal::quantile((static_cast<double>(at) + 0.5) / static_cast<double>(count));
    };
    // A member and its mirror image have mirrored quantiles.
    const bool upper = 2 * i >= count;
    const std::int64_t below = upper ? count - 1 - i : i, other = below * kShuffle % count;
    const double distance = std::sqrt(s.variance) * quantile(i);
    const double given = steps.round(s.mean + distance, 0);
    const double second = upper ? -quantile(other) : quantile(other);
    out.given.push_back(given);
    out.exact.push_back(given - (s.bias + tie * distance + rest * second));
  }
  return out;
}

}  // namespace numemu::unit
