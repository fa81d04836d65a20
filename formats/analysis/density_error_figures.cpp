// Error figures under a density: Gauss rules on pieces cut where the integrand bends.
#include <algorithm>
#include <array>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "formats/analysis/error_figures.hpp"
#include "formats/error.hpp"

namespace numemu {
namespace {

/// Adds f(x, weight of x) over [a, b] by the Gauss-Legendre rule of N points.
template <unsigned N, class F>
void gauss(double a, double b, const F& f) {
  using Rule = boost::math::quadrature::gauss<double, N>;
  const auto& at = Rule::abscissa();
  const auto& weights = Rule::weights();
  const double middle = a + (b - a) / 2, half = (b - a) / 2;
  for (std::size_t i = 0; i < at.size(); ++i) {
    f(middle + half * at[i], half * weights[i]);
    if (at[i] != 0) f(middle - half * at[i], half * weights[i]);
  }
}

/// The rule for an interval that is `narrowness` times as wide as the integrand is smooth: with a
/// pole at 1 / narrowness half-widths from the middle, a rule of N points leaves a relative error
/// of about (2 / narrowness)^(-2 N), below 1e-14 in each case.
template <class F>
void gauss_as_needed(double a, double b, double narrowness, const F& f) {
  if (narrowness < 0x1p-7) return gauss<3>(a, b, f);
  if (narrowness < 0x1p-4) return gauss<5>(a, b, f);
  gauss<10>(a, b, f);
}

class Integrator {
 public:
  explicit Integrator(const Density& density) : density_(density), knots_(density.knots()) {}

  /// Calls f(x, probability of x's surroundings) over [low, high]. `poles`: f has 1/x or 1/x^2 in
  /// it. False where the integral of 1/x^2 diverges because [low, high] touches zero and the
  /// density is positive there; f is called all the same.
  template <class F>
  bool over(double low, double high, bool poles, const F& f) const {
    low = std::max(low, knots_.front());
    high = std::min(high, knots_.back());
    bool converges = true;
    auto next = std::upper_bound(knots_.begin(), knots_.end(), low);
    while (low < high) {
      const double end = next == knots_.end() ? high : std::min(high, *next);
      const double width = next == knots_.end() ? end - low : *next - *std::prev(next);
      // Cut at zero in any case: a node at exactly zero would count as no error at all.
      const double zero = std::clamp(0.0, low, end);
      for (const auto& [a, b] : {std::pair(low, zero), std::pair(zero, end)}) {
        if (!(a < b)) continue;
        if (poles) {
          converges &= one_side(a, b, width, f);
        } else {
          smooth(a, b, (b - a) / width, f);
        }
      }
      low = end;
      if (next != knots_.end()) ++next;
    }
    return converges;
  }

 private:
  /// An interval on one side of zero, cut so that its ends are at most a factor of two apart.
  template <class F>
  bool one_side(double low, double high, double width, const F& f) const {
    const double sign = low >= 0 ? 1 : -1;
    double near = std::min(std::abs(low), std::abs(high));
    const double far = std::max(std::abs(low), std::abs(high));
    if (near == 0) {
      smooth(low, high, (high - low) / width, f);
      return !(density_.pdf(0) > 0);
    }
    while (near < far) {
      const double end = far <= 2 * near ? far : 2 * near;
      const double narrowness = std::max((end - near) / (end + near), (end - near) / width);
      smooth(std::min(sign * near, sign * end), std::max(sign * near, sign * end), narrowness, f);
      near = end;
    }
    return true;
  }

  template <class F>
  void smooth(double low, double high, double narrowness, const F& f) const {
    gauss_as_needed(low, high, narrowness,
                    [&](double x, double weight) { f(x, weight * density_.pdf(x)); });
  }

