// Shapes, layouts and names are checked before anything runs.
#include "api/infer_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "api/array_files.hpp"
#include "emu/net/data/dataset.hpp"
#include "emu/net/data/images.hpp"
#include "emu/net/data/load_dataset.hpp"
#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx/checkpoint.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/views.hpp"
#include "emu/net/profile.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/safetensors.hpp"
#include "policies/calibrate/reference.hpp"

namespace numemu::api {
namespace {

/// "normalize=imagenet" or "mean=..,deviation=..", options of data sets; empty for none.
using PixelOptions = std::string;

PixelOptions pixels_of(const InferRequest& asked) {
  std::vector<std::string> given;
  for (const auto& [key, value] : {std::pair("normalize", &asked.normalize),
                                   {"mean", &asked.mean},
                                   {"deviation", &asked.deviation}}) {
    if (!value->empty()) given.push_back(fmt::format("{}={}", key, *value));
  }
  return joined(given, ",");
}

constexpr std::size_t kDigestDigits = 16;

/// What networks trained on that data set take, [height, width, channels]; empty for others.
net::Shape image_shape_of(const std::string& data) {
  if (data == "glyphs" || data == "mnist") return {28, 28, 1};
  if (data == "cifar10") return {32, 32, 3};
  return {};
}

/// What the arrays tell of axes that the file leaves open, and of constants that it lacks.
net::ImportOptions shapes_of(const net::OnnxModel& file, const std::vector<NamedArray>& inputs) {
  net::ImportOptions options;
  const auto add = [&](const std::string& name, const Tensor& array) {
    options.input_shapes[name] = array.shape;
    options.arrays[name] = &array;
  };
  for (const NamedArray& input : inputs) {
    if (!input.name.empty()) add(input.name, input.tensor);
  }
  if (inputs.size() == 1 && inputs[0].name.empty()) {
    for (const net::OnnxValueInfo& info : file.graph.inputs)
      add(std::string(info.name), inputs[0].tensor);
  }
  return options;
}

/// Whether the arrays may be samples of a batch: each has an axis for them, and as many; or the
/// file has one symbol for axes of theirs that differ, which is refused.
bool have_batch(const net::OnnxModel& file, const std::vector<NamedArray>& inputs,
                const net::ImportOptions& options) {
  std::set<std::int64_t> samples;
  std::map<std::string_view, std::set<std::int64_t>> by_symbol;
  for (const net::OnnxValueInfo& info : file.graph.inputs) {
    const auto given = options.input_shapes.find(info.name);
    if (given == options.input_shapes.end()) continue;
    const std::size_t axis = net::batch_axis(info);
    const std::int64_t count = axis < given->second.size() ? given->second[axis] : 0;
    samples.insert(count);
    if (axis < info.dims.size() && !info.dims[axis].symbol.empty())
      by_symbol[info.dims[axis].symbol].insert(count);
  }
  for (const auto& [symbol, counts] : by_symbol)
    if (counts.size() > 1) return true;
  return samples.size() <= 1 && !samples.contains(0) && !inputs.empty();
}

/// What to do about arrays of another number of samples than the file fixes; nothing where it
/// fixes none.
std::string advice_on_batch(const net::OnnxModel& file, const net::ImportOptions& options) {
  for (const net::OnnxValueInfo& info : file.graph.inputs) {
    const auto given = options.input_shapes.find(info.name);
    const std::size_t axis = net::batch_axis(info);
    if (given == options.input_shapes.end() || axis >= given->second.size() ||
        axis >= info.dims.size())
      continue;
    const std::int64_t fixed = info.dims[axis].extent, found = given->second[axis];
    if (fixed > 0 && fixed != found)
      return fmt::format(
          "; the file has a batch of {}, the arrays of {}, which may be why: run {} at a time, or "
          "export the network with an open batch (dynamic_axes)",
          fixed, found, fixed);
  }
  return {};
}

/// Whether the first axis of every output has a row for each sample.
bool outputs_have_samples(const net::ImportedModel& model) {
  for (const std::int64_t batch : {2, 3}) {
    std::vector<net::Shape> shapes;
    for (const net::GraphInput& input : model.graph.inputs) {
      shapes.push_back(input.shape);
      shapes.back().insert(shapes.back().begin(), batch);
    }
    shapes = net::value_shapes(model.graph, shapes);
    for (const net::OnnxPort& port : model.outputs) {
      const net::Shape& shape = shapes[static_cast<std::size_t>(port.value)];
      if (shape.empty() || shape[0] != batch) return false;
    }
  }
  return true;
}

net::ImportedModel with_note(net::ImportedModel model, const net::ImportOptions& options,
                             const std::string& reason) {
  if (options.one_sample)
    model.notes.push_back(
        fmt::format("All arrays are one sample, with one scale of each activation: {}.", reason));
  return model;
}

/// The extent of the network's last parameter; of the file's last tensor where it has another name.
std::int64_t outputs_of(const net::Checkpoint& checkpoint, const std::string& architecture,
                        const net::Shape& shape) {
  const net::Tensor& last = checkpoint.tensors.back().value;
  const std::int64_t otherwise = last.shape.empty() ? 1 : last.dim(0);
  const std::string name = net::build_net(architecture, shape, otherwise).parameters().back()->name;
  const auto found = std::ranges::find(checkpoint.tensors, name, &net::NamedTensor::name);
  return found == checkpoint.tensors.end() || found->value.shape.empty() ? otherwise
                                                                         : found->value.dim(0);
}

/// A network of this program's own, whose shapes follow from the array and the weights, or of a
/// checkpoint that has the graph of an ONNX file.
net::ImportedModel checkpoint_model(const std::string& model_name,
                                    const std::vector<NamedArray>& inputs, const Folders& folders) {
  const NamedArray& input = inputs.at(0);
  auto [architecture, path] = net::name_and_file(model_name);
  if (!net::names_weights_file(path)) {
    architecture = path;
    net::net_kind(architecture);  // an unknown name is refused with the nearest one
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folders.data)) {
      const std::string name = entry.path().filename();
      if (name.starts_with(architecture + "-") && name.ends_with(".safetensors"))
        found.push_back(entry.path());
    }
    if (found.size() != 1) {
      throw usage_error(
          fmt::format("--model: expected one shipped checkpoint of {}, found {}; give its "
                      ".safetensors file",
                      architecture, found.size()));
    }
    path = found[0];
  }
  const net::Checkpoint checkpoint = net::read_weights(path);
  if (architecture.empty() && net::graph_of(checkpoint, path) != nullptr) {
    return net::import_checkpoint(
        checkpoint, path, [&](const net::OnnxModel& file) { return shapes_of(file, inputs); });
  }
  if (const std::string name = net::network_name(checkpoint); !name.empty()) architecture = name;
  if (architecture.empty() || checkpoint.tensors.empty())
    throw Error(path +
                ": expected metadata 'net' with the network's name, as `numemu train` writes it");
  if (input.tensor.shape.empty()) throw Error(input.path + ": expected an array with samples");
  const net::Shape shape(input.tensor.shape.begin() + 1, input.tensor.shape.end());
  for (const auto& [key, value] : checkpoint.metadata) {
    const net::Shape expected = key == "data" ? image_shape_of(value) : net::Shape();
    if (expected.empty() || shape == expected) continue;
    throw Error(fmt::format("{}: expected [n, {}], found {}", input.path, joined(expected, ", "),
                            net::to_string(input.tensor.shape)));
  }
  net::ImportedModel model;
  model.graph = net::build_net(architecture, shape, outputs_of(checkpoint, architecture, shape));
  net::load_checkpoint(model.graph, checkpoint, path);
  model.inputs.push_back({model.graph.inputs[0].name, 0, false});
  model.outputs.push_back({"output", static_cast<int>(model.graph.value_count()) - 1, false});
  return model;
}

