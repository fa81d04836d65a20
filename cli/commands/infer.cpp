// numemu infer: a model on the user's own arrays, in float32 or under a recipe.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>

#include "cli/command.hpp"
#include "cli/float32_input.hpp"
#include "cli/format_names.hpp"
#include "cli/infer_results.hpp"
#include "cli/memory_option.hpp"
#include "cli/progress.hpp"
#include "cli/recipe_option.hpp"
#include "cli/talk.hpp"
#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/memory.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx_import.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "experiments/engine/not_finite.hpp"
#include "experiments/predict/listening.hpp"
#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/utf8.hpp"
#include "policies/recipe/recipe_numerics.hpp"
#include "policies/recipe/silent_notes.hpp"

namespace numemu::cli {
namespace {

struct Options {
  std::string model, recipe;
  std::vector<std::string> in, out;
  std::int64_t batch = 16;
  bool fold = false, quiet = false, json = false;
};

struct NamedArray {
  std::string name, path;
  net::Tensor tensor;  ///< as the file has it
};

std::vector<NamedArray> read_inputs(const Options& options) {
  std::vector<NamedArray> arrays;
  for (const std::string& text : options.in) {
    const auto [name, path] = named(text);
    std::int64_t rounded = 0;
    const Array array = read_float32(path, "", &rounded);
    if (rounded > 0 && !options.quiet)
      say("numemu: note: {}: {} of {} rounded to float32, the type of network values", path,
          rounded, counted(array.elements(), "number"));
    const auto same = [&name = name](const NamedArray& other) { return other.name == name; };
    if (!name.empty() && std::any_of(arrays.begin(), arrays.end(), same))
      throw Error(fmt::format("--in: {} is given twice", name));
    NamedArray input{name, path, net::Tensor(net::Shape(array.shape.begin(), array.shape.end()))};
    std::copy_n(array.as<float>(), array.elements(), input.tensor.data.begin());
    if (input.tensor.shape.empty() || input.tensor.dim(0) < 1)
      throw Error(path + ": expected an array with samples along its first axis");
    arrays.push_back(std::move(input));
  }
  return arrays;
}

/// What networks trained on that data set take, [height, width, channels]; empty for others.
net::Shape image_shape_of(const std::string& data) {
  if (data == "glyphs" || data == "mnist") return {28, 28, 1};
  if (data == "cifar10") return {32, 32, 3};
  return {};
}

/// A network of this program's own: its shapes follow from the array and the weights.
net::ImportedModel reference_model(const Options& options, const NamedArray& input) {
  auto [architecture, path] = named(options.model);
  if (!path.ends_with(".safetensors") && !path.ends_with(".npz")) {
    architecture = path;
    net::net_kind(architecture);  // an unknown name is refused with the nearest one
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(data_folder())) {
      const std::string name = entry.path().filename();
      if (name.starts_with(architecture + "-") && name.ends_with(".safetensors"))
        found.push_back(entry.path());
    }
    if (found.size() != 1) {
      throw Error(
          fmt::format("--model: expected one shipped checkpoint of {}, found {}; give its "
                      ".safetensors file",
                      architecture, found.size()));
    }
    path = found[0];
  }
  const net::Checkpoint checkpoint = net::read_weights(path);
  for (const auto& [key, value] : checkpoint.metadata) {
    if (key == "net") architecture = value;
  }
  if (architecture.empty() || checkpoint.tensors.empty())
    throw Error(path +
                ": expected metadata 'net' with the network's name, as `numemu train` "
                "writes it");
  const net::Shape shape(input.tensor.shape.begin() + 1, input.tensor.shape.end());
  for (const auto& [key, value] : checkpoint.metadata) {
    const net::Shape expected = key == "data" ? image_shape_of(value) : net::Shape();
    if (expected.empty() || shape == expected) continue;
    throw Error(fmt::format("{}: expected [n, {}], found {}", input.path, fmt::join(expected, ", "),
                            net::to_string(input.tensor.shape)));
  }
  net::ImportedModel model;
  model.graph = net::build_net(architecture, shape, checkpoint.tensors.back().value.dim(0));
  net::load_parameters(model.graph, checkpoint, path);
  model.inputs.push_back({model.graph.inputs[0].name, 0, false});
  model.outputs.push_back({"output", static_cast<int>(model.graph.value_count()) - 1, false});
  return model;
}

net::ImportedModel load(const Options& options, const std::vector<NamedArray>& inputs) {
  if (!net::names_onnx_file(options.model)) return reference_model(options, inputs.at(0));
  net::ImportOptions import;
  const net::OnnxModel file = net::read_onnx(options.model);
  for (const NamedArray& input : inputs) {
    if (!input.name.empty()) import.input_shapes[input.name] = input.tensor.shape;
  }
  if (inputs.size() == 1 && inputs[0].name.empty()) {
    for (const net::OnnxValueInfo& info : file.graph.inputs)
      import.input_shapes[std::string(info.name)] = inputs[0].tensor.shape;
  }
  return net::import_onnx(file, import);
}

/// Images between [n, c, h, w] and [n, h, w, c].
net::Tensor turned(const net::Tensor& x, bool to_channels_last) {
  const std::int64_t n = x.dim(0);
  const std::int64_t c = to_channels_last ? x.dim(1) : x.dim(3);
  const std::int64_t h = to_channels_last ? x.dim(2) : x.dim(1);
  const std::int64_t w = to_channels_last ? x.dim(3) : x.dim(2);
  net::Tensor out(to_channels_last ? net::Shape{n, h, w, c} : net::Shape{n, c, h, w});
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = 0; k < c; ++k) {
      for (std::int64_t p = 0; p < h * w; ++p) {
        const std::int64_t first = (i * c + k) * h * w + p, last = (i * h * w + p) * c + k;
        out.data[to_channels_last ? last : first] = x.data[to_channels_last ? first : last];
      }
    }
  }
  return out;
}