  const Density& density_;
  std::vector<double> knots_;
};

/// One interval with constant P(far), or P(far) = the fraction d less `lag`.
struct Step {
  double from, to;  ///< fractions of the gap
  bool constant;
  double p;  ///< of the constant
};

/// Calls f with the steps of up_probability() in a gap. All of them, or the first `budget` and the
/// rest as one straight line.
template <class F>
void for_each_step(const Rounding& rounding, std::int64_t budget, const F& f) {
  const double steps = std::ldexp(1.0, rounding.random_bits);
  const bool down = rounding.variant == StochasticVariant::a;
  const auto begin = [&](std::int64_t k) {  // where P becomes k / 2^n
    const auto at = static_cast<double>(k);
    return std::clamp((down ? at : at - 0.5) / steps, 0.0, 1.0);
  };
  const auto last = std::int64_t{1} << rounding.random_bits;
  const std::int64_t listed = std::min(budget, last + 1);
  for (std::int64_t k = 0; k < listed; ++k)
    f(Step{begin(k), k == last ? 1 : begin(k + 1), true, static_cast<double>(k) / steps});
  if (listed <= last) f(Step{begin(listed), 1, false, 0});
}

/// How far P(far) lies below the fraction on average.
double lag_of(const Rounding& rounding) {
  return rounding.variant == StochasticVariant::a ? std::ldexp(0.5, -rounding.random_bits) : 0;
}

/// The part of FigureSums that the MSE needs.
struct SquareSums {
  static constexpr bool kPoles = false;  ///< nothing is divided by x
  double finite = 0, square = 0, relative = 0, projection = 0, overflow = 0, underflow = 0;
  void add(double w, double x, double value) {
    if (!std::isfinite(value)) return;
    finite += w;
    square += w * (value - x) * (value - x);
  }
};

struct AllSums : FigureSums {
  static constexpr bool kPoles = true;
};

/// What the steps add to (1 - P) d^2 + P (1 - d)^2 beyond their line, in units of 4^-n, for an
/// even density: P stays while d grows, which correlates the two by -1/12 inside the steps;
/// rounding to nearest has half a step at d = 1 that adds 1/8. Both terms of d^2 cancel, which
/// leaves -2 d times the excess of P: d P itself gets -1/2 of this.
double curvature_of(const Rounding& rounding) {
  return rounding.variant == StochasticVariant::a ? 1.0 / 6 : -1.0 / 12;
}

template <class Sums>
class DensitySums {
 public:
  DensitySums(const OutcomeLaw& law, double scale, const Density& density)
      : law_(law), scale_(scale), integrator_(density) {
    const auto gaps = static_cast<std::int64_t>(law.pieces.size());
    const bool all = law.rounding.stochastic() && law.rounding.random_bits < 40 &&
                     (gaps << law.rounding.random_bits) <= kMostSteps;
    steps_ = all ? kMostSteps : 0;
  }

  void add_pieces(double zero_mass) {
    for (const OutcomePiece& piece : law_.pieces) {
      if (piece.stochastic()) {
        add_gap(piece);
      } else {
        add(piece.low * scale_, piece.high * scale_, piece.near, 1);
      }
    }
    if (zero_mass > 0) add_zero(zero_mass);
  }
  void add_tiny() {
    for (const OutcomePiece& piece : law_.tiny) add_tiny(piece);
  }
  const Sums& sums() const { return sums_; }
  /// The relative error has a finite mean.
  bool converges() const { return converges_; }

 private:
  /// [low, high] gives `outcome` with probability p.
  void add(double low, double high, const PossibleResult& outcome, double p) {
    if (p == 0) return;
    const double value = outcome.value * scale_;
    const bool poles = Sums::kPoles && value != 0 && std::isfinite(value);
    converges_ &= integrator_.over(low, high, poles, [&](double x, double w) {
      sums_.add(p * w, x, value);
      if (outcome.overflow) sums_.overflow += p * w;
    });
  }

  void add_gap(const OutcomePiece& gap) {
    // Next to zero the relative error follows the steps themselves: 1/x^2 dwells on the first ones.
    constexpr std::int64_t kFirstSteps = 4096;
    const bool at_zero = gap.from == 0;
    for_each_step(law_.rounding, at_zero ? std::max(steps_, kFirstSteps) : steps_,
                  [&](const Step& step) { add_step(gap, step); });
  }

