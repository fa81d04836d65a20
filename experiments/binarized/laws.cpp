#include "experiments/binarized/laws.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/analysis/normal_law.hpp"
#include "formats/portable/vector_functions.hpp"

namespace numemu::experiments::binarized {

double power_gain(double deviation, double boundary) {
  constexpr int kBinades = 64;  // of deviations near 1: what lies outside is below 2^-60 of the sum
  double sum = 0;
  for (int k = -kBinades; k <= kBinades; ++k) {
    const double power = std::ldexp(1.0, k);
    sum += power * (normal::pdf(boundary * power / 2 / deviation) -
                    normal::pdf(boundary * power / deviation));
  }
  return 2 / deviation * sum;
}

double shift_deviation(double deviation) {
  const double v = power_gain(deviation, kApproximate) * deviation * deviation;
  return deviation * core::power_of_two(1 / std::sqrt(v));
}

Threshold fold(double scale, double mean, double bias) {
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  if (scale == 0) return {bias >= 0 ? -kFar : kFar, true};
  const double bound = mean - bias / scale;
  const double whole = scale > 0 ? std::ceil(bound) : std::floor(bound);
  const double far = static_cast<double>(kFar);
  return {static_cast<std::int64_t>(std::clamp(whole, -far, far)), scale > 0};
}

}  // namespace numemu::experiments::binarized
