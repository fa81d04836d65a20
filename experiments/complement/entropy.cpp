#include "experiments/complement/entropy.hpp"

#include <algorithm>
#include <cmath>

#include "formats/portable/math.hpp"
#include "formats/quantize.hpp"

namespace numemu::experiments::complement {
double rounded(double x, const Format& format) {
  auto y = static_cast<float>(x);
  if (format.name != "float32") quantize_values({.format = &format}, &y, 1, 1, &y);
  return double{y};
}

double unit_of(const Format& format) { return std::ldexp(0.5, -format.mantissa_bits); }

namespace {

double rounded_entropy(const std::vector<double>& q, const Format& format) {
  double sum = 0;
  for (const double one : q)
    if (one > 0) sum -= rounded(one * rounded(portable::log(one), format), format);
  return sum;
}

}  // namespace

std::vector<double> Row::slope() const {
  std::vector<double> slopes;
  for (const double one : q) slopes.push_back(one > 0 ? -one * (portable::log(one) + entropy) : 0);
  return slopes;
}

Row complement_row(std::span<const float> logits, std::size_t label) {
  double largest = -HUGE_VAL;
  for (std::size_t c = 0; c < logits.size(); ++c)
    if (c != label) largest = std::max(largest, double{logits[c]});
  Row row{.q = std::vector<double>(logits.size())};
  double sum = 0;
  for (std::size_t c = 0; c < logits.size(); ++c)
    if (c != label) sum += row.q[c] = portable::exp(logits[c] - largest);
  for (double& one : row.q) {
    one /= sum;
    row.entropy -= one > 0 ? one * portable::log(one) : 0;
  }
  row.rest = sum / (sum + portable::exp(logits[label] - largest));
  return row;
}

double denominator(const Row& row, const Format& format, double guard) {
  return rounded(rounded(1 - rounded(1 - row.rest, format), format) + guard, format);
}

double entropy_by_division(const Row& row, const Format& format, double guard) {
  const double below = denominator(row, format, guard);
  std::vector<double> q;
  for (const double one : row.q)
    q.push_back(rounded(rounded(one * row.rest, format) / below, format));
  return rounded_entropy(q, format);
}

double entropy_by_logits(const Row& row, const Format& format) {
  std::vector<double> q;
  for (const double one : row.q) q.push_back(rounded(one, format));
  return rounded_entropy(q, format);
}

double predicted_by_division(const Row& row, double below) {
  const double large = row.rest / below;
  return large * (row.entropy - portable::log(large));
}

double rounding_bound(const Row& row, const Format& format, double below, int roundings) {
  // A term S q ln(S q): `roundings` of its factor, one of its logarithm and one of itself; the
  // relative error of S q moves its logarithm, too. Below the normal range half a step is absolute.
  const double u = unit_of(format), large = row.rest / below;
  const double least = std::ldexp(1.0, -format.bias - format.mantissa_bits);
  double bound = 0;
  for (const double one : row.q) {
    if (one <= 0) continue;
    const double factor = roundings * u + least / (roundings > 1 ? one * row.rest : one);
    const double term = large * one * std::fabs(portable::log(large * one));
    bound += (factor + 2 * u) * term + factor * large * one;
  }
  return bound * (1 + 8 * u);  // products of errors
}

}  // namespace numemu::experiments::complement
