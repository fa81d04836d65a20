#include "formats/analysis/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "formats/analysis/outcome_law.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"
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

FigureComparison compare_mean(const Figure& predicted, const Figure& measured, std::int64_t n,
                              double size) {
  const double own = standard_error(measured.variance, n);
  FigureComparison out{measured.mean - kInterval * own, measured.mean + kInterval * own,
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

FigureComparison compare_mass(const Figure& predicted, const Figure& measured, std::int64_t n) {
  const auto draws = static_cast<double>(n);
  const double count = std::round(measured.mean * draws);
  FigureComparison out;
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

FigureComparison compare_sample(const Figure& predicted, const Figure& measured, std::int64_t n,
                                double size) {
  const double error = standard_error(predicted.variance, n);
  FigureComparison out{measured.mean - kInterval * error, measured.mean + kInterval * error,
                       Verdict::holds};
  if (predicted.mean == measured.mean) return out;
  const double magnitude = std::max(size, std::abs(predicted.mean));
  out.verdict = verdict(std::abs(measured.mean - predicted.mean) <=
                        kStandardErrors * error + kRounding * magnitude);
  return out;
}

double sqnr_half_interval(std::int64_t n, std::int64_t parts, const SqnrPart& sums_of) {
  if (parts < 2) return NAN;
  std::vector<SqnrSums> all;
  double signal = 0, error = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = n * part / parts;
    all.push_back(sums_of(first, n * (part + 1) / parts - first));
    signal += all.back().signal;
    error += all.back().error;
  }
  if (!(error > 0)) return 0;
  double spread = 0;  // of error - ratio * signal
  for (const SqnrSums& part : all) {
    const double rest = part.error - error / signal * part.signal;
    spread += rest * rest;
  }
  const auto count = static_cast<double>(parts);
  return kInterval * 10 / std::numbers::ln10 * std::sqrt(spread * count / (count - 1)) / error;
}

bool heavy_tails(const Density& law, std::int64_t n) {
  const OutcomeLaw any = outcome_law(find_format("int4"), {}, Overflow::saturate);
  const Figure square = error_figures(any, 1, law).signal;
  return !(kStandardErrors * standard_error(square.variance, n) <= square.mean);
}

namespace {

/// Every code's value.
std::vector<double> decoded(const Format& format) {
  if (format.bits > 16) {
    throw Error(fmt::format("format '{}': {} bits, expected at most 16", format.name, format.bits));
  }
  std::vector<double> table;
  for (std::uint64_t code = 0; code <= format.code_mask(); ++code)
    table.push_back(to_double(decode(format, code)));
  return table;
}

template <class Number>
ErrorFigures figures_of(const Conversion& c, double scale, std::int64_t n, const Number& number) {
  if (!(scale > 0) || std::isinf(scale))
    throw Error("error figures: the scale must be finite and positive");
  if (n <= 0) throw Error("error figures of an empty sample");
  constexpr std::int64_t kChunk = 16384;
  const std::int64_t chunks = (n + kChunk - 1) / kChunk;
  const std::vector<double> values = decoded(*c.format);
  const Value divisor = value_of(scale);
  std::vector<FigureSums> parts(static_cast<std::size_t>(chunks));
#pragma omp parallel for schedule(dynamic) if (chunks > 1)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    FigureSums sums;
    for (std::int64_t i = chunk * kChunk; i < std::min(n, (chunk + 1) * kChunk); ++i) {
      const double x = number(i);
      const Value exact = value_of(x);
      const Encoded result =
          encode_element(c, scale == 1 ? exact : exact_quotient(exact, divisor), i);
      sums.add(1, x, values[result.code] * scale);
      sums.overflow += (result.flags & kOverflow) != 0;
      sums.underflow += (result.flags & kUnderflow) != 0;
    }
    parts[chunk] = sums;
  }
  FigureSums sums;
  for (const FigureSums& part : parts) sums += part;
  return sums.figures();
}

}  // namespace

ErrorFigures monte_carlo(const Conversion& c, double scale, const Distribution& distribution,
                         std::uint64_t seed, std::int64_t n) {
  const RandomSource source{.seed = seed, .stream = Stream::data};
  return figures_of(c, scale, n, [&](std::int64_t i) {
    return distribution.draw(source, static_cast<std::uint64_t>(i));
  });
}

ErrorFigures measure(const Conversion& c, double scale, const double* x, std::int64_t n) {
  return figures_of(c, scale, n, [x](std::int64_t i) { return x[i]; });
}

}  // namespace numemu
