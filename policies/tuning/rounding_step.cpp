// Cold: a negligible share of any run (docs/build.md).
#include "policies/tuning/rounding_step.hpp"

#include <fmt/format.h>

#include "formats/storage/array.hpp"
#include "policies/tuning/gptq.hpp"
#include "policies/tuning/weight_grid.hpp"

namespace numemu::policies {

std::vector<Option> RoundingOptions::with_inputs(std::vector<Option> own) {
  own.push_back({"mode",
                 "sequential: layers read the network as quantized and tuned so far; parallel: the "
                 "float32 one",
                 &mode,
                 0,
                 0,
                 {"sequential", "parallel"}});
  own.push_back({"samples", "calibration samples used, 0 for all", &samples, 0, 1e9});
  return own;
}

std::int64_t RoundingStep::begin(const Tuning& tuning) {
  layers_ = tuned_layers(tuning, name_);
  return static_cast<std::int64_t>(layers_.size());
}

void RoundingStep::run(Tuning& tuning, std::int64_t part, const TuneProgress& progress) {
  const TunedLayer& layer = layers_[static_cast<std::size_t>(part)];
  const LayerHessians hessians =
      layer_hessians(tuning, layer, inputs_.mode == "parallel" ? Inputs::reference : Inputs::tuned,
                     inputs_.samples);
  progress(0.5);
  net::Tensor& weight = tuning.graph.nodes[layer.node].op->parameters()[0].value;
  const RolePolicy role = fix_weight_scales(tuning, layer);
  net::Tensor rounded = round(role, weight, hessians);
  const auto outputs = static_cast<double>(hessians.rows * weight.dim(0));
  const net::Tensor nearest = WeightGrid(role, weight).nearest(weight);
  errors_.push_back(output_error(weight, nearest, hessians.matrices) / outputs);
  errors_.push_back(output_error(weight, rounded, hessians.matrices) / outputs);
  weight = std::move(rounded);
  progress(1);
}

void RoundingStep::save_state(net::NamedState& state) const {
  save_numbers("errors", errors_, state);
}

void RoundingStep::load_state(const net::NamedState& state) {
  errors_ = load_numbers("errors", state);
}

std::string RoundingStep::summary() const {
  double nearest = 0, chosen = 0;
  for (std::size_t i = 0; i + 1 < errors_.size(); i += 2) {
    nearest += errors_[i];
    chosen += errors_[i + 1];
  }
  return fmt::format(
      "{}: sum of mean squared errors of their outputs {:.4g}, rounding to nearest {:.4g}",
      counted(std::ssize(layers_), "layer"), chosen, nearest);
}

}  // namespace numemu::policies