/// The arrays in the order and layout of the graph's inputs.
std::vector<net::Tensor> arranged(const net::ImportedModel& model,
                                  std::vector<NamedArray>& arrays) {
  std::vector<net::Tensor> out;
  for (const net::OnnxPort& port : model.inputs) {
    const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const NamedArray& array) {
      return array.name == port.name || (array.name.empty() && model.inputs.size() == 1);
    });
    if (found == arrays.end()) {
      std::vector<std::string> names;
      for (const net::OnnxPort& other : model.inputs) names.push_back(other.name);
      throw Error(fmt::format("--in: expected {}=FILE, the model's inputs are {}", port.name,
                              fmt::join(names, ", ")));
    }
    net::Shape shape = model.graph.inputs[static_cast<std::size_t>(port.value)].shape;
    if (port.image) shape = {shape[2], shape[0], shape[1]};
    shape.insert(shape.begin(), found->tensor.dim(0));
    if (found->tensor.shape != shape) {
      throw Error(fmt::format("{}: expected an array of shape {} for {}, found {}", found->path,
                              net::to_string(shape), port.name,
                              net::to_string(found->tensor.shape)));
    }
    if (!out.empty() && found->tensor.dim(0) != out[0].dim(0))
      throw Error(found->path + ": expected as many samples as the other inputs");
    out.push_back(port.image ? turned(found->tensor, true) : found->tensor);
    found->name = port.name;
    found->path.clear();
  }
  for (const NamedArray& array : arrays) {
    if (!array.path.empty())
      throw Error(fmt::format("--in: the model has no input '{}'", array.name));
  }
  return out;
}

std::vector<net::Tensor> samples_of(const std::vector<net::Tensor>& all, std::int64_t first,
                                    std::int64_t count) {
  std::vector<net::Tensor> out;
  for (const net::Tensor& x : all) out.push_back(policies::samples_of(x, first, count));
  return out;
}