/// An array of uint8.
std::optional<Array> bytes_of(const std::string& path) {
  if (!path.ends_with(".npy") || open_input(path).sidecar) return std::nullopt;
  Array array = read_npy(path);
  return array.type == ArrayType::uint8 ? std::optional(std::move(array)) : std::nullopt;
}

Array float32_of(const Array& bytes) {
  Array out(ArrayType::float32, bytes.shape);
  std::copy_n(bytes.as<std::uint8_t>(), bytes.elements(), out.as<float>());
  return out;
}

/// (p / 255 - mean) / deviation, by the last axis.
void normalise(const PixelOptions& pixels, Tensor& x) {
  const std::int64_t channels = x.shape.back();
  const net::SourceOptions options("uint8", pixels, {"normalize", "mean", "deviation"});
  const std::optional<net::Normalisation> n = net::normalisation_of(options, channels);
  const std::vector<float> table = net::normalisation_table(n->mean, n->deviation);
  constexpr std::int64_t kBytes = 256;
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data[i] = table[i % channels * kBytes + static_cast<std::int64_t>(x.data[i])];
}

[[noreturn]] void refuse_shape(const NamedArray& array, const net::OnnxPort& port,
                               const net::Shape& expected) {
  throw Error(fmt::format("{}: expected an array of shape {} for {}, found {}", array.path,
                          net::to_string(expected), port.name, net::to_string(array.tensor.shape)));
}

