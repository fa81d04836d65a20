#include "formats/analysis/comparison.hpp"

#include <algorithm>
#include <cmath>

#include "formats/portable/gamma.hpp"

namespace numemu {
namespace {

constexpr double kStandardErrors = 4, kInterval = 1.959963984540054;
constexpr double kTail = 3.167e-5;  // P(Z > 4)
// Two orders of summing up to 1e9 numbers, and partial sums of either sign.
constexpr double kRounding = 1e-10;

double standard_error(double variance, std::int64_t n) {
  return std::sqrt(variance / static_cast<double>(n));
}

Verdict verdict(bool holds) { return decide(holds, !holds); }

/// P(X >= count) below and P(X < count) above, 0 < count <= n, of n draws that hit with chance p.
portable::Shares binomial(double n, double count, double p) {
  return portable::beta_shares(count, n - count + 1, p, 1 - p);
}

/// The chance p at which `below` becomes false.
template <class Below>
double chance(const Below& below) {
  double high = 1;
  while (high > 1e-300 && !below(high / 2)) high /= 2;
  return portable::crossing(high / 2, high, below);
}

}  // namespace

Comparison compare_mean(const Figure& predicted, const Figure& measured, std::int64_t n,
                        double size) {
  const double own = standard_error(measured.variance, n);
  Comparison out{measured.mean - kInterval * own, measured.mean + kInterval * own,
                 Verdict::undecided};
  if (predicted.mean == measured.mean) out.verdict = Verdict::holds;  // infinities too
  if (!std::isfinite(predicted.mean) || !std::isfinite(measured.mean)) return out;
  const double given = standard_error(predicted.variance, n);
  const double allowed = kStandardErrors * std::max(own, given);
  const double magnitude = std::max(size, std::abs(predicted.mean));
  if (!std::isfinite(given) || kStandardErrors * given > magnitude) return out;
  out.verdict =
      verdict(std::abs(measured.mean - predicted.mean) <= allowed + kRounding * magnitude);
  return out;
}

Comparison compare_mass(const Figure& predicted, const Figure& measured, std::int64_t n) {
  const auto draws = static_cast<double>(n);
  const double count = std::round(measured.mean * draws);
  Comparison out;
  // Clopper and Pearson's interval.
  const auto too_low = [&](double p) { return binomial(draws, count, p).below < 0.025; };
  const auto not_too_high = [&](double p) { return binomial(draws, count + 1, p).above > 0.025; };
  out.low = count > 0 ? chance(too_low) : 0;
  out.high = count < draws ? chance(not_too_high) : 1;
  const double p = std::clamp(predicted.mean, 0.0, 1.0);
  if (p < 1e-300 || p > 1 - 1e-15) {
    out.verdict = verdict(count == (p < 0.5 ? 0 : draws));
    return out;
  }
  const double at_most = count < draws ? binomial(draws, count + 1, p).above : 1;
  const double at_least = count > 0 ? binomial(draws, count, p).below : 1;
  out.verdict = verdict(std::min(at_most, at_least) >= kTail);
  return out;
}

Comparison compare_sample(const Figure& predicted, const Figure& measured, std::int64_t n,
                          double size) {
  const double error = standard_error(predicted.variance, n);
  Comparison out{measured.mean - kInterval * error, measured.mean + kInterval * error,
                 Verdict::holds};
  if (predicted.mean == measured.mean) return out;
  const double magnitude = std::max(size, std::abs(predicted.mean));
  out.verdict = verdict(std::abs(measured.mean - predicted.mean) <=
                        kStandardErrors * error + kRounding * magnitude);
  return out;
}

}  // namespace numemu
