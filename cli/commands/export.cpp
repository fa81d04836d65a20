// numemu export: a trained network under a recipe as ONNX with QuantizeLinear and DequantizeLinear,
// or as codes and scales in a safetensors file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/memory_option.hpp"
#include "cli/network_option.hpp"
#include "cli/recipe_option.hpp"
#include "cli/talk.hpp"
#include "emu/net/model/coded_weights.hpp"
#include "emu/net/model/folded_checkpoint.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx_checkpoint.hpp"
#include "emu/net/model/weights.hpp"
#include "experiments/engine/bench_memory.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/workbench.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/distinct_paths.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/canonical_json.hpp"
#include "policies/recipe/coded_ranges.hpp"
#include "policies/recipe/onnx_layers.hpp"
#include "policies/tuning/checkpoint.hpp"

namespace numemu::cli {
namespace {

struct ExportOptions {
  std::string net, data, recipe, out;
  std::int64_t samples = 64;
  bool fold = false, json = false, quiet = false;
};

/// Outputs of the file beside those of the recipe.
struct Agreement {
  std::int64_t samples = 0, same_bits = 0, same_class = 0, outputs = 0;
  double largest = 0, difference = 0;  ///< magnitude of an output, and of a difference
};

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
net::Checkpoint described(const experiments::TrainedNet& trained, bool folded,
                          const net::Dataset& dataset, const policies::Recipe& recipe,
                          const net::OnnxLayers& layers) {
  net::Checkpoint out;
  out.metadata = {{"net", trained.graph.name},
                  {"data", dataset.name()},
                  {"recipe", policies::canonical_json(recipe.json())}};
  policies::add_ranges(out, policies::ranges_of_codes(recipe, layers));
  if (folded) net::mark_folded(out);
  if (!trained.source.empty()) net::add_graph(out, net::load_network(trained.path, dataset).onnx);
  return out;
}

void print_agreement(const Agreement& a) {
  fmt::print(
      "read back: {} of {} outputs have the same bits, {} of {} samples the same class; "
      "largest difference {:.3g} of outputs up to {:.3g}\n",
      a.same_bits, a.outputs, a.same_class, a.samples, a.difference, a.largest);
}

/// Whether the parameters are those of a graph whose batch normalisation was folded.
bool is_folded(const ExportOptions& options, const experiments::TrainedNet& trained) {
  return options.fold || (trained.path.ends_with(".safetensors") &&
                          net::is_folded(net::read_weights(trained.path)));
}

int run_export(const ExportOptions& options) {
  const bool onnx = options.out.ends_with(".onnx");
  if (!onnx && !options.out.ends_with(".safetensors"))
    throw Error("--out: expected a name ending in .onnx or .safetensors, not '" + options.out +
                "'");
  require_replaceable(options.out);
  require_distinct_paths({{"--out", options.out, false}},
                         {{"--net", options.net, false}, {"--recipe", options.recipe, false}});
  const Json json = options.recipe.empty() ? Json{{"numemu_recipe", 1}}
                                           : parse_json(read_text(options.recipe), options.recipe);
  const policies::Recipe recipe =
      policies::Recipe::parse(json, options.recipe.empty() ? "recipe" : options.recipe)
          .last_stage();
  const experiments::Folders folders{data_folder(), cache_folder()};
  const net::Dataset dataset = net::load_dataset(options.data, folders.cache);
  experiments::TrainedNet trained = experiments::load_trained_net(options.net, dataset, folders);
  if (options.fold) experiments::fold_batch_norm(trained);
  const net::Graph& graph = trained.graph;
  policies::require_untransformed(recipe, graph);
  if (onnx) policies::require_onnx_operators(recipe, graph);
  const std::int64_t samples = std::min(options.samples, dataset.calibration_count());
  const std::string where = options.recipe.empty() ? "recipe" : options.recipe;
  const policies::Recipe ranged = policies::with_checkpoint_ranges(recipe, trained.path, where);
  experiments::require_export_memory(ranged, graph, samples, dataset.calibration_count());
  policies::RecipeNumerics numerics(ranged, graph, options.recipe);
  if (!options.quiet && !options.recipe.empty()) note_short_names_in(options.recipe);
  const auto calibration = [&](std::int64_t first, std::int64_t count) {
    net::Targets targets;
    return std::vector<net::Tensor>{dataset.calibration_batch(first, count, targets)};
  };
  numerics.freeze(graph, dataset.calibration_count(), calibration);
  net::Targets targets;
  const net::Tensor batch = dataset.calibration_batch(0, samples, targets);
  const net::Tensor own = net::forward(graph, batch, numerics);
  const net::OnnxLayers layers = policies::onnx_layers(numerics, graph);
  if (!onnx) policies::require_coded_layers(layers, graph);
  if (!onnx) {
    const policies::Recipe plain = policies::with_ranges(recipe, {}, where);
    net::write_coded(options.out, graph, layers,
                     described(trained, is_folded(options, trained), dataset, plain, layers));
  } else {
    write_atomically(options.out, {net::export_onnx(graph, layers)});
  }
  const net::LoadedNetwork back = net::load_network(options.out, dataset);
  net::Tensor again;
  if (onnx) {
    net::Numerics float32;
    again = net::forward(back.graph, batch, float32);
  } else {
    policies::RecipeNumerics same(policies::with_checkpoint_ranges(
                                      policies::with_ranges(recipe, {}, where), options.out, where),
                                  back.graph, options.recipe);
    same.freeze(back.graph, dataset.calibration_count(), calibration);
    again = net::forward(back.graph, batch, same);
  }
  const Agreement agreement = compare(own, again);
  if (options.json) {
    fmt::print("{}\n", Json{{"file", options.out},
                            {"samples", agreement.samples},
                            {"outputs", agreement.outputs},
                            {"same_bits", agreement.same_bits},
                            {"same_class", agreement.same_class},
                            {"largest_difference", agreement.difference},
                            {"largest_output", agreement.largest}}
                           .dump(2));
  } else {
    if (!options.quiet) print_agreement(agreement);
    fmt::print("{}\n", harmless(options.out));
  }
  return kFine;
}

}  // namespace

void add_export(Program& program) {
  auto options = std::make_shared<ExportOptions>();
  Command& command = program.command("export", [options] { return run_export(*options); });
  add_trained_net(command, options->net);
  command
      .option("--data SET", options->data,
              "The data set whose samples calibrate activation scales: docs/data.md")
      .required();
  add_recipe(command, options->recipe, "Recipe");
  command
      .option("--out FILE", options->out,
              "FILE.onnx with QuantizeLinear and DequantizeLinear, or FILE.safetensors with codes "
              "and scales")
      .required();
  command
      .option("--samples N", options->samples,
              "Calibration samples on which the file is compared with the recipe")
      .show_default()
      .whole(1, 1000000);
  command.flag("--fold-batch-norm", options->fold,
               "Fold batch normalisation into the weights before it");
  command.flag("--json", options->json, "Print the comparison as JSON");
  command.flag("--quiet", options->quiet, "Print only the path of the file");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