/// What pixel options make of bytes. Whole numbers of the file's own need none.
void normalise(const PixelOptions& pixels, const NamedArray& array, const net::OnnxPort& port,
               Tensor& x) {
  if (!array.bytes || (pixels.empty() && port.whole)) return;
  if (pixels.empty())
    throw Error(array.path +
                ": uint8: expected --normalize imagenet|cifar|none, or --mean and --deviation");
  normalise(pixels, x);
}

/// Where a data set has each input of a graph.
std::vector<std::size_t> order_of(const Dataset& data, const Graph& graph,
                                  const std::string& given) {
  if (data.inputs().empty() && graph.inputs.size() > 1)
    throw usage_error(
        fmt::format("--calibrate-on: {}: expected a data set that names {} inputs, or arrays",
                    given, graph.inputs.size()));
  std::vector<std::size_t> order;
  for (const net::GraphInput& input : graph.inputs) {
    const auto found = std::ranges::find(data.inputs(), input.name, &net::NamedShape::name);
    if (!data.inputs().empty() && found == data.inputs().end())
      throw usage_error(
          fmt::format("--calibrate-on: {}: expected an array '{}'", given, input.name));
    order.push_back(
        data.inputs().empty() ? 0 : static_cast<std::size_t>(found - data.inputs().begin()));
    const net::Shape& shape = data.inputs().empty() ? data.input_shape() : found->shape;
    if (shape != input.shape) {
      throw usage_error(fmt::format("--calibrate-on: expected samples of shape {}, found {} in {}",
                                    net::to_string(input.shape), net::to_string(shape), given));
    }
  }
  return order;
}

/// Of the elements of all, one array after the other.
std::string digest_of(const std::vector<NamedArray>& arrays) {
  Sha256 digest;
  for (const NamedArray& array : arrays)
    digest.add(array.tensor.data.data(), array.tensor.data.size() * sizeof(float));
  return digest.hex().substr(0, kDigestDigits);
}

}  // namespace

void require_paths(const InferRequest& asked) {
  std::vector<NamedPath> outputs,
      inputs = {{"--model", net::name_and_file(asked.model).second, false},
                {"--recipe", recipe_where(asked.recipe), false}};
  for (const std::string& text : asked.out) {
    const std::string path = net::name_and_file(text).second;
    const auto same = [&](const NamedPath& other) { return other.path == path; };
    if (is_safetensors(path) && std::ranges::any_of(outputs, same)) continue;
    outputs.push_back({"--out", path, false});
    require_replaceable(path);
  }
  for (const auto& [option, texts] :
       {std::pair("--in", &asked.in), {"--calibrate-on", &asked.calibrate_on}}) {
    for (const std::string& text : *texts)
      inputs.push_back({option, net::name_and_file(text).second, false});
  }
  require_distinct_paths(outputs, inputs);
  for (const NamedPath& output : outputs) require_array_name("--out", output.path);
}

