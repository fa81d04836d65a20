// Predictors of a network, and their file.
// Cold: a negligible share of any run (docs/build.md).
#include "policies/zap/zap_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "emu/net/model/weights.hpp"
#include "formats/error.hpp"

namespace numemu::policies {
namespace {

/// Shapes of all values for one sample, and how many nodes read each.
struct Values {
  explicit Values(const net::Graph& graph) : readers(graph.value_count()) {
    for (const net::GraphInput& input : graph.inputs) {
      net::Shape shape = input.shape;
      shape.insert(shape.begin(), 1);
      shapes.push_back(shape);
    }
    for (const net::Node& node : graph.nodes) {
      std::vector<net::Shape> inputs;
      for (const int value : node.inputs) {
        inputs.push_back(shapes[value]);
        ++readers[value];
      }
      shapes.push_back(node.op->output_shape(inputs));
    }
  }
  std::vector<net::Shape> shapes;
  std::vector<int> readers;
};

/// Collects the convolutions that `value` comes from. A branch that ends elsewhere gives none.
struct Walk {
  const net::Graph& graph;
  const Values& values;
  ZapSite& site;
  bool from_input = false;

  void back(int value) {
    const int inputs = static_cast<int>(graph.inputs.size());
    if (value < inputs || values.readers[value] != 1) return;
    const net::Node& node = graph.nodes[value - inputs];
    const std::string_view kind = node.op->kind();
    if (kind == "conv2d") {
      site.convolutions.push_back(node.name);
      site.depth += node.op->parameters()[0].fan_in;
      from_input = from_input || node.inputs[0] < inputs;
    } else if (kind == "batch_norm" || kind == "add") {
      for (const int read : node.inputs) back(read);
    }
  }
};

}  // namespace

std::vector<ZapSite> zap_sites(const net::Graph& graph, bool first) {
  const Values values(graph);
  std::vector<ZapSite> sites;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const net::Node& node = graph.nodes[i];
    const net::Shape& shape = values.shapes[graph.value_of(i)];
    if (node.op->kind() != "relu" || shape.size() != 4) continue;
    ZapSite site{node.name, {shape[1], shape[2], shape[3]}, {}, 0};
    Walk walk{graph, values, site};
    walk.back(node.inputs[0]);
    if (!site.convolutions.empty() && (first || !walk.from_input)) sites.push_back(site);
  }
  return sites;
}

std::int64_t convolution_macs(const net::Graph& graph) {
  const Values values(graph);
  std::int64_t macs = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const net::Op& op = *graph.nodes[i].op;
    if (!op.kind().starts_with("conv") || op.result() != net::ResultKind::product) continue;
    macs += net::element_count(values.shapes[graph.value_of(i)]) * op.parameters()[0].fan_in;
  }
  return macs;
}

namespace {

constexpr std::string_view kKey = "zap.";

// "mask 5, threshold 0.1" of the metadata; false where it is anything else.
bool parse_layer(std::string_view text, int& mask, float& threshold) {
  const auto take = [&](std::string_view word) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
  };
  const auto number = [&](auto& value) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  return take("mask ") && number(mask) && take(", threshold ") && number(threshold) && text.empty();
}

/// What these nodes give in one pass over the samples.
std::vector<net::Tensor> record(const net::Graph& graph,
                                const std::vector<std::string_view>& layers, std::int64_t samples,
                                const ZapSamples& data) {
  constexpr std::int64_t kBatch = 32;
  std::vector<net::Tensor> maps(layers.size());
  std::int64_t first = 0;
  const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
    const auto found = std::find(layers.begin(), layers.end(), node.name);
    if (found == layers.end()) return;
    net::Tensor& map = maps[static_cast<std::size_t>(found - layers.begin())];
    if (map.empty()) {
      net::Shape shape = output.shape;
      shape[0] = samples;
      map = net::Tensor(shape);
    }
    std::copy(output.data.begin(), output.data.end(),
              map.data.begin() + first * (output.size() / output.dim(0)));
  };
  net::Numerics float32;
  for (; first < samples; first += kBatch)
    net::forward(graph, data(first, std::min(kBatch, samples - first)), float32, {}, &observe);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (!maps[l].empty()) continue;
    throw Error(fmt::format("network {}: expected a layer '{}' and at least one sample to record",
                            graph.name, layers[l]));
  }
  return maps;
}

/// The tensors of one predictor, out of those of all.
net::Checkpoint part_of(const net::Checkpoint& checkpoint, const std::string& prefix) {
  net::Checkpoint part;
  for (const net::NamedTensor& tensor : checkpoint.tensors)
    if (tensor.name.starts_with(prefix)) part.tensors.push_back(tensor);
  return part;
}

}  // namespace

