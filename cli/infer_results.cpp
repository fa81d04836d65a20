// Outputs of numemu infer as .npy or .safetensors files.
#include "cli/infer_results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/memory_plan.hpp"
#include "emu/net/model/safetensors.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/distinct_paths.hpp"
#include "formats/storage/npy.hpp"

namespace numemu::cli {
namespace {

bool holds_several(const std::string& path) { return path.ends_with(".safetensors"); }

/// Which samples hold a NaN.
std::vector<bool> samples_with_nan(const net::Tensor& x) {
  std::vector<bool> found(static_cast<std::size_t>(x.dim(0)), false);
  const std::size_t each = x.data.size() / found.size();
  for (std::size_t i = 0; i < x.data.size(); ++i)
    if (std::isnan(x.data[i])) found[i / each] = true;
  return found;
}

}  // namespace

std::pair<std::string, std::string> named(const std::string& text) {
  const std::size_t equals = text.find('=');
  return equals == std::string::npos ? std::pair{std::string(), text}
                                     : std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

void require_paths(const std::vector<std::string>& out, const std::vector<std::string>& in) {
  std::vector<NamedPath> outputs, inputs;
  for (const std::string& text : out) {
    const std::string path = named(text).second;
    if (path.ends_with(".npz"))
      throw Error(fmt::format("--out: {}: expected a .npy or .safetensors file", path));
    const auto same = [&](const NamedPath& other) { return other.path == path; };
    if (holds_several(path) && std::ranges::any_of(outputs, same)) continue;
    outputs.push_back({"--out", path, false});
    require_replaceable(path);
  }
  for (const std::string& text : in) inputs.push_back({"--in", named(text).second, false});
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
    if (!known) throw Error(fmt::format("--out: '{}' is no output of the model", key));
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

void write_results(const std::map<std::string, std::string>& files,
                   const std::map<std::string, net::Tensor>& results) {
  std::map<std::string, net::Checkpoint> together;
  for (const auto& [name, path] : files) {
    const net::Tensor& y = results.at(name);
    if (holds_several(path)) {
      together[path].tensors.push_back({name, y});
    } else {
      write_npy(path, ArrayType::float32, ArrayShape(y.shape.begin(), y.shape.end()),
                y.data.data());
    }
  }
  for (const auto& [path, tensors] : together) net::write_safetensors(path, tensors);
}

}  // namespace numemu::cli
