#include "experiments/hfp8/laws.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace numemu::experiments::hfp8 {

double relative_noise(int mantissa) {
  return 3 / (8 * std::numbers::ln2) * std::ldexp(1, -2 * mantissa) / 12;
}

double noise_to_signal(int mantissa) {
  return std::numbers::ln2 / 18 * std::ldexp(1, -2 * mantissa);
}

AddedAt added_by(std::shared_ptr<const Density> law, double mean) {
  const std::vector<double> knots = law->knots();
  return [law = std::move(law), low = knots.front(), high = knots.back(), mean](double ulp) {
    constexpr double kFine = 1e-3;  // of the range: rounding changes neither the mean nor much else
    if (ulp < kFine * (high - low)) return Added{mean, ulp * ulp / 12};
    Added added;
    for (double k = std::floor(low / ulp); k <= std::ceil(high / ulp); ++k) {
      const Density::Moments m = law->moments((k - 0.5) * ulp, (k + 0.5) * ulp);
      added.mean += k * ulp * m.p0;
      added.variance += m.p2 - 2 * k * ulp * m.p1 + k * k * ulp * ulp * m.p0;
    }
    return added;
  };
}

AddedAt added_by(double v) {
  return [v](double ulp) {
    const double whole = std::floor(v / ulp), rest = v / ulp - whole;
    // The register is even where a tie first occurs: an addition that is lost leaves it so.
    const double rounded = ulp * (rest > 0.5 ? whole + 1 : whole);
    return Added{rounded, (rounded - v) * (rounded - v)};
  };
}

double expected_sum(const AddedAt& added, double mean, double count, int mantissa) {
  double sum = mean, left = count - 1;
  while (left > 0) {
    const int binade = std::ilogb(sum);
    const double step = added(std::ldexp(1, binade - mantissa)).mean;
    if (!(step > 0)) return sum;  // the register has stalled
    const double room = std::ldexp(1, binade + 1) - sum;
    const double adds = std::min(left, std::max(1.0, room / step));
    sum += adds * step;
    left -= adds;
  }
  return sum;
}

double expected_chunked_sum(const AddedAt& added, double mean, double deviation, double count,
                            double chunk, int mantissa) {
  const double each = expected_sum(added, mean, std::min(chunk, count), mantissa);
  if (chunk >= count) return each;
  const AddedAt of_chunks = deviation > 0 ? added_by(std::shared_ptr<const Density>(normal_density(
                                                         each, deviation * std::sqrt(chunk))),
                                                     each)
                                          : added_by(each);
  return expected_sum(of_chunks, each, count / chunk, mantissa);
}

double retuned_share(double of_weights, double of_inputs, double mean_square) {
  return 1 - of_weights * mean_square / (of_weights + of_inputs);
}

}  // namespace numemu::experiments::hfp8
