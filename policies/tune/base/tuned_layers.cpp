#include "policies/tune/base/tuned_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/ops/recurrent.hpp"
#include "emu/net/tied.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/state_bytes.hpp"

namespace numemu::policies {
namespace {

constexpr std::int64_t kBatch = 32;

bool multiplies(const net::Node& node) {
  return node.op->kind() == "linear" || node.op->kind().starts_with("conv");
}

bool read_by_relu_alone(const net::Graph& graph, std::size_t node) {
  std::int64_t readers = 0, relus = 0;
  for (const net::Node& other : graph.nodes) {
    for (const int input : other.inputs) {
      if (input != graph.value_of(node)) continue;
      ++readers;
      relus += other.op->kind() == "relu";
    }
  }
  return readers == 1 && relus == 1;
}

void require_plain(const Tuning& tuning, const std::string& layer, std::string_view step) {
  const auto refuse = [&](std::string_view what) {
    throw Error(
        fmt::format("{}: step {}: layer {}: expected operands that no policy rewrites, "
                    "found {}",
                    tuning.where, step, layer, what));
  };
  for (const std::optional<PolicyChoice>& choice : tuning.recipe.policies(layer)) {
    if (choice && choice->kind != nullptr && choice->kind->key == "transform")
      refuse(fmt::format("transform {}", choice->kind->name));
  }
  const LayerRecipe recipe = tuning.recipe.layer(layer);
  if (recipe.masks[RolePart::weight]) refuse("roles.weight.mask");
  if (recipe.masks[RolePart::activation]) refuse("roles.activation.mask");
}

void append(net::Tensor& all, const net::Tensor& next) {
  if (all.shape.empty()) {
    all = next;
    return;
  }
  all.shape[0] += next.shape[0];
  all.data.append(next.data);
}

/// Runs the samples through a network up to the layer: read(product) of the layer, given(output).
void run_to(const Tuning& tuning, net::Graph& graph, net::Numerics& numerics,
            const TunedLayer& layer, std::int64_t samples,
            const std::function<void(const net::Product&)>& read,
            const std::function<void(const net::Tensor&)>& given) {
  const net::PartFromInputs part = net::part_from_inputs(graph, graph.nodes[layer.node].name);
  net::Observing observing(numerics, {.after = [&](const net::Step&, const net::Product& p) {
                             if (p.layer == layer.name) read(p);
                           }});
  const std::int64_t all = tuning.calibration.samples,
                     count = samples == 0 ? all : std::min(all, samples);
  for (std::int64_t first = 0; first < count; first += kBatch) {
    const std::int64_t size = std::min(kBatch, count - first);
    given(net::forward(part.graph, part.read(tuning.calibration.batch(first, size)), observing,
                       CalibrationStep(first, size)));
  }
}

void ignore(const net::Product&) {}

}  // namespace

std::unique_ptr<RecipeNumerics> step_numerics(const Tuning& tuning) {
  return step_numerics(tuning, tuning.graph);
}

std::unique_ptr<RecipeNumerics> step_numerics(const Tuning& tuning, const net::Graph& calibrated) {
  Json json = tuned_recipe(tuning).json();
  const auto through_float32 = [](Json& choices) {
    if (choices.contains("edges") && choices["edges"].is_object())
      choices["edges"]["requantize"] = "none";
  };
  through_float32(json);
  if (json.contains("layers")) {
    for (Json& entry : json["layers"]) through_float32(entry);
  }
  auto numerics = std::make_unique<RecipeNumerics>(Recipe::parse(json, tuning.where), tuning.graph,
                                                   tuning.where);
  numerics->freeze(calibrated, tuning.calibration.samples, tuning.calibration.batch);
  return numerics;
}

std::vector<TunedLayer> tuned_layers(const Tuning& tuning, std::string_view step) {
  std::vector<TunedLayer> layers;
  for (std::size_t i = 0; i < tuning.graph.nodes.size(); ++i) {
    const net::Node& node = tuning.graph.nodes[i];
    if (!multiplies(node) || !tuning.recipe.layer(node.name)[RolePart::weight]) continue;
    require_plain(tuning, node.name, step);
    layers.push_back({node.name, i, read_by_relu_alone(tuning.graph, i)});
  }
  if (layers.empty()) {
    throw Error(
        fmt::format("{}: step {}: expected a convolution or linear layer whose weight is quantized",
                    tuning.where, step));
  }
  return layers;
}

std::string left_as_they_were(const std::vector<std::string>& layers) {
  return layers.empty() ? "" : "; as they were: " + joined(layers, ", ");
}

std::string leave_out_shared(const Tuning& tuning, std::string_view step,
                             std::vector<TunedLayer>& layers) {
  std::vector<std::string> shared;
  std::erase_if(layers, [&](const TunedLayer& layer) {
    const std::string what = net::sharing(tuning.graph, tuning.graph.nodes[layer.node]);
    if (!what.empty()) shared.push_back(fmt::format("{} ({})", layer.name, what));
    return !what.empty();
  });
  if (layers.empty())
    throw Error(fmt::format("{}: step {}: expected a layer whose parameters are its own, found {}",
                            tuning.where, step, joined(shared, ", ")));
  return left_as_they_were(shared);
}

std::string note_on_recurrent(const std::vector<TuneStepChoice>& steps, const net::Graph& graph,
                              const Recipe& recipe) {
  std::vector<std::string> names, layers;
  for (const TuneStepChoice& step : steps)
    if (!step.kind->recurrent) names.emplace_back(step.kind->name);
  double quantized = 0, recurrent = 0;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight == nullptr || !recipe.layer(layer.name)[RolePart::weight]) continue;
    const auto elements = static_cast<double>(layer.weight->size());
    quantized += elements;
    if (dynamic_cast<const net::Recurrent*>(layer.node->op.get()) == nullptr) continue;
    recurrent += elements;
    if (layers.empty() || layers.back() != layer.node->name) layers.push_back(layer.node->name);
  }
  if (names.empty() || layers.empty()) return "";
  return fmt::format(
      "Left as before by {}: {} {}, {:.0f} % of the quantized weights. Steps that reach recurrent "
      "layers: calibrate, distill.",
      joined(names, ", "), layers.size() == 1 ? "recurrent layer" : "recurrent layers",
      joined(layers, ", "), 100 * recurrent / quantized);
}

