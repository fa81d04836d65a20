// A recipe as the answers to a network's questions: operands quantized, multiplied on a unit,
// scaled back.
#include "policies/recipe/recipe_numerics.hpp"

#include <fmt/format.h>

#include "emu/net/gemm_layers.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"

namespace numemu::policies {
namespace {

/// Index of the first sample of the batch that this thread evaluates: random bits belong to images,
/// not to batches.
thread_local std::int64_t first_sample = 0;
/// Phase of the step this thread is in.
thread_local net::Phase phase = net::Phase::inference;

void count(const FlagCounts& flags, OperandCounts& counts) {
  counts.elements += flags.elements;
  counts.overflow += flags.overflow;
  counts.underflow += flags.underflow;
  counts.invalid += flags.invalid;
}

const Format& float32() {
  static const Format& format = find_format("float32");
  return format;
}

/// One side of a product ready for the unit.
struct ReadySide {
  unit::Operand operand;
  const std::vector<float>* scales = nullptr;  ///< null: no scale
};

/// D = RNE(alpha * D), alpha of column n = RNE(scale of A * scale of B's row n).
void apply_scales(const ReadySide& a, const ReadySide& b, std::int64_t m, std::int64_t n,
                  float* d) {
  if (a.scales == nullptr && b.scales == nullptr) return;
  static const std::vector<float> kOne = {1.0f};
  const std::vector<float>& sa = a.scales ? *a.scales : kOne;
  const std::vector<float>& sb = b.scales ? *b.scales : kOne;
  std::vector<float> alpha(n);
  for (std::int64_t j = 0; j < n; ++j) alpha[j] = sa[0] * sb[sb.size() == 1 ? 0 : j];
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) d[i * n + j] *= alpha[j];
  }
}

}  // namespace

RandomSource operand_random(std::uint64_t seed, std::string_view layer, net::Role role,
                            std::int64_t step, net::GemmKind kind) {
  RandomSource source;
  source.seed = seed;
  source.stream = Stream::quantize;
  source.tensor = tensor_word(
      fmt::format("{}/{}/{}/{}", layer, net::to_string(role), step, net::to_string(kind)));
  return source;
}

const unit::Unit& RecipeNumerics::Layer::unit(net::GemmKind kind) const {
  return kind == net::GemmKind::dgrad ? *dgrad : kind == net::GemmKind::wgrad ? *wgrad : *fprop;
}

RecipeNumerics::RecipeNumerics(const Recipe& recipe, const net::Graph& graph,
                               const std::string& where)
    : recipe_(recipe) {
  const std::vector<std::string> names = net::gemm_layers(graph);
  recipe.require_matches(names, where);
  for (const std::string& name : names) {
    Layer& layer = layers_[name];
    layer.recipe = recipe.layer(name);
    layer.fprop = &unit::find_unit(layer.recipe.fprop_unit);
    layer.dgrad = &unit::find_unit(layer.recipe.dgrad_unit);
    layer.wgrad = &unit::find_unit(layer.recipe.wgrad_unit);
  }
}

void RecipeNumerics::freeze(const net::Graph& graph, const FloatReference& reference) {
  for (const net::Node& node : graph.nodes) {
    const auto found = layers_.find(node.name);
    if (found == layers_.end()) continue;
    Layer& layer = found->second;
    if (layer.recipe.weight) {
      const net::Tensor* weight = net::weight_of(node);
      quantize_tensor(
          *layer.recipe.weight, *weight, choose_scales(*layer.recipe.weight, *weight),
          operand_random(recipe_.seed(), node.name, net::Role::weight, 0, net::GemmKind::fprop), 0,
          layer.weight);
      count(layer.weight.flags, layer.counts);
    }
    if (layer.recipe.activation) {
      layer.activation_scales = choose_scales(
          *layer.recipe.activation,
          first_samples(reference.inputs.at(node.name), recipe_.calibration_samples()));
    }
    layer.frozen = true;
  }
}

void RecipeNumerics::require_trainable(const std::string& where) const {
  for (const auto& [name, layer] : layers_) {
    if (layer.recipe.weight && layer.recipe.weight->granularity == Granularity::channel) {
      throw Error(
          fmt::format("{}: roles.weight.granularity: expected 'tensor' in training: dgrad of "
                      "layer {} reduces along the axis of the channel scales",
                      where, name));
    }
  }
}

void RecipeNumerics::begin_step(const net::Step& step) {
  phase = step.phase;
  if (step.phase == net::Phase::training) training_step_ = step.index;
  first_sample = step.phase == net::Phase::inference && step.samples && !step.samples->empty()
                     ? step.samples->front()
                     : 0;
}

const RecipeNumerics::Layer& RecipeNumerics::layer(std::string_view name) const {
  const auto found = layers_.find(name);
  if (found == layers_.end()) throw Error(fmt::format("no layer '{}' multiplies", name));
  return found->second;
}

void RecipeNumerics::reset_counts() {
  for (auto& [name, layer] : layers_) {
    layer.counts.elements = layer.counts.overflow = 0;
    layer.counts.underflow = layer.counts.invalid = 0;
    if (layer.frozen && layer.recipe.weight) count(layer.weight.flags, layer.counts);
  }
}

void RecipeNumerics::product(const net::Product& product) {
  Layer& layer = layers_.find(product.layer)->second;
  thread_local QuantizedTensor scratch_a, scratch_b;

  const auto ready = [&](const net::ProductSide& side, QuantizedTensor& scratch) -> ReadySide {
    const std::optional<RolePolicy>& policy = layer.recipe.role(side.role, product.kind);
    if (!policy) return {{&float32(), side.source->data.data(), side.gather}, nullptr};
    if (layer.frozen && side.role == net::Role::weight)
      return {{policy->format, layer.weight.codes(), side.gather}, &layer.weight.scales};
    const bool inference = phase == net::Phase::inference;
    const std::int64_t step = inference ? 0 : training_step_.load();
    const std::int64_t batch = std::max<std::int64_t>(1, side.source->dim(0));
    const std::int64_t first = inference ? first_sample * (side.source->size() / batch) : 0;
    quantize_tensor(*policy, *side.source,
                    layer.frozen ? layer.activation_scales : choose_scales(*policy, *side.source),
                    operand_random(recipe_.seed(), product.layer, side.role, step, product.kind),
                    first, scratch);
    count(scratch.flags, layer.counts);
    return {{policy->format, scratch.codes(), side.gather}, &scratch.scales};
  };
  const ReadySide a = ready(product.a, scratch_a);
  const ReadySide b = ready(product.b, scratch_b);

  unit::Gemm gemm;
  gemm.m = product.m;
  gemm.n = product.n;
  gemm.k = product.k;
  gemm.a = a.operand;
  gemm.b = b.operand;
  gemm.d = product.d;
  layer.unit(product.kind).multiply(gemm);
  apply_scales(a, b, product.m, product.n, product.d);
}

}  // namespace numemu::policies
