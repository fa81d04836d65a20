// Networks of signs and of few bits: closed forms, products of signs, recipes, and the questions of
// binarized.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/study.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments::binarized {

/// Powers of two meet at this multiple of the lower one: AP2 rounds log2, formats without mantissa
/// round to the nearest value.
inline constexpr double kApproximate = 1.4142135623730951, kNearest = 1.5;

/// E[x q(x)] / E[x^2] of normal x of mean 0, q rounding to powers of two that meet at `boundary`
/// times the lower one: (2 / sigma) sum over k of 2^k [phi(b 2^(k-1) / sigma) - phi(b 2^k /
/// sigma)].
double power_gain(double deviation, double boundary);

/// The deviation of (x - mean) AP2(1 / sqrt(v)) for such x, v = E[(x - mean) AP2(x - mean)].
double shift_deviation(double deviation);

/// sign(scale (s - mean) + bias) for integers s: +1 from `bound` on, or up to it.
struct Threshold {
  std::int64_t bound = 0;
  bool upward = true;
  bool fires(std::int64_t s) const { return upward ? s >= bound : s <= bound; }
};
/// bound = ceil(mean - bias / scale), floor where scale < 0. Where scale is 0 the sign of the bias
/// decides for all s.
Threshold fold(double scale, double mean, double bias);

// Products of lines of signs on the unit neutral.xnor.

/// [a / depth, b / depth]: dot products of lines of `depth` codes of sign1 (0 is +1, 1 is -1).
std::vector<std::int32_t> sign_products(const std::vector<std::uint8_t>& a,
                                        const std::vector<std::uint8_t>& b, std::int64_t depth);

// Recipes of binarized and quantized networks.

/// Signs of weights and activations with clipped straight-through gradients, masters clipped to
/// [-1, 1], products of signs by XNOR and popcount. `first`, the layer of the network's input,
/// reads float32 inputs and signs of weights.
Json signs(const std::string& first);
/// A recipe with the shift-based batch normalisation.
Json with_shifts(Json recipe);
/// A recipe with the shift-based AdaMax in the place of the trial's optimizer.
Json with_shift_adamax(Json recipe);
/// A recipe as BinaryNet trains: on the squared hinge; clipped weights move by increments that are
/// scaled by the size of their layer.
Json as_binarynet(Json recipe);
/// Activations of `bits` on the grid of LinearQuant, k 2^(1-bits) within 1, weights on the same
/// grid times a power of two; gradients powers of two of 6 bits, scaled by a power of two.
Json few_bits(int bits, const std::string& first);

// The trainings of binarized, from its settings.

/// Without methods (settings net, data, setup, learning_rate, epochs, batch, train_samples,
/// eval_samples, seeds). All methods have Adam at one rate and no weight decay.
TrainingPlan plan_of(const ExperimentRun&);

/// Products of signs against popcount, exactly (setting lengths).
void add_xnor(const ExperimentRun&, Conclusion&);
/// What powers of two do to normal numbers, against the closed forms (settings deviations,
/// samples).
void add_shifts(const ExperimentRun&, Conclusion&);
/// A binarized network after training: the first layer by bit planes, folded thresholds, the
/// shift-based variance of its sums, stored bits (settings net, epochs, ...).
void add_network(const ExperimentRun&, const net::Dataset&, Conclusion&);
/// Networks of few bits beside float32, paired by seed (the same settings and seeds).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::binarized
