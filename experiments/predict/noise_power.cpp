#include "experiments/predict/noise_power.hpp"

#include <cmath>

#include "emu/stats/pairwise.hpp"

namespace numemu::experiments {

double mean_square(const net::Tensor& x) {
  if (x.size() == 0) return 0;
  return stats::pairwise_sum(x.size(),
                             [&](std::int64_t i) { return double{x.data[i]} * x.data[i]; }) /
         x.size();
}

double mean_square_difference(const net::Tensor& x, const net::Tensor& y) {
  if (x.size() == 0) return 0;
  return stats::pairwise_sum(x.size(),
                             [&](std::int64_t i) {
                               const double difference = double{x.data[i]} - y.data[i];
                               return difference * difference;
                             }) /
         x.size();
}

double decibels(double signal, double noise) {
  return noise == 0 ? HUGE_VAL : 10 * std::log10(signal / noise);
}

}  // namespace numemu::experiments
