// Samples made from what a trained network knows of its data: statistics of batch normalisation, on
// the network with it folded, and classes (Haroush et al., "The Knowledge Within", CVPR 2020).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::policies {

/// Mean and variance of each channel that training data gave a value.
struct NormTarget {
  std::string value;  ///< a node of the folded network
  std::vector<double> mean, variance;
};

/// Folds every batch normalisation into the layer before it (emu/net/fold_batch_norm.hpp) and
/// returns the targets of these layers' outputs: with gain g, shift b and running variance v the
/// mean b and the variance g^2 v / (v + epsilon). Throws Error for a network without any, and
/// naming one that nothing takes in.
std::vector<NormTarget> fold_to_targets(net::Graph&);

/// Sum over channels of KL(N(mu, s2) || N(m, v)), mu and s2 the target's, m and v those of x [n,
/// .., channels] over all leading axes; channels whose target or own variance is 0 count nothing.
/// `gradient`, unless null, becomes its derivative along x: (1 / n) [(m - mu) / v + (1 / v - (s2 +
/// (mu - m)^2) / v^2) (x - m)].
double norm_divergence(const NormTarget&, const net::Tensor& x, net::Tensor* gradient);

/// Mean over all targets' channels of that divergence for a batch.
double norm_divergence(const net::Graph& folded, const std::vector<NormTarget>&,
                       const net::Tensor& batch);

/// Where samples come from.
enum class SampleSource : std::uint8_t {
  noise,       ///< N(0, 1), as the others begin
  batch_norm,  ///< of least norm_divergence
  classes,     ///< of that plus the cross-entropy of drawn labels
};
const char* to_string(SampleSource);

/// What keeps pixels of images alike their neighbours: means over 3 x 3 pixels with weights 1 2 1
/// along each axis, so that no frequency is learnt that images lack.
enum class Smoothing : std::uint8_t {
  none,
  images,    ///< the samples are 8/3 of the means of what is optimised: noise keeps its variance
  gradient,  ///< the gradient is averaged; the samples begin as noise and keep what no step moves
};
const char* to_string(Smoothing);
/// Throws Error with the nearest name.
Smoothing parse_smoothing(std::string_view);

struct Synthesis {
  SampleSource source = SampleSource::batch_norm;
  std::int64_t batch = 64;  ///< samples whose statistics are matched together
  std::int64_t steps = 500;
  double rate = 0.1;                     ///< of Adam, falling to 0 with a cosine
  Smoothing smooth = Smoothing::images;  ///< of images; other samples are optimised as they are
  double class_weight = 1;               ///< of the mean cross-entropy beside the mean divergence
  std::uint64_t seed = 0;
};

struct SynthesizedSamples {
  net::Tensor x;                     ///< [count, sample...]
  std::vector<std::int32_t> labels;  ///< drawn, in turn; empty unless `classes`
  double divergence = 0;             ///< mean over batches of norm_divergence
};

/// Called after every step.
using OnSynthesis = std::function<void(std::int64_t step, std::int64_t steps, double divergence)>;

/// `count` samples for the one input of a folded network: a function of the network, the options
/// and the seed. Throws Error for a network with several inputs, and for a batch of 1.
SynthesizedSamples synthesize(const net::Graph& folded, const std::vector<NormTarget>&,
                              std::int64_t count, const Synthesis&, const OnSynthesis& = {});

}  // namespace numemu::policies
