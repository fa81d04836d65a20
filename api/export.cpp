#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "api/infer_files.hpp"
#include "api/networks.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/model/coded_weights.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx/checkpoint.hpp"
#include "emu/net/model/onnx/quantized_file.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/run_context.hpp"
#include "experiments/engine/bench/bench_memory.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/output_files.hpp"
#include "policies/canonical_json.hpp"
#include "policies/numerics/onnx_layers.hpp"
#include "policies/recipe/checkpoint.hpp"

namespace numemu::api {
namespace {

/// The outputs of a network, each [samples, ...], in order.
using NamedOutputs = std::vector<std::pair<std::string, Tensor>>;

NamedOutputs outputs_of(const Graph& graph, const std::vector<net::OnnxPort>& ports,
                        const std::vector<Tensor>& inputs, net::Numerics& numerics) {
  NamedOutputs out;
  for (const net::OnnxPort& port : ports) out.emplace_back(port.name, Tensor());
  net::forward_values(graph, inputs, numerics, {}, [&](int made, const Tensor& value) {
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (ports[i].value == made)
        out[i].second = ports[i].image ? with_axis_moved(value, 3, 1) : value;
  });
  return out;
}

/// Those of a packed batch.
NamedOutputs outputs_of(const Graph& graph, const Tensor& batch, net::Numerics& numerics) {
  std::vector<net::OnnxPort> ports;
  for (const net::GraphOutput& output : graph.outputs) ports.push_back({output.name, output.value});
  if (ports.empty()) ports.push_back({"", static_cast<int>(graph.value_count()) - 1});
  return outputs_of(
      graph, ports,
      graph.inputs.size() > 1 ? net::unpacked(batch, graph.inputs) : std::vector<Tensor>{batch},
      numerics);
}

/// Adds an output of [samples, ...].
void compare(const net::Tensor& a, const net::Tensor& b, Agreement& out) {
  const std::int64_t samples = a.dim(0), width = a.size() / std::max<std::int64_t>(1, samples);
  const bool first = out.outputs == 0;
  if (first) out.samples = samples;
  out.outputs += a.size();
  for (std::int64_t i = 0; i < samples; ++i) {
    const float *x = a.data.data() + i * width, *y = b.data.data() + i * width;
    // The class is that of the first output.
    if (first)
      out.same_class += std::max_element(x, x + width) - x == std::max_element(y, y + width) - y;
    for (std::int64_t j = 0; j < width; ++j) {
      const bool same = x[j] == y[j] || (std::isnan(x[j]) && std::isnan(y[j]));
      out.same_bits += same;
      if (std::isfinite(x[j]))
        out.largest = std::max(out.largest, static_cast<double>(std::fabs(x[j])));
      if (!same)
        out.difference = std::max(out.difference, std::fabs(static_cast<double>(x[j]) - y[j]));
    }
  }
}

/// All outputs, those of the file `path` by the names of the network's, where it has names.
Agreement compared(const NamedOutputs& own, const NamedOutputs& back, const std::string& path) {
  Agreement out;
  for (const auto& [name, value] : own) {
    const auto found = name.empty()
                           ? back.begin()
                           : std::ranges::find(back, name, &NamedOutputs::value_type::first);
    if (found == back.end() || found->second.shape != value.shape)
      throw Error(fmt::format("{}: read back: expected an output {} of shape {}, found {}", path,
                              name, net::to_string(value.shape),
                              found == back.end() ? "none" : net::to_string(found->second.shape)));
    out.names.push_back(found->first);
    compare(value, found->second, out);
  }
  return out;
}

/// What else than the layers a file of codes says of them.
void describe(net::Checkpoint& out, const Recipe& recipe, const net::OnnxLayers& layers,
              bool folded) {
  out.metadata.emplace_back("recipe", policies::canonical_json(recipe.json()));
  policies::add_ranges(out, policies::ranges_of_codes(recipe, layers));
  if (folded) net::mark_folded(out);
}

/// What a reader needs beside codes and scales to compute the same: the network, and the ranges
/// that give the recipe the same scales.
net::Checkpoint described(const TrainedNet& trained, const OpenRequest& names,
                          const Dataset& dataset, const Recipe& recipe,
                          const net::OnnxLayers& layers) {
  net::Checkpoint out;
  out.metadata = {{"net", trained.graph.name}, {"data", dataset.name()}};
  describe(out, recipe, layers,
           names.fold_batch_norm || (trained.path.ends_with(".safetensors") &&
                                     net::is_folded(net::read_weights(trained.path))));
  if (!trained.source.empty()) net::add_graph(out, net::load_network(names.net, dataset).onnx);
  return out;
}

/// Of a file that is not the recipe's in all layers. `source`: nothing for a reference network.
std::vector<std::string> notes_of(const std::optional<net::ImportedFile>& source,
                                  const Graph& graph, const net::OnnxLayers& layers) {
  std::vector<std::string> notes;
  const std::vector<std::string> states = net::states_in_float32(graph, layers),
                                 own = source ? net::quantized_already(*source, layers)
                                              : std::vector<std::string>();
  if (!states.empty())
    notes.push_back(fmt::format(
        "{} of recurrent layers, the first '{}': the recipe quantizes the state, which ONNX's "
        "operators hold in float32; their weights and inputs are codes.",
        counted(std::ssize(states), "product"), states[0]));
  if (!own.empty())
    notes.push_back(
        fmt::format("{}, the first '{}': the file's operators are quantized already and stay.",
                    counted(std::ssize(own), "layer"), own[0]));
  return notes;
}

struct Export {
  const OpenRequest& names;
  const ExportRequest& asked;
  const Context& context;
  const Recipe recipe;
  const bool onnx;
};

Agreement export_on_data(const Export& e) {
  const Dataset dataset = open_data(e.names, e.context);
  const TrainedNet trained = open_network(e.names, dataset, e.context);
  const Graph& graph = trained.graph;
  const policies::BoundRecipe bound = experiments::bound_recipe(e.recipe, trained, e.names.where());
  policies::require_untransformed(bound);
  if (e.onnx) policies::require_onnx_operators(bound);
  const std::int64_t samples = std::min(e.asked.samples, dataset.calibration_count());
  experiments::require_export_memory(bound, samples, dataset.calibration_count());
  policies::RecipeNumerics numerics(bound);
  e.context.on_checked();
  experiments::freeze(numerics, graph, dataset);
  net::Targets targets;
  const net::Tensor batch = dataset.calibration_batch(0, samples, targets);
  const NamedOutputs own = outputs_of(graph, batch, numerics);
  const net::OnnxLayers layers = policies::onnx_layers(numerics, !e.onnx);
  const Recipe plain = policies::with_ranges(e.recipe, {}, e.names.where());
  std::optional<net::ImportedFile> source;
  if (e.onnx) {
    // The file that the network came from, quantized; of a reference network a file of our own.
    if (!trained.source.empty()) source = net::source_file(e.names.net, dataset);
    write_atomically(e.asked.out, {source ? net::quantized_file(*source, graph, layers)
                                          : net::export_onnx(graph, layers)});
  } else {
    policies::require_coded_layers(layers, graph);
    net::write_coded(e.asked.out, graph, layers,
                     described(trained, e.names, dataset, plain, layers));
  }
  const Graph back = net::load_network(e.asked.out, dataset).graph;
  if (e.onnx) {
    net::Numerics float32;
    Agreement out = compared(own, outputs_of(back, batch, float32), e.asked.out);
    out.notes = notes_of(source, graph, layers);
    return out;
  }
  policies::RecipeNumerics same(
      policies::with_checkpoint_ranges(plain, e.asked.out, e.names.where()), back, e.names.where());
  experiments::freeze(same, back, dataset);
  return compared(own, outputs_of(back, batch, same), e.asked.out);
}

Agreement export_on_arrays(const Export& e) {
  const std::string where = e.names.where(), path = net::name_and_file(e.names.net).second;
  const InferRequest as_inferred{
      .model = e.names.net, .in = e.asked.in, .fold_batch_norm = e.names.fold_batch_norm};
  const std::vector<NamedArray> arrays = read_arrays(e.asked.in, "--in", e.context);
  const net::ImportedModel model = opened_model(as_inferred, arrays, e.context.folders);
  const auto source = source_of(e.names.net, arrays, model);
  if (!source)
    throw usage_error(
        fmt::format("--in: expected a network from an ONNX file, found {}; give its samples by "
                    "--data",
                    e.names.net));
  if (!e.onnx && model.inputs[0].batch_axis == net::kNoBatch)
    throw usage_error(
        "--out: expected a name ending in .onnx: all arrays are one sample, whose shapes a "
        "checkpoint does not have");
  const std::vector<Tensor> inputs = arranged(model, arrays, "--in", as_inferred);
  const policies::BoundRecipe bound(policies::with_checkpoint_ranges(e.recipe, path, where),
                                    model.graph, where);
  policies::require_untransformed(bound);
  if (e.onnx) policies::require_onnx_operators(bound);
  const std::int64_t samples = std::min(e.asked.samples, inputs[0].dim(0));
  experiments::require_export_memory(bound, samples, inputs[0].dim(0));
  policies::RecipeNumerics numerics(bound);
  e.context.on_checked();
  const policies::CalibrationBatch batch = [&](std::int64_t first, std::int64_t count) {
    return samples_of(inputs, first, count);
  };
  numerics.freeze(model.graph, inputs[0].dim(0), batch);
  const std::vector<Tensor> first = batch(0, samples);
  const NamedOutputs own = outputs_of(model.graph, model.outputs, first, numerics);
  const net::OnnxLayers layers = policies::onnx_layers(numerics, !e.onnx);
  const Recipe plain = policies::with_ranges(e.recipe, {}, where);
  if (e.onnx) {
    write_atomically(e.asked.out, {net::quantized_file(*source, model.graph, layers)});
  } else {
    policies::require_coded_layers(layers, model.graph);
    net::Checkpoint described;
    described.metadata = {{"net", model.graph.name}};
    describe(described, plain, layers, e.names.fold_batch_norm);
    net::add_graph(described, net::graph_bytes(source->model));
    net::write_coded(e.asked.out, model.graph, layers, described);
  }
  const net::ImportedModel back = load_model(e.asked.out, arrays, e.context.folders);
  NamedOutputs there;
  const std::vector<Tensor> again =
      samples_of(arranged(back, arrays, "--in", as_inferred), 0, samples);
  if (e.onnx) {
    net::Numerics float32;
    there = outputs_of(back.graph, back.outputs, again, float32);
  } else {
    policies::RecipeNumerics same(policies::with_checkpoint_ranges(plain, e.asked.out, where),
                                  back.graph, where);
    same.freeze(back.graph, inputs[0].dim(0), batch);
    there = outputs_of(back.graph, back.outputs, again, same);
  }
  Agreement out = compared(own, there, e.asked.out);
  if (e.onnx) out.notes = notes_of(source, model.graph, layers);
  return out;
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
  if (asked.in.empty() == names.data.empty())
    throw usage_error("--data: expected either a data set or arrays, by --in");
  require_replaceable(asked.out);
  std::vector<NamedPath> read = {{"--net", names.net, false},
                                 {"--recipe", recipe_where(names.recipe), false}};
  for (const std::string& text : asked.in)
    read.push_back({"--in", net::name_and_file(text).second, false});
  require_distinct_paths({{"--out", asked.out, false}}, read);
  const Export e{names, asked, context, open_recipe(names.recipe, context.folders).last_stage(),
                 onnx};
  return asked.in.empty() ? export_on_data(e) : export_on_arrays(e);
}

}  // namespace numemu::api