std::vector<NamedArray> read_arrays(const std::vector<std::string>& given, std::string_view option,
                                    const Context& context) {
  const net::Section section(net::SectionKind::data, "", "arrays");
  std::vector<NamedArray> arrays;
  for (const std::string& text : given) {
    const auto [name, path] = net::name_and_file(text);
    std::int64_t rounded = 0;
    const std::optional<Array> bytes = bytes_of(path);
    const Array array = bytes ? float32_of(*bytes) : read_float32(path, "", &rounded);
    if (rounded > 0)
      context.say(
          fmt::format("numemu: note: {}: {} of {} rounded to float32, the type of network values",
                      path, rounded, counted(array.elements(), "number")));
    const auto same = [&name = name](const NamedArray& other) { return other.name == name; };
    if (!name.empty() && std::any_of(arrays.begin(), arrays.end(), same))
      throw usage_error(fmt::format("{}: {} is given twice", option, name));
    NamedArray input{name, path, Tensor(net::Shape(array.shape.begin(), array.shape.end()))};
    std::copy_n(array.as<float>(), array.elements(), input.tensor.data.begin());
    input.bytes = bytes.has_value();
    if (!input.tensor.shape.empty() && input.tensor.dim(0) < 1)
      throw Error(path + ": expected an array with samples");
    arrays.push_back(std::move(input));
  }
  return arrays;
}

std::vector<NamedArray> named_arrays(std::span<const net::NamedTensor> given) {
  std::vector<NamedArray> arrays;
  for (const net::NamedTensor& array : given) {
    NamedArray& own = arrays.emplace_back(
        NamedArray{array.name, array.name.empty() ? "the array" : "array " + array.name,
                   Tensor::borrowed(array.value.shape, array.value.data.data())});
    if (!own.tensor.shape.empty() && own.tensor.dim(0) < 1)
      throw Error(own.path + ": expected an array with samples");
  }
  return arrays;
}

net::ImportedModel load_model(const std::string& name, const std::vector<NamedArray>& inputs,
                              const Folders& folders) {
  if (const auto given = net::network_with_weights(name);
      given && net::names_onnx_file(given->first)) {
    net::ImportedModel model = load_model(given->first, inputs, folders);
    net::load_parameters(model.graph, net::read_weights(given->second), given->second);
    return model;
  }
  if (!net::names_onnx_file(name)) return checkpoint_model(name, inputs, folders);
  net::OnnxModel file = net::read_onnx(name);
  net::ImportOptions options = shapes_of(file, inputs);
  const bool may_be_one = net::has_all_extents(file, options);
  const std::string advice = advice_on_batch(file, options);
  std::string reason = "the arrays have no common number of samples";
  options.one_sample = may_be_one && !have_batch(file, inputs, options);
  if (may_be_one &&
      std::ranges::count(file.graph.nodes, "DynamicQuantizeLinear", &net::OnnxNode::op_type) > 0) {
    options.one_sample = true;
    reason = "DynamicQuantizeLinear has one scale for the whole tensor";
  }
  try {
    net::ImportedModel model = net::import_onnx(std::move(file), options);
    if (options.one_sample || !may_be_one || outputs_have_samples(model))
      return with_note(std::move(model), options, reason);
    reason = "an output has no row for each sample";
  } catch (const Error& error) {
    if (!may_be_one && !advice.empty() && error.kind() != ErrorKind::memory)
      throw Error(error.what() + advice, error.kind());
    if (options.one_sample || !may_be_one || error.kind() == ErrorKind::memory) throw;
    reason = error.what();
  }
  // Weights may have left the memory of the file.
  file = net::read_onnx(name);
  options.one_sample = true;
  return with_note(net::import_onnx(std::move(file), options), options, reason);
}

