// Networks pruned once by magnitude, without retraining, under every pattern of density 50 %.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {

/// A network under one pattern, on the test images.
struct Pruned {
  std::vector<std::uint8_t> right;  ///< one entry per target
  double loss = 0;                  ///< mean cross-entropy
  double kept = 0;                  ///< share of the masked weights
  double retained = 0;              ///< share of the sum of their magnitudes

  std::int64_t correct() const;
  double top1() const;
};

struct PrunedNet {
  std::string label;
  Pruned dense;                  ///< nothing pruned
  std::vector<Pruned> patterns;  ///< in the order of half_density_patterns()
};

/// The networks of setting `nets` as shipped, and `trained` more of each from other seeds. The same
/// layers are masked under every pattern: evenly_masked_layers().
std::vector<PrunedNet> pruned_nets(const ExperimentRun&, const net::Dataset&);

}  // namespace numemu::experiments
