#include "experiments/complement/entropy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/train/objective.hpp"
#include "experiments/engine/study.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::complement {
namespace {

// The objective's float32 exp and ln have relative errors of at most 2^-22; all else is float64.
constexpr double kRoundings = 8 * 0x1p-22;
constexpr double kStep = 0x1p-10;      // of central differences
constexpr double kDifferences = 1e-6;  // their truncation, kStep^2 / 6 times a third derivative

double rounded(double x, const Format& format) {
  auto y = static_cast<float>(x);
  if (format.name != "float32") quantize_values({.format = &format}, &y, 1, 1, &y);
  return double{y};
}

double rounded_entropy(const std::vector<double>& q, const Format& format) {
  double sum = 0;
  for (const double one : q)
    if (one > 0) sum -= rounded(one * rounded(std::log(one), format), format);
  return sum;
}

/// Half a unit in the last place, relative to the smallest significand.
double unit_of(const Format& format) { return std::ldexp(0.5, -format.mantissa_bits); }

/// Logits of a row: normal numbers, the label's `margin` above the largest of the others.
struct Draw {
  std::vector<float> logits;
  std::size_t label = 0;
};

Draw draw(std::uint64_t seed, std::uint64_t number, std::int64_t classes, double deviation,
          double margin) {
  Draw row;
  for (std::int64_t c = 0; c < classes; ++c)
    row.logits.push_back(static_cast<float>(
        deviation * normal_number(seed, number * 4096 + static_cast<std::uint64_t>(c))));
  row.label = number % static_cast<std::uint64_t>(classes);
  float& own = row.logits[row.label];
  if (std::isfinite(margin)) {
    own = -HUGE_VALF;
    own = *std::ranges::max_element(row.logits) + static_cast<float>(margin);
  }
  return row;
}

}  // namespace