net::ImportedModel opened_model(const InferRequest& asked, const std::vector<NamedArray>& arrays,
                                const Folders& folders) {
  net::ImportedModel model = load_model(asked.model, arrays, folders);
  if (asked.fold_batch_norm) {
    if (model.outputs.size() > 1)
      throw usage_error("--fold-batch-norm: expected a model of one output");
    net::fold_batch_norm(model.graph);
    model.outputs[0].value = static_cast<int>(model.graph.value_count()) - 1;
  }
  return model;
}

std::optional<net::ImportedFile> source_of(const std::string& name,
                                           const std::vector<NamedArray>& inputs,
                                           const net::ImportedModel& opened) {
  std::optional<net::OnnxModel> file = net::source_model(name);
  if (!file) return std::nullopt;
  net::ImportOptions options = shapes_of(*file, inputs);
  options.one_sample = opened.inputs.at(0).batch_axis == net::kNoBatch;
  net::ImportedModel imported = net::import_onnx(*file, options);
  return net::ImportedFile{*std::move(file), std::move(imported)};
}

Tensor with_axis_moved(const Tensor& x, int from, int to) {
  net::Shape shape = x.shape;
  net::Strides strides = net::row_major(shape);
  for (net::Shape* axes : {&shape, &strides.steps}) {
    const std::int64_t moved = (*axes)[static_cast<std::size_t>(from)];
    axes->erase(axes->begin() + from);
    axes->insert(axes->begin() + to, moved);
  }
  Tensor out(shape);
  net::strided_copy(shape, x.data.data(), strides, out.data.data(), net::row_major(shape));
  return out;
}

std::vector<Tensor> arranged(const net::ImportedModel& model, std::vector<NamedArray> arrays,
                             std::string_view option, const InferRequest& asked) {
  const PixelOptions pixels = pixels_of(asked);
  std::vector<Tensor> out;
  if (!pixels.empty() && std::ranges::none_of(arrays, &NamedArray::bytes))
    throw usage_error(
        fmt::format("{}: expected an array of uint8 to normalise, found none", option));
  for (const net::OnnxPort& port : model.inputs) {
    const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const NamedArray& array) {
      return array.name == port.name || (array.name.empty() && model.inputs.size() == 1);
    });
    if (found == arrays.end()) {
      std::vector<std::string> names;
      for (const net::OnnxPort& other : model.inputs) names.push_back(other.name);
      throw usage_error(fmt::format("{}: expected {}=FILE, the model's inputs are {}", option,
                                    port.name, joined(names, ", ")));
    }
    net::Shape shape = model.graph.inputs[static_cast<std::size_t>(port.value)].shape;
    if (port.batch_axis == net::kNoBatch) {
      if (found->tensor.shape != shape) refuse_shape(*found, port, shape);
      found->tensor.shape.insert(found->tensor.shape.begin(), 1);
      out.push_back(std::move(found->tensor));
      normalise(pixels, *found, port, out.back());
      found->name = port.name;
      found->path.clear();
      continue;
    }
    if (found->tensor.shape.empty()) throw Error(found->path + ": expected an array with samples");
    if (port.image) shape = {shape[2], shape[0], shape[1]};
    const std::size_t batch =
        std::min(static_cast<std::size_t>(port.batch_axis), found->tensor.shape.size() - 1);
    const std::int64_t samples = found->tensor.shape[batch];
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(std::min(batch, shape.size())),
                 samples);
    if (found->tensor.shape != shape) refuse_shape(*found, port, shape);
    if (samples < 1)
      throw Error(fmt::format("{}: expected samples along axis {}", found->path, batch));
    if (!out.empty() && samples != out[0].dim(0))
      throw Error(found->path + ": expected as many samples as the other inputs");
    if (port.batch_axis > 0) found->tensor = with_axis_moved(found->tensor, port.batch_axis, 0);
    out.push_back(port.image ? with_axis_moved(found->tensor, 1, 3) : std::move(found->tensor));
    normalise(pixels, *found, port, out.back());
    found->name = port.name;
    found->path.clear();
  }
  for (const NamedArray& array : arrays) {
    if (!array.path.empty())
      throw usage_error(fmt::format("{}: the model has no input '{}'", option, array.name));
  }
  return out;
}

