// numemu export: a trained network under a recipe as ONNX with QuantizeLinear and DequantizeLinear,
// or as codes and scales in a safetensors file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/memory_option.hpp"
#include "cli/network_option.hpp"
#include "cli/recipe_option.hpp"
#include "cli/talk.hpp"
#include "emu/net/model/load_network.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/workbench.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/safetensors_header.hpp"
#include "formats/storage/safetensors_type.hpp"
#include "policies/recipe/onnx_layers.hpp"

namespace numemu::cli {
namespace {

struct Options {
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

/// Codes and scales under the names of the parameters; all else in float32.
void write_codes(const std::string& path, const net::Graph& graph, const net::OnnxLayers& layers,
                 const Json& recipe) {
  SafetensorsHeader header;
  std::vector<std::pair<SafetensorsEntry, std::string>> tensors;
  const auto add = [&](const std::string& name, std::string_view type, const net::Shape& shape,
                       std::string_view bytes) {
    tensors.push_back({{name, safetensors_type(type), shape, net::element_count(shape), 0, 0},
                       std::string(bytes)});
  };
  const auto floats = [&](const std::string& name, const net::Shape& shape, const float* x) {
    add(name, "F32", shape,
        {reinterpret_cast<const char*>(x),
         static_cast<std::size_t>(net::element_count(shape)) * sizeof(float)});
  };
  header.metadata = {{"net", graph.name}, {"recipe", recipe.dump()}};
  for (const net::Node& node : graph.nodes) {
    const auto found = layers.find(node.name);
    for (const net::Parameter& parameter : std::as_const(*node.op).parameters()) {
      const bool weight =
          found != layers.end() && found->second.weight && parameter.name == node.name + ".weight";
      if (!weight) {
        floats(parameter.name, parameter.value.shape, parameter.value.data.data());
        continue;
      }
      const net::OnnxOperand& operand = *found->second.weight;
      const std::optional<net::OnnxType> type = net::storage_type(*operand.format);
      if (!type) throw Error(fmt::format("{}: no type stores {}", node.name, operand.format->name));
      // A byte for each element: fewer bits have no type there that readers agree on.
      const Format& stored = operand.format->kind != Kind::integer
                                 ? find_format(net::float8_format(*type))
                                 : *operand.format;
      const bool wide = operand.format->bits > 8, sign = operand.format->is_signed;
      const net::OnnxType whole = operand.format->kind != Kind::integer ? *type
                                  : wide ? (sign ? net::OnnxType::int16 : net::OnnxType::uint16)
                                         : (sign ? net::OnnxType::int8 : net::OnnxType::uint8);
      const std::string_view dtype = operand.format->kind != Kind::integer
                                         ? safetensors_type_of_format(stored.name)->name
                                     : wide ? (sign ? "I16" : "U16")
                                            : (sign ? "I8" : "U8");
      add(parameter.name, dtype, parameter.value.shape,
          net::stored_codes(*operand.format, whole, operand.codes));
      floats(parameter.name + "_scale", {static_cast<std::int64_t>(operand.scales.size())},
             operand.scales.data());
      header.metadata.emplace_back(parameter.name + "_format", operand.format->name);
    }
    if (found == layers.end() || !found->second.activation) continue;
    const net::OnnxOperand& input = *found->second.activation;
    const auto zero = static_cast<float>(input.zero_point);
    floats(node.name + ".input_scale", {1}, input.scales.data());
    floats(node.name + ".input_zero_point", {1}, &zero);
    header.metadata.emplace_back(node.name + ".input_format", input.format->name);
  }
  std::ranges::sort(header.metadata);
  // Wide elements first: every tensor is aligned, without a hole.
  std::ranges::stable_sort(tensors, std::greater(),
                           [](const auto& tensor) { return tensor.first.type->bits; });
  std::string data;
  for (auto& [entry, bytes] : tensors) {
    entry.begin = static_cast<std::int64_t>(data.size());
    entry.end = entry.begin + static_cast<std::int64_t>(bytes.size());
    header.entries.push_back(entry);
    data += bytes;
  }
  write_atomically(path, {format_safetensors_header(path, header), data});
}

void print_agreement(const Agreement& a) {
  fmt::print(
      "read back: {} of {} outputs have the same bits, {} of {} samples the same class; "
      "largest difference {:.3g} of outputs up to {:.3g}\n",
      a.same_bits, a.outputs, a.same_class, a.samples, a.difference, a.largest);
}

int run(const Options& options) {
  const bool onnx = options.out.ends_with(".onnx");
  if (!onnx && !options.out.ends_with(".safetensors"))
    throw Error("--out: expected a name ending in .onnx or .safetensors, not '" + options.out +
                "'");
  require_replaceable(options.out);
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
  if (onnx) policies::require_onnx_operators(recipe, graph);
  policies::RecipeNumerics numerics(recipe, graph, options.recipe);
  if (!options.quiet && !options.recipe.empty()) note_short_names_in(options.recipe);
  numerics.freeze(graph, dataset.calibration_count(), [&](std::int64_t first, std::int64_t count) {
    net::Targets targets;
    return std::vector<net::Tensor>{dataset.calibration_batch(first, count, targets)};
  });
  net::Targets targets;
  const net::Tensor batch =
      dataset.calibration_batch(0, std::min(options.samples, dataset.calibration_count()), targets);
  const net::Tensor own = net::forward(graph, batch, numerics);
  const net::OnnxLayers layers = policies::onnx_layers(numerics, graph);
  if (!onnx) {
    write_codes(options.out, graph, layers, recipe.json());
    if (!options.quiet) fmt::print("{}\n", harmless(options.out));
    return kFine;
  }
  write_atomically(options.out, {net::export_onnx(graph, layers)});
  const net::LoadedNetwork back = net::load_network(options.out, dataset);
  net::Numerics float32;
  const Agreement agreement = compare(own, net::forward(back.graph, batch, float32));
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
  auto options = std::make_shared<Options>();
  Command& command =
      program.command("export", "Write a trained network under a recipe as ONNX or safetensors",
                      [options] { return run(*options); });
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
              "Calibration samples on which the ONNX file is compared with the recipe")
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