const ZapLayer* ZapNetwork::find(std::string_view layer) const {
  for (const ZapLayer& candidate : layers)
    if (candidate.site.layer == layer) return &candidate;
  return nullptr;
}

void ZapNetwork::set_threshold(float threshold) {
  for (ZapLayer& layer : layers) layer.threshold = threshold;
}

void ZapNetwork::skip(std::string_view layer, net::Tensor& result) const {
  const ZapLayer* const found = find(layer);
  if (found == nullptr) return;
  const net::Tensor z = found->predictor.predict(result);
  skip_zeros(found->predictor.mask(), z, found->threshold, result);
}

ZapNetwork make_zap_network(const std::vector<ZapSite>& sites, int mask_type, std::uint64_t seed) {
  if (sites.empty())
    throw Error("zero prediction: expected a network with a ReLU behind a convolution");
  ZapNetwork network;
  for (const ZapSite& site : sites)
    network.layers.push_back({site, ZapPredictor(site.layer, site.map, mask_type, seed), 0});
  return network;
}

net::Tensor record_maps(const net::Graph& graph, std::string_view layer, std::int64_t samples,
                        const ZapSamples& data) {
  return std::move(record(graph, {layer}, samples, data).front());
}

void for_each_map(const ZapNetwork& network, const net::Graph& graph, std::int64_t samples,
                  const ZapSamples& data,
                  const std::function<void(std::size_t layer, net::Tensor maps)>& use,
                  std::int64_t most) {
  const auto elements = [&](std::size_t l) {
    return samples * network.layers[l].site.activations();
  };
  for (std::size_t first = 0, next = 0; first < network.layers.size(); first = next) {
    std::vector<std::string_view> layers;
    std::int64_t sum = 0;
    do {
      layers.emplace_back(network.layers[next].site.layer);
      sum += elements(next++);
    } while (next < network.layers.size() && sum + elements(next) <= most);
    std::vector<net::Tensor> maps = record(graph, layers, samples, data);
    for (std::size_t l = first; l < next; ++l) use(l, std::move(maps[l - first]));
  }
}

std::vector<std::vector<double>> train_zap_network(ZapNetwork& network, const net::Graph& graph,
                                                   std::int64_t samples, const ZapSamples& data,
                                                   const ZapTraining& training) {
  std::vector<std::vector<double>> losses;
  for_each_map(network, graph, samples, data, [&](std::size_t l, const net::Tensor& maps) {
    losses.push_back(train_predictor(network.layers[l].predictor, maps, training));
  });
  return losses;
}

void save_zap_network(const std::string& path, const ZapNetwork& network) {
  net::Checkpoint all;
  for (const ZapLayer& layer : network.layers) {
    net::Checkpoint part = net::parameters_of(layer.predictor.graph());
    std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(all.tensors));
    all.metadata.emplace_back(
        std::string(kKey) + layer.site.layer,
        fmt::format("mask {}, threshold {}", layer.predictor.mask().type, layer.threshold));
  }
  std::sort(all.metadata.begin(), all.metadata.end());
  net::write_safetensors(path, all);
}

ZapNetwork load_zap_network(const std::string& path, const net::Graph& graph) {
  const net::Checkpoint all = net::read_safetensors(path);
  std::map<std::string, std::string, std::less<>> said;
  for (const auto& [key, value] : all.metadata)
    if (key.starts_with(kKey)) said[key.substr(kKey.size())] = value;
  if (said.empty()) throw Error(path + ": expected metadata '" + std::string(kKey) + "LAYER'");
  ZapNetwork network;
  std::size_t read = 0;
  for (const ZapSite& site : zap_sites(graph, true)) {
    const auto found = said.find(site.layer);
    if (found == said.end()) continue;
    int mask = 0;
    float threshold = 0;
    if (!parse_layer(found->second, mask, threshold)) {
      throw Error(fmt::format("{}: layer {}: expected 'mask TYPE, threshold NUMBER', got '{}'",
                              path, site.layer, found->second));
    }
    network.layers.push_back({site, ZapPredictor(site.layer, site.map, mask), threshold});
    net::Graph& predictor = network.layers.back().predictor.graph();
    const net::Checkpoint part = part_of(all, predictor.name + ".");
    net::load_parameters(predictor, part, path);
    read += part.tensors.size();
    said.erase(found);
  }
  if (!said.empty()) {
    throw Error(fmt::format("{}: layer '{}' is not a ReLU after a convolution of network {}", path,
                            said.begin()->first, graph.name));
  }
  if (read != all.tensors.size())
    throw Error(path + ": expected only tensors of its predictors, found others");
  return network;
}

}  // namespace numemu::policies
