// Outputs of numemu infer as .npy or .safetensors files.
#include "cli/infer_results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/memory_plan.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/profile.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/distinct_paths.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/safetensors_tensor.hpp"

namespace numemu::cli {
namespace {

constexpr std::int64_t kReferenceElements = std::int64_t{1} << 24;

/// Which samples hold a number that is `bad`.
template <class Bad>
std::vector<bool> samples_with(const net::Tensor& x, const Bad& bad) {
  std::vector<bool> found(static_cast<std::size_t>(x.dim(0)), false);
  const std::size_t each = x.data.size() / found.size();
  for (std::size_t i = 0; i < x.data.size(); ++i)
    if (bad(x.data[i])) found[i / each] = true;
  return found;
}

std::vector<bool> samples_with_nan(const net::Tensor& x) {
  return samples_with(x, [](float v) { return std::isnan(v); });
}

}  // namespace

std::pair<std::string, std::string> named(const std::string& text) {
  const std::size_t equals = text.find('=');
  return equals == std::string::npos ? std::pair{std::string(), text}
                                     : std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

void require_paths(const std::vector<std::string>& out, const InferInputs& in) {
  std::vector<NamedPath> outputs,
      inputs = {{"--model", named(in.model).second, false}, {"--recipe", in.recipe, false}};
  for (const std::string& text : out) {
    const std::string path = named(text).second;
    if (path.ends_with(".npz"))
      throw Error(fmt::format("--out: {}: expected a .npy or .safetensors file", path));
    const auto same = [&](const NamedPath& other) { return other.path == path; };
    if (is_safetensors(path) && std::ranges::any_of(outputs, same)) continue;
    outputs.push_back({"--out", path, false});
    require_replaceable(path);
  }
  for (const auto& [option, texts] :
       {std::pair("--in", &in.arrays), {"--calibrate-on", &in.calibrate_on}}) {
    for (const std::string& text : *texts) inputs.push_back({option, named(text).second, false});
  }
  require_distinct_paths(outputs, inputs);
}

std::map<std::string, std::string> destinations(const std::vector<std::string>& out,
                                                const net::ImportedModel& model) {
  std::map<std::string, std::string> files;
  for (const std::string& text : out) {
    const auto [name, path] = named(text);
    const std::string key = name.empty() ? model.outputs[0].name : name;
    const bool known = std::ranges::any_of(
        model.outputs, [&](const net::OnnxPort& port) { return port.name == key; });
    if (!known) throw Error(fmt::format("--out: the model has no output '{}'", key));
    if (!files.emplace(key, path).second) throw Error(fmt::format("--out: {} is given twice", key));
  }
  return files;
}

net::Shape in_onnx_order(const net::OnnxPort& port, const net::Shape& shape) {
  return port.image ? net::Shape{shape[0], shape[3], shape[1], shape[2]} : shape;
}

std::deque<net::MemoryClaim> claim_memory(const net::ImportedModel& model,
                                          const std::vector<net::Tensor>& inputs,
                                          std::int64_t batch,
                                          const std::map<std::string, std::string>& files) {
  std::deque<net::MemoryClaim> claims;
  std::vector<net::Shape> all, few;
  for (const net::Tensor& x : inputs) {
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

NanCount count_nan(const std::vector<net::Tensor>& inputs,
                   const std::map<std::string, net::Tensor>& results) {
  NanCount count;
  std::vector<bool> in(static_cast<std::size_t>(inputs.at(0).dim(0)), false), out = in;
  const auto merge = [](std::vector<bool>& into, const std::vector<bool>& more) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = into[i] || more[i];
  };
  for (const net::Tensor& x : inputs) {
    count.elements += std::ranges::count_if(x.data, [](float v) { return std::isnan(v); });
    merge(in, samples_with_nan(x));
  }
  if (count.elements == 0) return count;
  for (const auto& [name, y] : results) merge(out, samples_with_nan(y));
  for (std::size_t i = 0; i < in.size(); ++i) {
    count.samples += in[i];
    count.hidden += in[i] && !out[i];
  }
  return count;
}

std::int64_t reference_samples(const net::Graph& graph, const std::vector<net::Tensor>& inputs,
                               std::int64_t* elements) {
  std::vector<net::Shape> one;
  for (const net::Tensor& x : inputs) {
    one.push_back(x.shape);
    one.back()[0] = 1;
  }
  *elements = 1;
  for (const net::Shape& shape : net::value_shapes(graph, one))
    *elements += net::element_count(shape);
  // What layers read and what they give, in half of what is left at most: no figure is worth a
  // refusal.
  const std::int64_t most = net::memory_left() / (4 * static_cast<std::int64_t>(sizeof(float)));
  return std::min({std::max<std::int64_t>(1, kReferenceElements / *elements), most / *elements,
                   inputs[0].dim(0)});
}

Json not_finite_json(const experiments::NotFinite& lost, const net::Tensor& output) {
  Json json = lost.json(output.dim(0), stats::count_finite(output.data.data(), output.size()));
  if (json.is_null()) return json;
  const std::vector<bool> samples = samples_with(output, [](float v) { return !std::isfinite(v); });
  json["samples_not_finite"] = std::ranges::count(samples, true);
  return json;
}

std::vector<std::string> not_finite_sentences(const std::string& output, const Json& not_finite) {
  const auto lost = [](const Json& counts) {
    return counts["nan"].get<std::int64_t>() + counts["infinite"].get<std::int64_t>();
  };
  const Json& numbers = not_finite["outputs"];
  std::vector<std::string> out = {
      lost(numbers) == 0
          ? fmt::format("{} is finite, but results of layers are not", output)
          : fmt::format("{} of {} of {} have NaN or infinite numbers (NaN {}, infinite {} of {})",
                        not_finite["samples_not_finite"].get<std::int64_t>(),
                        counted(not_finite["samples"], "sample"), output,
                        numbers["nan"].get<std::int64_t>(), numbers["infinite"].get<std::int64_t>(),
                        numbers["of"].get<std::int64_t>())};
  for (const Json& layer : not_finite["layers"]) {
    if (lost(layer) <= layer["inherited"].get<std::int64_t>()) continue;
    out.push_back(
        fmt::format("they first occur in layer {}: {} of {} results: {}",
                    layer["name"].get<std::string>(), lost(layer), layer["of"].get<std::int64_t>(),
                    layer["causes"].empty() ? "" : layer["causes"][0].get<std::string>()));
    break;
  }
  return out;
}

void write_results(const std::map<std::string, std::string>& files,
                   const std::map<std::string, net::Tensor>& results) {
  const net::Section section(net::SectionKind::data, "", "outputs");
  std::map<std::string, net::Checkpoint> together;
  for (const auto& [name, path] : files) {
    const net::Tensor& y = results.at(name);
    if (is_safetensors(path)) {
      together[path].tensors.push_back({name, y});
    } else {
      write_npy(path, ArrayType::float32, ArrayShape(y.shape.begin(), y.shape.end()),
                y.data.data());
    }
  }
  for (const auto& [path, tensors] : together) net::write_safetensors(path, tensors);
}

}  // namespace numemu::cli
