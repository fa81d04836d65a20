#include "experiments/predict/noise_power.hpp"

#include <cmath>

#include "emu/stats/squares.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments {

double mean_square(const net::Tensor& x) {
  if (x.size() == 0) return 0;
  return stats::sum_of_squares(x.size(), x.data.data()) / x.size();
}

double decibels(double signal, double noise) {
  return noise == 0 ? HUGE_VAL : 10 * portable::log10(signal / noise);
}

}  // namespace numemu::experiments
