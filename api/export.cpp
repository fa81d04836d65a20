#include <algorithm>
#include <cmath>

#include "api/networks.hpp"
#include "emu/net/model/coded_weights.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx/checkpoint.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/run_context.hpp"
#include "experiments/engine/bench_memory.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/output_files.hpp"
#include "policies/canonical_json.hpp"
#include "policies/numerics/onnx_layers.hpp"
#include "policies/recipe/checkpoint.hpp"

namespace numemu::api {
namespace {

Agreement compare(const net::Tensor& a, const net::Tensor& b) {
  Agreement out;
  out.samples = a.dim(0);
  out.outputs = a.size();
  const std::int64_t width = a.size() / std::max<std::int64_t>(1, out.samples);
  for (std::int64_t i = 0; i < out.samples; ++i) {
    const float *x = a.data.data() + i * width, *y = b.data.data() + i * width;
    out.same_class += std::max_element(x, x + width) - x == std::max_element(y, y + width) - y;
    for (std::int64_t j = 0; j < width; ++j) {
      out.same_bits += x[j] == y[j];
      out.largest = std::max(out.largest, static_cast<double>(std::fabs(x[j])));
      out.difference = std::max(out.difference, std::fabs(static_cast<double>(x[j]) - y[j]));
    }
  }
  return out;
}

/// What a reader needs beside codes and scales to compute the same: the network, and the ranges
/// that give the recipe the same scales.
net::Checkpoint described(const TrainedNet& trained, bool folded, const Dataset& dataset,
                          const Recipe& recipe, const net::OnnxLayers& layers) {
  net::Checkpoint out;
  out.metadata = {{"net", trained.graph.name},
                  {"data", dataset.name()},
                  {"recipe", policies::canonical_json(recipe.json())}};
  policies::add_ranges(out, policies::ranges_of_codes(recipe, layers));
  if (folded ||
      (trained.path.ends_with(".safetensors") && net::is_folded(net::read_weights(trained.path))))
    net::mark_folded(out);
  if (!trained.source.empty()) net::add_graph(out, net::load_network(trained.path, dataset).onnx);
  return out;
}

/// The file that the network came from, quantized; of a reference network a file of our own.
std::string onnx_bytes(const TrainedNet& trained, const Dataset& dataset,
                       const net::OnnxLayers& layers) {
  const auto source =
      trained.source.empty() ? std::nullopt : net::source_file(trained.path, dataset);
  return source ? net::quantized_file(*source, trained.graph, layers)
                : net::export_onnx(trained.graph, layers);
}

}  // namespace

Agreement export_network(const OpenRequest& given, const ExportRequest& asked,
                         const Context& context) {
  const net::RunScope scope(context.run);
  OpenRequest names = given;
  names.recipe = recipe_path(given.recipe, context.folders);
  const bool onnx = asked.out.ends_with(".onnx");
  if (!onnx && !asked.out.ends_with(".safetensors"))
    throw usage_error("--out: expected a name ending in .onnx or .safetensors, not '" + asked.out +
                      "'");
  require_replaceable(asked.out);
  require_distinct_paths(
      {{"--out", asked.out, false}},
      {{"--net", names.net, false}, {"--recipe", recipe_where(names.recipe), false}});
  const Recipe recipe = open_recipe(names.recipe, context.folders).last_stage();
  const Dataset dataset = open_data(names, context);
  const TrainedNet trained = open_network(names, dataset, context);
  const Graph& graph = trained.graph;
  const policies::BoundRecipe bound = experiments::bound_recipe(recipe, trained, names.where());
  policies::require_untransformed(bound);
  if (onnx) policies::require_onnx_operators(bound);
  const std::int64_t samples = std::min(asked.samples, dataset.calibration_count());
  experiments::require_export_memory(bound, samples, dataset.calibration_count());
  policies::RecipeNumerics numerics(bound);
  context.on_checked();
  experiments::freeze(numerics, graph, dataset);
  net::Targets targets;
  const net::Tensor batch = dataset.calibration_batch(0, samples, targets);
  const net::Tensor own = net::forward(graph, batch, numerics);
  const net::OnnxLayers layers = policies::onnx_layers(numerics);
  const Recipe plain = policies::with_ranges(recipe, {}, names.where());
  if (onnx) {
    write_atomically(asked.out, {onnx_bytes(trained, dataset, layers)});
  } else {
    policies::require_coded_layers(layers, graph);
    net::write_coded(asked.out, graph, layers,
                     described(trained, names.fold_batch_norm, dataset, plain, layers));
  }
  const Graph back = net::load_network(asked.out, dataset).graph;
  if (onnx) {
    net::Numerics float32;
    return compare(own, net::forward(back, batch, float32));
  }
  policies::RecipeNumerics same(policies::with_checkpoint_ranges(plain, asked.out, names.where()),
                                back, names.where());
  experiments::freeze(same, back, dataset);
  return compare(own, net::forward(back, batch, same));
}

}  // namespace numemu::api
