// How a trained network answers images that one step along the sign of their gradient has changed
// (FGSM: Goodfellow et al., Explaining and Harnessing Adversarial Examples, ICLR 2015).
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"

namespace numemu::experiments::complement {

struct Robust {
  std::vector<double> top1;   ///< per cent, by epsilon
  double rise = 0;            ///< of the mean loss at the first epsilon
  double predicted_rise = 0;  ///< epsilon times the sum of absolute gradients
  double lost = 0;            ///< share of images whose 1 - p_g is 0 in the format 1-6-9
};

/// Of the first test images, in float32: x + epsilon sign(dL/dx), L the cross-entropy, in the units
/// of the network's input, of which none is clipped. Gradients are those of a training step, so
/// batch normalisation sees the statistics of its batch.
Robust robustness(const net::Graph&, const net::Dataset&, std::int64_t images,
                  const std::vector<double>& epsilons);

}  // namespace numemu::experiments::complement
