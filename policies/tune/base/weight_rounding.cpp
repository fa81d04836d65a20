#include "policies/tune/base/weight_rounding.hpp"

#include <fmt/format.h>

#include <string>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/tied.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/array.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/tune/base/gptq.hpp"

namespace numemu::policies {
namespace {

constexpr std::int64_t kElementWork = 50;  // of elements that are added: integer conversions

}  // namespace

WeightGrid::WeightGrid(const RolePolicy& policy, const net::Tensor& weight) {
  if (policy.rounding.stochastic())
    throw Error("expected a weight role that rounds deterministically, found " + policy.describe());
  if (policy.granularity == Granularity::tile)
    throw Error("expected a weight role without tiles, found " + policy.describe());
  const RoleQuantizer quantizer(policy);
  conversion_ = quantizer.conversion();
  if (policy.block != nullptr) {
    format_ = policy.block;
    const std::int64_t length =
        policy.axis == BlockAxis::reduction ? weight.size() / weight.dim(0) : weight.dim(-1);
    layout_ = block_layout(*format_, {weight.size() / length, length}, 1);
    static const Format& float32 = find_format("float32");
    const Format& shift_format = format_->affine == Affine::min ? float32 : *format_->element;
    std::vector<std::uint8_t> codes(
        static_cast<std::size_t>(layout_.blocks * container_bytes(*format_->scale))),
        shifts(static_cast<std::size_t>(layout_.blocks * container_bytes(shift_format)));
    float tensor_scale = 1;
    const BlockArrays arrays{
        .scales = codes.data(),
        .zero_points = format_->affine == Affine::sym ? nullptr : shifts.data(),
        .tensor_scale = &tensor_scale};
    net::Tensor rounded(weight.shape);
    quantizer.quantize(layout_, weight.data.data(), {}, arrays, rounded.data.data());
    for (std::int64_t b = 0; b < layout_.blocks; ++b) {
      const std::uint64_t shift = load_code(shift_format, shifts.data(), b);
      scales_.push_back(block_scale(
          *format_,
          {load_code(*format_->scale, codes.data(), b), static_cast<std::uint32_t>(shift)},
          tensor_scale));
    }
    conversion_.format = format_->element;
  } else {
    plain_scales_ = choose_scales(policy, weight);
    format_ = &scaled_format(*policy.format, Span::row, 0);
    const auto rows = static_cast<std::int64_t>(plain_scales_.size());
    layout_ = block_layout(*format_, {rows, weight.size() / rows}, 1);
    for (const float scale : plain_scales_) scales_.push_back({.factor = value_of(scale)});
  }
  down_ = up_ = conversion_;
  down_.overflow = up_.overflow = Overflow::saturate;
  down_.rounding = {.mode = RoundingMode::rdn};
  up_.rounding = {.mode = RoundingMode::rup};
}

float WeightGrid::number(const Conversion& conversion, std::int64_t i, float x) const {
  const BlockScale& scale = scales_[static_cast<std::size_t>(layout_.block_of(i))];
  return decode_in_block(*format_, scale, encode_in_block(*format_, conversion, scale, x, i).code);
}

net::Tensor WeightGrid::nearest(const net::Tensor& weight) const {
  net::Tensor out(weight.shape);
  net::for_each_row(weight.size(), kElementWork,
                    [&](std::int64_t i) { out.data[i] = nearest(i, weight.data[i]); });
  return out;
}

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
  join_shared(tuning);
  return static_cast<std::int64_t>(layers_.size());
}

void RoundingStep::join_shared(const Tuning& tuning) {
  const std::vector<net::Node>& nodes = tuning.graph.nodes;
  const auto weight_of = [&](const TunedLayer& layer) -> const net::Parameter& {
    return std::as_const(*nodes[layer.node].op).parameters()[0];
  };
  const auto role_of = [&](const TunedLayer& layer) {
    return tuning.recipe.layer(layer.name)[RolePart::weight]->describe();
  };
  std::vector<TunedLayer> own;
  std::vector<std::string> left_out;
  others_.clear();
  for (const TunedLayer& layer : layers_) {
    const net::Parameter& weight = weight_of(layer);
    std::vector<TunedLayer> others;
    std::string elsewhere;
    for (const net::Parameter* const other : std::as_const(tuning.graph).parameters()) {
      if (other->name == weight.name || net::trained_for(*other) != net::trained_for(weight))
        continue;
      const auto found = std::ranges::find_if(layers_, [&](const TunedLayer& each) {
        return &weight_of(each) == other && other->tied_axes.empty() && weight.tied_axes.empty() &&
               other->value.shape == weight.value.shape && role_of(each) == role_of(layer);
      });
      if (found == layers_.end()) {
        elsewhere = other->name;
      } else {
        others.push_back(*found);
      }
    }
    if (!elsewhere.empty()) {
      left_out.push_back(fmt::format("{} ({} is also {}, which is rounded otherwise)", layer.name,
                                     weight.name, elsewhere));
    } else if (!weight.is_tied()) {
      own.push_back(layer);
      others_.push_back(std::move(others));
    }
  }
  if (own.empty())
    throw Error(fmt::format("{}: step {}: expected a layer whose weight it can round, found {}",
                            tuning.where, name_, joined(left_out, ", ")));
  layers_ = std::move(own);
  left_out_ = left_as_they_were(left_out);
}

void RoundingStep::run(Tuning& tuning, std::int64_t part, const TuneProgress& progress) {
  const TunedLayer& layer = layers_[static_cast<std::size_t>(part)];
  const std::vector<TunedLayer>& others = others_[static_cast<std::size_t>(part)];
  const auto hessians_of = [&](const TunedLayer& of) {
    return layer_hessians(tuning, of,
                          inputs_.mode == "parallel" ? Inputs::reference : Inputs::tuned,
                          inputs_.samples);
  };
  LayerHessians hessians = hessians_of(layer);
  for (const TunedLayer& other : others) hessians.add(hessians_of(other));
  progress(0.5);
  net::Tensor& weight = tuning.graph.nodes[layer.node].op->parameters()[0].value;
  const RolePolicy role = fix_weight_scales(tuning, layer);
  net::Tensor rounded = round(role, weight, hessians);
  const auto outputs = static_cast<double>(hessians.rows * weight.dim(0));
  const net::Tensor nearest = WeightGrid(role, weight).nearest(weight);
  errors_.push_back(output_error(weight, nearest, hessians.matrices) / outputs);
  errors_.push_back(output_error(weight, rounded, hessians.matrices) / outputs);
  weight = std::move(rounded);
  // The rule might choose other scales for the rounded weight.
  const std::vector<ValueRange> ranges = tuning.ranges[layer.name].weight;
  for (const TunedLayer& other : others) tuning.ranges[other.name].weight = ranges;
  std::erase_if(tuning.ranges, [](const auto& entry) { return entry.second.empty(); });
  net::follow_tied(tuning.graph);
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
  std::ptrdiff_t shared = 0;
  for (const std::vector<TunedLayer>& others : others_) shared += std::ssize(others);
  for (std::size_t i = 0; i + 1 < errors_.size(); i += 2) {
    nearest += errors_[i];
    chosen += errors_[i + 1];
  }
  return fmt::format(
      "{}: sum of mean squared errors of their outputs {:.4g}, rounding to nearest {:.4g}{}",
      counted(std::ssize(layers_) + shared, "layer"), chosen, nearest, left_out_);
}

}  // namespace numemu::policies
