// What workers share, measured: of normal numbers of known correlation, and of gradients.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"

namespace numemu::experiments::learned_compression {

// What vectors of several workers share: formulas of their correlation, and measurements.

/// One vector per worker, all of one length.
using Vectors = std::vector<std::vector<float>>;

/// Mutual information of two normal numbers with that correlation: -1/2 log2(1 - rho^2) bits.
double information(double rho);
/// (1 - rho)(1 - 1/count), of the power: what the mean of `count` numbers of equal power and
/// correlation loses in place of each. The same is what the first principal component leaves.
double mean_error(double rho, std::int64_t count);

/// The mean over pairs of workers of sum x y, over the mean of sum x^2.
double correlation(const Vectors&);
/// sum |x_w - mean|^2 / sum |x_w|^2.
double mean_error(const Vectors&);
/// Bits that two vectors share as `bins` equally likely bins see them, corrected for the sample
/// (Miller and Madow 1955).
double binned_information(const std::vector<float>& x, const std::vector<float>& y,
                          std::int64_t bins);
/// sum (x - decoded)^2 / sum x^2.
double relative_error(const std::vector<float>& x, const std::vector<float>& decoded);
/// What the first principal component of whole windows leaves of their power.
double component_error(const std::vector<float>& x, std::int64_t window);

/// Values of a window, which an autoencoder turns into one number.
inline constexpr std::int64_t kWindow = 4;

/// Of gradients: their correlation, the information that two workers share, the error of the mean
/// in place of each; of windows: the errors of the autoencoder and of the first component.
struct Shared {
  double correlation = 0, information = 0, mean = 0, autoencoder = 0, component = 0;

  static void fields(auto& self, const auto& visit) {
    visit("correlation", self.correlation);
    visit("information", self.information);
    visit("mean", self.mean);
    visit("autoencoder", self.autoencoder);
    visit("component", self.component);
  }
};

/// `count` workers with normal numbers of correlation rho, windows likewise.
Shared measure_normal(std::int64_t count, double rho, std::int64_t elements, std::uint64_t seed);
/// The largest weight of a network that trained briefly, over steps of `count` workers. The
/// correlation is that of even steps, the rest that of odd ones; windows are those of the rule
/// `learned`. Throws Error for an unknown network.
Shared measure_network(const net::Dataset&, const std::string& net, std::int64_t count,
                       double share, std::uint64_t seed);

}  // namespace numemu::experiments::learned_compression
