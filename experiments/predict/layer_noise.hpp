// The SQNR at the output of every layer: predicted from noise of random phase in the float32
// network, and measured.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "emu/stats/finite_counts.hpp"
#include "experiments/predict/layer_powers.hpp"
#include "experiments/predict/tensor_noise.hpp"
#include "experiments/predict/unit_errors.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {

class InjectedNetwork;

/// The model is meant to be this near, in decibels.
inline constexpr double kLayerHolds = 1;
inline constexpr std::int64_t kFewestJudged = 2;  ///< samples: one has no standard error
/// By the 95 % interval of the measured figure, `error` its standard error: holds where all of it
/// is within kLayerHolds of the predicted one, fails where all of it is beyond, undecided where the
/// measurement is too coarse to tell. None
/// where no noise is predicted (an infinite or unknown figure); undecided where a figure is that of
/// fewer than kFewestJudged `samples`. A NaN needs no standard error: it fails.
Verdict layer_verdict(double predicted_db, double measured_db, std::int64_t samples = kFewestJudged,
                      double error = 0);

/// The noise of every quantized tensor of the recipe, from float32 values alone. Static activation
/// scales are the calibrated ones that are given (RecipeNumerics::static_scales()), else those that
/// the reference gives; other scales belong to each sample or row.
std::vector<TensorNoise> predict_tensors(const policies::BoundRecipe&,
                                         const policies::FloatReference&, FitCache&,
                                         const policies::StaticScales& static_scales = {});
/// Fills in the error of the same float32 tensors in their codes: of a weight those that the
/// network multiplied, where `ran` has multiplied it (not in block formats, whose float32 values
/// are rounded); else what the quantizer does to the tensor. An activation of the network has the
/// noise of the layers before it, so that its codes are not those of the float32 tensor.
void measure_tensors(std::vector<TensorNoise>&, const policies::BoundRecipe&,
                     const policies::FloatReference&,
                     const policies::RecipeNumerics* ran = nullptr);

/// How near outputs y are to float32 outputs x: SQNR is |x|^2 / |y - x|^2, and that with the best
/// common gain |x|^2 / min over g of |g y - x|^2, since a factor common to all logits changes no
/// decision. Both in dB, +inf without noise.
struct OutputFidelity {
  double db = 0, gained_db = 0;
  double gain = 1;  ///< the g of the minimum
};

struct LayerPrediction {
  std::map<std::string, double> db;  ///< by layer; +inf where nothing upstream is quantized
  OutputFidelity output;             ///< of the network's result
  double output_error = 0;           ///< standard error of output.db in dB, probes being a sample
  /// What leave_out() adds: why a layer, or the output, has no prediction (then NaN).
  std::map<std::string, std::string> left_out;
  std::string output_left_out;
  std::map<std::string, UnitError> units = {};  ///< what units add, by layer (unit_errors.hpp)
  std::map<std::string, double> signal = {};    ///< mean square of a layer's output
};

/// Samples behind those of a reference, for figures that its own are too few for.
struct MoreSamples {
  std::int64_t count = 0;
  /// At most `count` of them, one tensor per input; empty where none of these can be used.
  std::function<std::vector<net::Tensor>(std::int64_t first, std::int64_t count)> batch = {};
};

/// Probes of a prediction, each with draws of its own on its own samples of the reference.
struct ProbePlan {
  std::int64_t probes = 0, samples = 0;
};
inline constexpr std::int64_t kProbes = 32, kFewestProbes = 4, kProbeSamples = 8;
inline constexpr double kProbeMacs = 0x1p34;  // about a second
/// kProbes probes of kProbeSamples samples, fewer probes (at least kFewestProbes) where all
/// together would take more than kProbeMacs multiply-adds. Without samples there is none.
ProbePlan probe_plan(double macs_of_a_sample, std::int64_t reference_samples);

/// Runs the float32 network with noise of random phase (injected_noise.hpp) in the operands of all
/// products at once, and compares every layer with the reference. Reads no quantized tensor; of
/// each rounding it takes two or three sums per channel and the errors within one step of zero, and
/// of units their errors on some outputs of every product (unit_errors.hpp).
/// Static scales as in predict_tensors(). Uses threads; the same bits for any number of them. At
/// most `probes` of the plan's probes run: fewer serve to measure what they cost. Where a reference
/// has fewer samples than the probes read, those of `more` come next, beside the float32 network;
/// then the reference's again.
LayerPrediction predict_layers(const policies::BoundRecipe&, const policies::FloatReference&,
                               const policies::StaticScales& static_scales = {},
                               std::int64_t probes = kProbes, const MoreSamples& more = {});
/// The same of injected noise that goes on to be used, in its first steps.
LayerPrediction predict_layers(InjectedNetwork&, const policies::FloatReference&,
                               std::int64_t probes = kProbes, const MoreSamples& more = {});

struct Sqnr {
  double db = 0, error = 0;  ///< and its standard error
};
/// Of the mean powers of samples.
Sqnr sqnr_of(const std::vector<Power>& samples);

struct LayerMeasurement {
  std::map<std::string, double> db;
  std::map<std::string, double> error;  ///< standard error of db, by layer, the samples as below
  OutputFidelity output;                ///< of the network's result
  double output_error = 0;              ///< standard error of output.db, the samples being a sample
  stats::FiniteCounts outputs;          ///< of the network's outputs
  /// SQNR of the output beside the mean of every output over the samples, which is no signal.
  double output_centred_db = 0;
  std::int64_t samples = 0;
};

/// A figure rests on at least so many samples, or on kFewestStreamed with an interval (95 %) that
/// is shorter than kShortInterval decibels; on all where there are fewer.
inline constexpr std::int64_t kMeasuredSamples = 256, kFewestStreamed = 32;
inline constexpr double kShortInterval = 0.5;
/// Runs the quantized network on the reference's samples beside the float32 outputs, and on more of
/// them beside the float32 network: batch by batch, none larger than the reference.
LayerMeasurement measure_layers(const net::Graph&, net::Numerics&, const policies::FloatReference&,
                                const MoreSamples& = {});

/// Makes the figures of layers unknown whose products give the codes of what is fused with their
/// operator, a ReLU say: float32's results, which stand before it, are no reference for them.
void withhold_fused(LayerMeasurement&, const policies::RecipeNumerics& ran);

/// measure_layers() under `numerics`, which lead to `ran`, and measure_tensors() with `ran`, from
/// one pass: the same figures, withhold_fused(). `after` hears of each node when it has run and the
/// errors of its weights are known; it may release them.
LayerMeasurement measure_once(std::vector<TensorNoise>&, const policies::RecipeNumerics& ran,
                              net::Numerics& numerics, const policies::FloatReference&,
                              const std::function<void(const net::Node&)>& after);

}  // namespace numemu::experiments
