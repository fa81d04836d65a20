// The layers that steps tune one after another, and what each of them reads and should give.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/calibrate/least_squares.hpp"
#include "policies/tune/base/tune_step.hpp"
#include "policies/tune/base/tuning.hpp"

namespace numemu::policies {

/// A convolution or linear layer whose weight the recipe quantizes.
struct TunedLayer {
  std::string name;
  std::size_t node = 0;
  bool relu = false;  ///< a ReLU alone reads what it gives
};

/// In the order of the graph. Throws Error, starting with `step`, where there is none, and naming
/// layer and policy where another policy rewrites the operands of one (transform, mask): what the
/// step reads would not be what is multiplied.
std::vector<TunedLayer> tuned_layers(const Tuning&, std::string_view step);

/// Takes out layers with a parameter that is one with another (emu/net/tied.hpp), which a step that
/// works layer by layer would part. Gives what a summary ends with: "; as they were: fc1
/// (fc1.weight is also fc2.weight)". Throws Error where no layer is left.
std::string leave_out_shared(const Tuning&, std::string_view step, std::vector<TunedLayer>&);
/// The same words of any layers.
std::string left_as_they_were(const std::vector<std::string>& layers);

/// tuned_numerics() for steps, which compare the results of layers with float32's: products pass
/// through float32 where `edges` makes their codes from integers alone, which are clamped already
/// to what a ReLU behind them leaves.
std::unique_ptr<RecipeNumerics> step_numerics(const Tuning&);
std::unique_ptr<RecipeNumerics> step_numerics(const Tuning&, const net::Graph& calibrated);

/// Which recurrent layers with quantized weights the steps leave as they are, in a sentence; ""
/// where there are none, or every step reaches them.
std::string note_on_recurrent(const std::vector<TuneStepChoice>&, const net::Graph&, const Recipe&);

/// Which network the layer's inputs come from.
enum class Inputs : std::uint8_t {
  reference,  ///< float32: layers do not depend on each other (published as parallel)
  tuned,      ///< the network as quantized and tuned so far (sequential)
};

/// Inputs of a layer and the outputs of the reference, on the same samples.
struct LayerSamples {
  net::Tensor x, target;  ///< [samples, ...]
};
/// Of the first `samples` calibration samples (0: all). The part of the network behind the layer
/// does not run.
LayerSamples layer_samples(Tuning&, const TunedLayer&, Inputs, std::int64_t samples);

/// X^T X of those inputs by matrix of the weight's stack, and the rows behind each.
struct LayerHessians {
  std::vector<std::vector<double>> matrices;
  std::int64_t rows = 0;

  /// Of another layer with the same weight. Throws Error where they are of other sizes.
  void add(const LayerHessians&);
};
LayerHessians layer_hessians(Tuning&, const TunedLayer&, Inputs, std::int64_t samples);

/// Fixes the scales of a layer's weight as they are now: those of its ranges or of the role's rule.
/// Roles without static scales (blocks) stay as they are. Gives the role with what is fixed.
RolePolicy fix_weight_scales(Tuning&, const TunedLayer&);
/// fix_weight_scales() to given scales, one for each channel or for the tensor.
void set_weight_scales(Tuning&, const TunedLayer&, const std::vector<float>& scales);

/// Numbers under a name in the state of a step.
void save_numbers(std::string_view name, const std::vector<double>&, net::NamedState&);
/// Those numbers; none where the state has no such name.
std::vector<double> load_numbers(std::string_view name, const net::NamedState&);

}  // namespace numemu::policies