std::vector<Tensor> samples_of(const std::vector<Tensor>& all, std::int64_t first,
                               std::int64_t count) {
  std::vector<Tensor> out;
  for (const Tensor& x : all) out.push_back(policies::samples_of(x, first, count));
  return out;
}

CalibrationSamples calibration_samples(const InferRequest& asked, const net::ImportedModel& model,
                                       const Context& context) {
  const std::vector<std::string>& given = asked.calibrate_on;
  const bool files =
      std::ranges::any_of(given, [](const std::string& text) { return text.ends_with(".npy"); });
  if (files || !asked.calibration.empty()) {
    std::vector<NamedArray> read =
        files ? read_arrays(given, "--calibrate-on", context) : named_arrays(asked.calibration);
    const std::string digest = digest_of(read);
    auto tensors = std::make_shared<const std::vector<Tensor>>(
        arranged(model, std::move(read), "--calibrate-on", asked));
    return {files ? joined(given, ", ") : "arrays of the caller", tensors->at(0).dim(0), digest,
            [tensors](std::int64_t first, std::int64_t count) {
              return samples_of(*tensors, first, count);
            }};
  }
  if (given.size() > 1) throw usage_error("--calibrate-on: expected arrays (.npy) or one data set");
  auto data =
      std::make_shared<const net::Dataset>(net::load_dataset(given[0], context.folders.cache));
  const std::vector<std::size_t> order = order_of(*data, model.graph, given[0]);
  return {given[0], data->calibration_count(), data->digest(),
          [data, order, batch = experiments::calibration_of(*data)](std::int64_t first,
                                                                    std::int64_t count) {
            std::vector<Tensor> all = batch(first, count), out;
            for (const std::size_t i : order) out.push_back(std::move(all[i]));
            return out;
          }};
}

FiniteSamples finite_samples(const policies::CalibrationBatch& batch, std::int64_t count) {
  constexpr std::int64_t kPiece = 16;
  struct Input {
    std::vector<std::int64_t> infinite;  // samples
    bool mask = true;                    // numbers are 0 or -inf
  };
  std::vector<Input> inputs;
  std::vector<bool> odd(static_cast<std::size_t>(count));
  for (std::int64_t first = 0; first < count; first += kPiece) {
    const std::int64_t n = std::min(kPiece, count - first);
    const std::vector<Tensor> piece = batch(first, n);
    inputs.resize(piece.size());
    for (std::size_t k = 0; k < piece.size(); ++k) {
      const std::int64_t each = piece[k].size() / n;
      for (std::int64_t i = 0; i < n; ++i) {
        bool infinite = false;
        for (const float v :
             std::span(piece[k].data)
                 .subspan(static_cast<std::size_t>(i * each), static_cast<std::size_t>(each))) {
          infinite = infinite || std::isinf(v);
          if (std::isnan(v)) odd[static_cast<std::size_t>(first + i)] = true;
          inputs[k].mask = inputs[k].mask && (v == 0 || v == -HUGE_VALF || std::isnan(v));
        }
        if (infinite) inputs[k].infinite.push_back(first + i);
      }
    }
  }
  for (const Input& input : inputs) {
    if (input.mask || static_cast<std::int64_t>(input.infinite.size()) == count) continue;
    for (const std::int64_t sample : input.infinite) odd[static_cast<std::size_t>(sample)] = true;
  }
  FiniteSamples finite;
  for (std::int64_t i = 0; i < count; ++i)
    (odd[static_cast<std::size_t>(i)] ? finite.left_out : finite.kept).push_back(i);
  return finite;
}

