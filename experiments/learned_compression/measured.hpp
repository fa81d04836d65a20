// What workers share, measured: of normal numbers of known correlation, and of gradients.
#pragma once
#include <cstdint>
#include <string>

#include "emu/net/data/dataset.hpp"
#include "experiments/learned_compression/shared.hpp"

namespace numemu::experiments::learned_compression {

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
