#include "experiments/stochastic_pruning/layer_sparsity.hpp"

#include <algorithm>
#include <cmath>

#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::stochastic_pruning {
namespace {

using Layers = std::vector<LayerMagnitudes>;

template <class Threshold>
std::vector<double> for_each_layer(const Layers& layers, Threshold&& threshold) {
  std::vector<double> thresholds;
  for (const LayerMagnitudes& layer : layers) thresholds.push_back(threshold(layer));
  return thresholds;
}

double elements_of(const Layers& layers) {
  double elements = 0;
  for (const LayerMagnitudes& layer : layers) elements += layer.elements;
  return elements;
}

// The thresholds at the end of [low, high] where they reach the share `zeros`, which rises with the
// parameter.
template <class At>
std::vector<double> reaching(Pruning pruning, const Layers& layers, double zeros, double low,
                             double high, At&& at) {
  for (;;) {
    const double middle = (low + high) / 2;
    if (middle <= low || middle >= high) return at(low);
    (total_effect(pruning, layers, at(middle)).zeros > zeros ? high : low) = middle;
  }
}

}  // namespace

TotalEffect total_effect(Pruning pruning, const Layers& layers,
                         const std::vector<double>& thresholds) {
  const FloatGuard guard;
  if (thresholds.size() != layers.size())
    throw Error("layer sparsity: expected one threshold per layer");
  double zeros = 0, error = 0, squares = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerMagnitudes& layer = layers[l];
    const PruningEffect of_layer = effect(pruning, layer.law, thresholds[l]);
    const double power = layer.weight * layer.elements * second_moment(layer.law);
    zeros += layer.elements * of_layer.zeros;
    error += power * of_layer.error;
    squares += power;
  }
  return {layers.empty() ? 0 : zeros / elements_of(layers), squares > 0 ? error / squares : 0};
}

std::vector<double> thresholds_at_cosine(Pruning pruning, const Layers& layers, double cosine) {
  return for_each_layer(layers, [&](const LayerMagnitudes& layer) {
    return threshold_for_cosine(pruning, layer.law, cosine);
  });
}

std::vector<double> thresholds_of_equal_cosine(Pruning pruning, const Layers& layers,
                                               double zeros) {
  const FloatGuard guard;
  // 1 - cosine is the parameter; at 0 nothing is pruned.
  return reaching(pruning, layers, zeros, 0, 1, [&](double loss) {
    return loss > 0 ? thresholds_at_cosine(pruning, layers, 1 - loss)
                    : std::vector<double>(layers.size());
  });
}

std::vector<double> thresholds_of_equal_zeros(Pruning pruning, const Layers& layers, double zeros) {
  return for_each_layer(layers, [&](const LayerMagnitudes& layer) {
    return threshold_for_zeros(pruning, layer.law, zeros);
  });
}

std::vector<double> thresholds_of_least_error(Pruning pruning, const Layers& layers, double zeros) {
  const FloatGuard guard;
  for (const LayerMagnitudes& layer : layers) {
    if (!(layer.weight > 0)) throw Error("layer sparsity: expected weights above 0");
  }
  return reaching(pruning, layers, zeros, -690, 690, [&](double ln_tau) {
    const double tau = portable::exp(ln_tau);
    return for_each_layer(layers, [&](const LayerMagnitudes& layer) {
      return layer.law.usable() ? tau / std::sqrt(layer.weight) : 0;
    });
  });
}

std::vector<double> thresholds_with_floors(Pruning pruning, const Layers& layers, double zeros,
                                           const std::vector<double>& cosine_floors, double most) {
  const FloatGuard guard;
  if (cosine_floors.size() != layers.size())
    throw Error("layer sparsity: expected one cosine floor per layer, 0 where there is none");
  std::vector<double> thresholds(layers.size());
  double left = zeros * elements_of(layers), free_elements = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerMagnitudes& layer = layers[l];
    if (!(cosine_floors[l] > 0)) {
      free_elements += layer.elements;
      continue;
    }
    thresholds[l] = std::min(threshold_for_zeros(pruning, layer.law, zeros),
                             threshold_for_cosine(pruning, layer.law, cosine_floors[l]));
    left -= layer.elements * effect(pruning, layer.law, thresholds[l]).zeros;
  }
  const double share = free_elements > 0 ? std::min(left / free_elements, most) : 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (!(cosine_floors[l] > 0)) thresholds[l] = threshold_for_zeros(pruning, layers[l].law, share);
  }
  return thresholds;
}

}  // namespace numemu::experiments::stochastic_pruning