LayerSamples layer_samples(Tuning& tuning, const TunedLayer& layer, Inputs inputs,
                           std::int64_t samples) {
  LayerSamples result;
  const auto keep = [&](const net::Product& p) { append(result.x, *p.a.source); };
  net::Numerics float32;
  run_to(tuning, tuning.reference, float32, layer, samples,
         inputs == Inputs::reference ? std::function<void(const net::Product&)>(keep) : ignore,
         [&](const net::Tensor& y) { append(result.target, y); });
  if (inputs == Inputs::tuned) {
    const std::unique_ptr<RecipeNumerics> numerics = step_numerics(tuning);
    run_to(tuning, tuning.graph, *numerics, layer, samples, keep, [](const net::Tensor&) {});
  }
  return result;
}

LayerHessians layer_hessians(Tuning& tuning, const TunedLayer& layer, Inputs inputs,
                             std::int64_t samples) {
  std::vector<LeastSquares> squares;
  const auto add = [&](const net::Product& p) { collect(p, false, squares); };
  net::Numerics float32;
  std::unique_ptr<RecipeNumerics> quantized;
  if (inputs == Inputs::tuned) quantized = step_numerics(tuning);
  run_to(tuning, inputs == Inputs::tuned ? tuning.graph : tuning.reference,
         quantized ? static_cast<net::Numerics&>(*quantized) : float32, layer, samples, add,
         [](const net::Tensor&) {});
  LayerHessians result;
  for (const LeastSquares& each : squares) result.matrices.push_back(each.inputs_squared());
  result.rows = squares.empty() ? 0 : squares[0].rows();
  return result;
}

void LayerHessians::add(const LayerHessians& other) {
  if (!std::ranges::equal(matrices, other.matrices, {}, &std::vector<double>::size,
                          &std::vector<double>::size))
    throw Error("layers of one weight: expected products of the same depth and groups");
  for (std::size_t m = 0; m < matrices.size(); ++m)
    std::ranges::transform(matrices[m], other.matrices[m], matrices[m].begin(), std::plus());
  rows += other.rows;
}

void set_weight_scales(Tuning& tuning, const TunedLayer& layer, const std::vector<float>& scales) {
  const RolePolicy role = *tuning.recipe.layer(layer.name)[RolePart::weight];
  std::vector<ValueRange>& ranges = tuning.ranges[layer.name].weight;
  ranges.clear();
  for (const float scale : scales) ranges.push_back(range_of(role, {scale}));
}

RolePolicy fix_weight_scales(Tuning& tuning, const TunedLayer& layer) {
  const auto current = [&] { return *tuned_recipe(tuning).layer(layer.name)[RolePart::weight]; };
  const RolePolicy role = current();
  if (role.block != nullptr) return role;
  const net::Tensor& weight = tuning.graph.nodes[layer.node].op->parameters()[0].value;
  set_weight_scales(tuning, layer, choose_scales(role, weight));
  return current();
}

void save_numbers(std::string_view name, const std::vector<double>& numbers,
                  net::NamedState& state) {
  std::vector<std::uint64_t> bits;
  for (const double number : numbers) bits.push_back(bits_of(number));
  state.emplace_back(name, to_bytes(bits));
}

std::vector<double> load_numbers(std::string_view name, const net::NamedState& state) {
  std::vector<double> numbers;
  for (const auto& [key, bytes] : state) {
    if (key != name) continue;
    for (const std::uint64_t bits : from_bytes(key, bytes)) numbers.push_back(double_of(bits));
  }
  return numbers;
}

}  // namespace numemu::policies