std::vector<Tensor> samples_of(const policies::CalibrationBatch& batch,
                               std::span<const std::int64_t> ids) {
  const auto count = static_cast<std::int64_t>(ids.size());
  if (ids.back() - ids.front() + 1 == count) return batch(ids.front(), count);
  std::vector<Tensor> out;
  for (const std::int64_t id : ids) {
    std::vector<Tensor> one = batch(id, 1);
    if (out.empty()) {
      out = std::move(one);
      continue;
    }
    for (std::size_t k = 0; k < out.size(); ++k) {
      out[k].data.append(one[k].data);
      ++out[k].shape[0];
    }
  }
  return out;
}

std::string digest_of(const Tensor& x) {
  Sha256 digest;
  digest.add(x.data.data(), x.data.size() * sizeof(float));
  return digest.hex().substr(0, kDigestDigits);
}

std::map<std::string, std::string> destinations(const InferRequest& asked,
                                                const net::ImportedModel& model) {
  std::map<std::string, std::string> files;
  const auto add = [&](const std::string& name, const std::string& path) {
    const std::string key = name.empty() ? model.outputs[0].name : name;
    const bool known = std::ranges::any_of(
        model.outputs, [&](const net::OnnxPort& port) { return port.name == key; });
    if (!known) throw usage_error(fmt::format("--out: the model has no output '{}'", key));
    if (!files.emplace(key, path).second)
      throw usage_error(fmt::format("--out: {} is given twice", key));
  };
  for (const std::string& text : asked.out) std::apply(add, net::name_and_file(text));
  for (const std::string& name : asked.keep) add(name, "");
  for (const net::OnnxPort& port : model.outputs) {
    if (asked.keep_all) files.emplace(port.name, "");
  }
  return files;
}

net::Shape in_onnx_order(const net::OnnxPort& port, const net::Shape& shape) {
  return port.image ? net::Shape{shape[0], shape[3], shape[1], shape[2]} : shape;
}

std::deque<net::MemoryClaim> claim_memory(const net::ImportedModel& model,
                                          const std::vector<Tensor>& inputs, std::int64_t batch,
                                          const std::map<std::string, std::string>& files) {
  std::deque<net::MemoryClaim> claims;
  std::vector<net::Shape> all, few;
  for (const Tensor& x : inputs) {
    claims.emplace_back(2 * x.size(), "the arrays of --in");
    all.push_back(x.shape);
    few.push_back(x.shape);
    few.back()[0] = std::min(batch, x.dim(0));
  }
  all = net::value_shapes(model.graph, all);
  few = net::value_shapes(model.graph, few);
  for (const net::OnnxPort& port : model.outputs) {
    if (!files.contains(port.name)) continue;
    const auto value = static_cast<std::size_t>(port.value);
    const std::string what = fmt::format("output {} of shape {}, all samples", port.name,
                                         net::to_string(in_onnx_order(port, all[value])));
    claims.emplace_back(net::element_count(all[value]), what);
    if (port.image) claims.emplace_back(net::element_count(few[value]), what);
  }
  return claims;
}

void write_results(const std::map<std::string, std::string>& files,
                   const std::map<std::string, Tensor>& results) {
  const net::Section section(net::SectionKind::data, "", "outputs");
  std::map<std::string, net::Checkpoint> together;
  for (const auto& [name, path] : files) {
    if (path.empty()) continue;
    const Tensor& y = results.at(name);
    if (is_safetensors(path)) {
      together[path].tensors.push_back({name, y});
    } else {
      write_npy(path, ArrayType::float32, ArrayShape(y.shape.begin(), y.shape.end()),
                y.data.data());
    }
  }
  for (const auto& [path, tensors] : together) net::write_safetensors(path, tensors);
}

}  // namespace numemu::api