  void add_step(const OutcomePiece& gap, const Step& step) {
    const double length = (gap.to - gap.from) * scale_, from = gap.from * scale_;
    const double a = from + length * step.from, b = from + length * step.to;
    // The piece may be a part of its gap only.
    const double low = std::max(std::min(a, b), gap.low * scale_);
    const double high = std::min(std::max(a, b), gap.high * scale_);
    if (!(low < high)) return;
    if (step.constant) {
      add(low, high, gap.near, 1 - step.p);
      add(low, high, gap.far, step.p);
      return;
    }
    const double near = gap.near.value * scale_, far = gap.far.value * scale_;
    const double one = std::ldexp(1.0, -law_.rounding.random_bits);
    const double lag = lag_of(law_.rounding);
    const double gain =
        std::isfinite(far) ? (far - near) * length * one * one * curvature_of(law_.rounding) : 0;
    const bool poles = Sums::kPoles && (near != 0 || far != 0);
    converges_ &= integrator_.over(low, high, poles, [&](double x, double w) {
      const double p = (x - from) / length - lag;  // below zero in the first half step of `a`
      sums_.add((1 - p) * w, x, near);
      sums_.add(p * w, x, far);
      sums_.overflow += w * ((gap.near.overflow ? 1 - p : 0) + (gap.far.overflow ? p : 0));
      sums_.square += w * gain;
      sums_.projection -= w * gain / 2;
      if (x != 0) sums_.relative += w * gain / (x * x);
    });
  }

  void add_tiny(const OutcomePiece& piece) {
    if (!piece.stochastic()) {
      if (piece.near.value > 0)
        integrator_.over(piece.low * scale_, piece.high * scale_, false,
                         [&](double, double w) { sums_.underflow += w; });
      return;
    }
    const double length = (piece.to - piece.from) * scale_, from = piece.from * scale_;
    // Up to 12 bits step by step; the straight line is within 4^-12 beyond.
    constexpr int kListedBits = 12;
    const int bits = law_.rounding.random_bits;
    const double lag = lag_of(law_.rounding);
    for_each_step(law_.rounding, bits <= kListedBits ? kMostSteps : 0, [&](const Step& step) {
      const double a = from + length * step.from, b = from + length * step.to;
      integrator_.over(std::min(a, b), std::max(a, b), false, [&](double x, double w) {
        const double p = step.constant ? step.p : (x - from) / length - lag;
        sums_.underflow += w * ((1 - p) * piece.near.value + p * piece.far.value);
      });
    });
  }

  void add_zero(double mass) {
    const OutcomePiece& piece = piece_at(law_.pieces, 0, scale_);
    const double p = piece.stochastic()
                         ? up_probability(law_.rounding, (0 - piece.from) / (piece.to - piece.from))
                         : 0;
    sums_.add(mass * (1 - p), 0, piece.near.value * scale_);
    sums_.add(mass * p, 0, piece.far.value * scale_);
    if (piece.near.value != 0 || p > 0)
      sums_.underflow += mass * piece_at(law_.tiny, 0, scale_).near.value;
  }

  const OutcomeLaw& law_;
  double scale_;
  Integrator integrator_;
  std::int64_t steps_ = 0;
  Sums sums_;
  bool converges_ = true;
};

void check(double scale) {
  if (!(scale > 0) || std::isinf(scale))
    throw Error("error figures: the scale must be finite and positive");
}

}  // namespace

ErrorFigures error_figures(const OutcomeLaw& law, double scale, const Density& density) {
  check(scale);
  DensitySums<AllSums> sums(law, scale, density);
  sums.add_pieces(density.zero_mass());
  sums.add_tiny();
  ErrorFigures out = sums.sums().figures();
  if (!sums.converges()) out.relative = {std::numeric_limits<double>::infinity(), 0};
  return out;
}

double mean_square_error(const OutcomeLaw& law, double scale, const Density& density) {
  check(scale);
  DensitySums<SquareSums> sums(law, scale, density);
  sums.add_pieces(density.zero_mass());
  return sums.sums().square / sums.sums().finite;
}

}  // namespace numemu
