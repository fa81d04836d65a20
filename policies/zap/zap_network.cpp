// Predictors of a network, and their file.
#include "policies/zap/zap_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "emu/net/forward.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/ops/sums.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"

namespace numemu::policies {
namespace {

double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

/// Per activation of maps of that shape: 1 where it is computed.
std::vector<std::uint8_t> expanded(const PositionMask& mask, const net::Shape& shape) {
  const std::int64_t channels = shape.back();
  std::vector<std::uint8_t> computed;
  computed.reserve(static_cast<std::size_t>(net::element_count(shape)));
  for (std::int64_t sample = 0; sample < shape.front(); ++sample)
    for (const std::uint8_t here : mask.computed)
      computed.insert(computed.end(), static_cast<std::size_t>(channels), here);
  return computed;
}

}  // namespace

double ZapTally::saving() const {
  return ratio(static_cast<double>(skipped()), static_cast<double>(elements()));
}
double ZapTally::error() const { return ratio(sum_lost, sum); }
double ZapTally::error_limit() const { return ratio(sum - sum_computed, sum); }

ZapTally& ZapTally::operator+=(const ZapTally& other) {
  computed += other.computed;
  predicted += other.predicted;
  zeros_skipped += other.zeros_skipped;
  losses += other.losses;
  values_kept += other.values_kept;
  zeros_kept += other.zeros_kept;
  sum += other.sum;
  sum_computed += other.sum_computed;
  sum_lost += other.sum_lost;
  return *this;
}

ZapTally tally_of(const PositionMask& mask, const net::Tensor& x, const net::Tensor& z,
                  float threshold) {
  const FloatGuard guard;
  const std::int64_t n = x.size(), channels = x.dim(-1);
  const float* const value = x.data.data();
  const float* const guess = z.data.data();
  ZapTally tally;
  for (std::int64_t p = 0; p < n / channels; ++p) {
    if (mask.computed[static_cast<std::size_t>(p % mask.positions())] != 0) continue;
    std::int32_t zeros_skipped = 0, losses = 0, values_kept = 0, zeros_kept = 0;
    const std::int64_t first = p * channels;
#pragma omp simd reduction(+ : zeros_skipped, losses, values_kept, zeros_kept)
    for (std::int64_t i = first; i < first + channels; ++i) {
      const std::int32_t is_value = value[i] > 0, is_kept = guess[i] > threshold;
      zeros_skipped += (1 - is_value) & (1 - is_kept);
      losses += is_value & (1 - is_kept);
      values_kept += is_value & is_kept;
      zeros_kept += (1 - is_value) & is_kept;
    }
    tally.predicted += channels;
    tally.zeros_skipped += zeros_skipped;
    tally.losses += losses;
    tally.values_kept += values_kept;
    tally.zeros_kept += zeros_kept;
  }
  tally.computed = n - tally.predicted;
  const std::vector<std::uint8_t> computed_elements = expanded(mask, x.shape);
  const std::uint8_t* const computed = computed_elements.data();
  tally.sum = net::line_sum(n, [=](std::int64_t i) { return double{value[i]}; });
  tally.sum_computed =
      net::line_sum(n, [=](std::int64_t i) { return computed[i] != 0 ? double{value[i]} : 0.0; });
  tally.sum_lost = net::line_sum(n, [=](std::int64_t i) {
    const bool kept = (computed[i] != 0) | (guess[i] > threshold);
    return kept ? 0.0 : double{value[i]};
  });
  return tally;
}

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

ZapNumerics::ZapNumerics(const ZapNetwork& network, net::Numerics& inner)
    : Forwarding(inner), network_(network), counted_(network.layers.size()) {}

void ZapNumerics::edge(const net::Step& step, const net::Edge& edge, net::Tensor& tensor) {
  const ZapLayer* const layer = edge.backward ? nullptr : network_.find(edge.layer);
  if (layer != nullptr) {
    const net::Tensor z = layer->predictor.predict(tensor);
    if (counting_ && step.phase == net::Phase::inference) {
      const ZapTally tally = tally_of(layer->predictor.mask(), tensor, z, layer->threshold);
      const std::lock_guard lock(mutex_);
      counted_[static_cast<std::size_t>(layer - network_.layers.data())][step.first_sample()] =
          tally;
    }
    skip_zeros(layer->predictor.mask(), z, layer->threshold, tensor);
  }
  Forwarding::edge(step, edge, tensor);
}

std::vector<ZapTally> ZapNumerics::tallies() const {
  std::vector<ZapTally> tallies;
  for (const auto& batches : counted_) {
    ZapTally total;
    for (const auto& [first, tally] : batches) total += tally;
    tallies.push_back(total);
  }
  return tallies;
}

}  // namespace numemu::policies