int run(const Options& options) {
  require_paths(options.out, options.in);
  std::vector<NamedArray> arrays = read_inputs(options);
  net::ImportedModel model = load(options, arrays);
  const std::vector<net::Tensor> inputs = arranged(model, arrays);
  const std::map<std::string, std::string> files = destinations(options.out, model);
  if (options.fold) {
    if (model.outputs.size() > 1) throw Error("--fold-batch-norm: expected a model of one output");
    net::fold_batch_norm(model.graph);
    model.outputs[0].value = static_cast<int>(model.graph.value_count()) - 1;
  }
  net::Numerics float32;
  const bool recipe_given = !options.recipe.empty();
  const policies::Recipe given =
      recipe_given ? policies::Recipe::parse_text(read_text(options.recipe), options.recipe)
                   : policies::Recipe::parse_text(R"({"numemu_recipe": 1})", "recipe");
  const policies::Recipe recipe = given.last_stage();
  policies::RecipeNumerics quantized(recipe, model.graph, options.recipe);
  const std::int64_t samples = inputs[0].dim(0);
  std::vector<std::string> notes;
  if (recipe_given) {
    const std::int64_t used = std::min(samples, recipe.calibration().samples);
    quantized.freeze(model.graph, used, [&](std::int64_t first, std::int64_t count) {
      return samples_of(inputs, first, count);
    });
    if (!options.quiet) note_short_names_in(options.recipe);
    if (!options.quiet) say("scales calibrated on the first {} of {} samples", used, samples);
    notes = policies::notes_on_training(recipe, given.stages().size());
    std::ranges::move(notes_before(recipe, model.graph, inputs), std::back_inserter(notes));
  }
  experiments::NotFinite lost(model.graph, quantized);
  experiments::Listening numerics(recipe_given ? quantized : float32,
                                  [&](const net::Product& p) { lost.add(p); });

  const std::deque<net::MemoryClaim> claims = claim_memory(model, inputs, options.batch, files);
  std::map<std::string, net::Tensor> results;
  Progress progress("infer", samples, "samples", options.quiet);
  for (std::int64_t first = 0; first < samples; first += options.batch) {
    const std::int64_t count = std::min(options.batch, samples - first);
    const auto keep = [&](const net::OnnxPort& port, const net::Tensor& value) {
      if (!files.contains(port.name)) return;
      net::Tensor& whole = results[port.name];
      if (whole.empty()) {
        net::Shape shape = in_onnx_order(port, value.shape);
        if (shape.empty() || shape[0] != count)
          throw Error(fmt::format("output {}: expected samples along its first axis, found {}",
                                  port.name, net::to_string(shape)));
        shape[0] = samples;
        whole = net::Tensor(shape);
      }
      const auto to = whole.data.begin() + first * (whole.size() / samples);
      if (port.image) {
        std::ranges::copy(turned(value, false).data, to);
      } else {
        std::ranges::copy(value.data, to);
      }
    };
    const std::vector<net::Tensor> batch = samples_of(inputs, first, count);
    const auto graph_inputs = static_cast<int>(batch.size());
    const net::Observer observe = [&](const net::Node& node, const net::Tensor& value) {
      for (const net::OnnxPort& port : model.outputs) {
        if (port.value >= graph_inputs && port.value != model.outputs[0].value &&
            model.graph.value_name(port.value) == node.name)
          keep(port, value);
      }
    };
    std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) ids[i] = first + i;
    const net::Step step{net::Phase::inference, first / options.batch, &ids};
    numerics.begin_step(step);
    const net::Tensor last = net::forward(model.graph, batch, numerics, step, &observe);
    for (const net::OnnxPort& port : model.outputs) {
      if (port.value == model.outputs[0].value) keep(port, last);
      if (port.value < graph_inputs) keep(port, batch[static_cast<std::size_t>(port.value)]);
    }
    numerics.end_step(step);
    progress.show(first + count);
  }
  write_results(files, results);
  if (recipe_given)
    std::ranges::copy(policies::notes_on_nan(quantized, model.graph), std::back_inserter(notes));
  for (const std::string& note : notes) {
    if (!options.quiet) say("note: {}", note);
  }
  const NanCount nan = count_nan(inputs, results);
  Json report = Json::array();
  for (const auto& [name, path] : files) {
    const net::Tensor& y = results.at(name);
    report.push_back({{"output", name}, {"file", utf8_text(path)}, {"shape", y.shape}});
    if (nan.hidden > 0) report.back()["nan_samples_without_nan_output"] = nan.hidden;
    if (!notes.empty()) report.back()["notes"] = notes;
    const Json not_finite = not_finite_json(lost, y);
    if (!not_finite.is_null()) {
      report.back()["not_finite"] = not_finite;
      for (const std::string& sentence : not_finite_sentences(name, not_finite))
        say("note: {}", sentence);
    }
    if (!options.json)
      fmt::print("{}\n",
                 harmless(fmt::format("{} {} -> {}, {}", name, net::to_string(y.shape), path,
                                      options.recipe.empty() ? "float32 on neutral.f32.sequential"
                                                             : "numerics of " + options.recipe)));
  }
  if (nan.hidden > 0) {
    say("note: the inputs hold {} NaN, and {} of the {} samples with NaN have outputs without: a "
        "format without NaN turns them into numbers",
        nan.elements, nan.hidden, nan.samples);
  }
  if (options.json) fmt::print("{}\n", report.dump(2));
  return kFine;
}

}  // namespace

void add_infer(Program& program) {
  auto options = std::make_shared<Options>();
  Command& command = program.command("infer", "Run a model on your own arrays",
                                     [options] { return run(*options); });
  command
      .option("--model NAME|FILE", options->model,
              "An .onnx file, a checkpoint, NAME=FILE or a network's name")
      .required();
  command
      .option("--in [name=]x.npy", options->in,
              "Array of an input, samples first; images [n, c, h, w] of an .onnx file, "
              "[n, h, w, c] of built-in networks (repeatable)")
      .required();
  command
      .option("--out [name=]y.npy|y.safetensors", options->out, "File for an output (repeatable)")
      .required();
  add_recipe(command, options->recipe, "Recipe");
  command.flag("--fold-batch-norm", options->fold,
               "Fold batch normalisation into the weights before it");
  command.option("--batch N", options->batch, "Samples per batch").show_default().whole(1, 65536);
  command.flag("--json", options->json, "Print JSON");
  command.flag("--quiet", options->quiet, "No progress");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
