#include "experiments/lognormal_gradients/laws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::lognormal_gradients {
namespace {

constexpr double kLn2 = std::numbers::ln2;
constexpr double kLeastSigma = 0.1, kMostSigma = 25;

}  // namespace

std::string Split::name() const { return fmt::format("1-{}-{}", exponent, mantissa); }

std::string Split::format() const { return fmt::format("e{}m{}+finite", exponent, mantissa); }

std::vector<Split> splits_of(int bits) {
  std::vector<Split> splits;
  for (int e = 1; e < bits; ++e) splits.push_back({e, bits - 1 - e});
  return splits;
}

double idealised_error(const Split& split, double sigma, double mean) {
  const double end = std::ldexp(1, split.exponent - 1), s = sigma * kLn2;
  const double below = (-end - mean) / sigma, above = (end - mean) / sigma;
  const double rounding = std::ldexp(1, -split.mantissa) / (8 * kLn2);
  // P(above) - 2^(end - mean) exp(s^2 / 2) Phi(-t), t = above + s: the product is
  // exp(-above^2 / 2) exp(t^2 / 2) Phi(-t), which does not overflow.
  const double t = above + s;
  const double kept =
      t >= 0 ? portable::exp(-above * above / 2) * normal::scaled_erfc(t / std::numbers::sqrt2) / 2
             : portable::exp(above * s + s * s / 2) * normal::cdf(-t);
  return normal::between(below, above) * rounding + normal::cdf(below) + normal::cdf(-above) - kept;
}

double idealised_error_of(const Split& split, double x) {
  const double end = portable::exp2(std::ldexp(1, split.exponent - 1));
  if (x < 1 / end) return 1;
  if (x >= end) return (x - end) / x;
  const double ulp = std::ldexp(1, std::ilogb(x) - split.mantissa);
  return std::fabs(std::nearbyint(x / ulp) * ulp - x) / x;
}

FormatGrid::FormatGrid(const Format& format) : FormatGrid(cells(format, {}, false)) {}

FormatGrid::FormatGrid(const std::vector<Cell>& all) {
  for (const Cell& cell : all) {
    if (cell.high > 0) cells_.push_back(cell);
  }
  const auto positive =
      std::find_if(cells_.begin(), cells_.end(), [](const Cell& cell) { return cell.value > 0; });
  lowest_ = portable::log2(positive->value);
  highest_ = portable::log2(cells_.back().value);
}

double FormatGrid::expected(double sigma, double mean) const {
  const double s = sigma * kLn2, m = mean * kLn2;
  const auto z = [&](double x) {
    return x > 0 ? (portable::log(x) - m) / s : -std::numeric_limits<double>::infinity();
  };
  double sum = 0;
  for (const Cell& cell : cells_) {
    const double low = z(std::fmax(cell.low, 0)), high = z(cell.high);
    if (!(cell.value > 0)) {
      sum += normal::between(low, high);
      continue;
    }
    // v / x - 1 below the value v, 1 - v / x above it; E[1 / x] shifts the law by -s.
    const double at = z(cell.value), v = portable::exp(portable::log(cell.value) - m + s * s / 2);
    sum += v * normal::between(low + s, at + s) - normal::between(low, at);
    sum += normal::between(at, high) - v * normal::between(at + s, high + s);
  }
  return sum;
}

double FormatGrid::error_of(double x) const {
  const auto above = std::upper_bound(cells_.begin(), cells_.end(), x,
                                      [](double y, const Cell& cell) { return y < cell.low; });
  const Cell& cell = above == cells_.begin() ? cells_.front() : *(above - 1);
  return std::fabs(x - cell.value) / x;
}

double FormatGrid::best_mean(double sigma) const {
  constexpr double kStep = 0.25;
  constexpr int kCoarse = 32;  // means over the range, before neighbours are tried
  const double stride = kStep * std::ceil((highest_ - lowest_) / (kStep * kCoarse));
  double best = 0, least = std::numeric_limits<double>::infinity();
  const auto attempt = [&](double mean) {
    const double error = expected(sigma, mean);
    if (error < least) {
      least = error;
      best = mean;
    }
  };
  for (double mean = kStep * std::floor(lowest_ / kStep); mean <= highest_; mean += stride)
    attempt(mean);
  const double middle = best;
  for (double mean = middle - stride; mean <= middle + stride; mean += kStep) attempt(mean);
  return best;
}

Split best_split(int bits, double sigma, const ErrorOf& error) {
  const std::vector<Split> splits = splits_of(bits);
  std::size_t best = 0;
  std::vector<double> errors;
  for (const Split& split : splits) {
    errors.push_back(error(split, sigma));
    if (errors.back() < errors[best]) best = errors.size() - 1;
  }
  return splits[best];
}

std::vector<Switch> switches(int bits, const ErrorOf& error) {
  constexpr double kStep = 1.02;  // two switches are further apart
  constexpr int kHalvings = 30;
  std::vector<Switch> all;
  double before = kLeastSigma;
  Split split = best_split(bits, before, error);
  for (double sigma = before; sigma <= kMostSigma; before = sigma, sigma *= kStep) {
    const Split next = best_split(bits, sigma, error);
    if (next.exponent == split.exponent) continue;
    double low = before, high = sigma;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (error(next, middle) < error(split, middle) ? high : low) = middle;
    }
    all.push_back({(low + high) / 2, split, next});
    split = next;
  }
  return all;
}

}  // namespace numemu::experiments::lognormal_gradients
