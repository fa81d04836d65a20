#include "experiments/actnn/passes.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/losses.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/stats/squares.hpp"
#include "experiments/engine/train_trial.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "policies/bits/sample_bits.hpp"

namespace numemu::experiments::actnn {
namespace {

/// D = A (m x k) B^T (n x k): element (n, k) of B meets all of column k of A.
void add_reach(const net::Product& p, std::vector<double>& all) {
  if (p.a.stack.count() != 1 || p.b.stack.count() != 1)
    throw Error("layer " + std::string(p.layer) + ": expected a product of one matrix");
  const unit::Gather& a = *p.a.gather;
  const unit::Gather& b = *p.b.gather;
  std::vector<double> squares(static_cast<std::size_t>(p.k));
  for (std::int64_t k = 0; k < p.k; ++k) {
    for (std::int64_t m = 0; m < p.m; ++m) {
      const double g = p.a.source->data[static_cast<std::size_t>(a.row[m] + a.depth[k])];
      squares[static_cast<std::size_t>(k)] += g * g;
    }
  }
  const unit::Padding& pad = b.padding;
  std::vector<double> padded(static_cast<std::size_t>(pad.padded_size()));
  for (std::int64_t n = 0; n < p.n; ++n) {
    for (std::int64_t k = 0; k < p.k; ++k)
      padded[static_cast<std::size_t>(b.row[n] + b.depth[k])] +=
          squares[static_cast<std::size_t>(k)];
  }
  for (std::int64_t i = 0; i < p.b.source->size(); ++i) {
    const std::int64_t c = i % pad.channels, x = i / pad.channels % pad.width,
                       y = i / pad.channels / pad.width % pad.height,
                       o = i / pad.channels / pad.width / pad.height;
    all.push_back(padded[static_cast<std::size_t>(
        ((o * pad.padded_height + pad.top + y * pad.row_dilation()) * pad.padded_width + pad.left +
         x * pad.dilation) *
            pad.channels +
        c)]);
  }
}

/// use(first element, count, minimum, maximum) of every group of every sample n.
template <class Use>
void for_each_group(const net::Tensor& x, std::int64_t group, const Use& use) {
  const std::int64_t each = x.size() / x.dim(0);
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    for (std::int64_t i = 0; i < each; i += group) {
      const auto begin = x.data.begin() + n * each + i;
      const std::int64_t count = std::min(group, each - i);
      const auto [low, high] = std::minmax_element(begin, begin + count);
      use(n, n * each + i, count, double{*low}, double{*high});
    }
  }
}

double steps_of(int bits) { return (1 << bits) - 1; }

}  // namespace

Sample sample_of(const std::string& net, const net::Dataset& data, std::int64_t train,
                 std::int64_t batch, std::uint64_t seed) {
  Sample sample{briefly_trained(net, data, train, seed), {}, {}};
  std::vector<std::int64_t> ids = net::shuffled(data.train_count(), seed, 1);
  for (std::size_t i = 0; std::ssize(ids) < batch; ++i) ids.push_back(ids[i]);
  ids.resize(static_cast<std::size_t>(batch));
  net::Targets targets;
  sample.x = data.train_batch(ids, targets);
  sample.labels = targets.classes;
  return sample;
}

Json sample_point(const std::string& net, const net::Dataset& data, std::int64_t train,
                  std::int64_t batch, std::uint64_t seed) {
  return {{"net", net},     {"data", data.name()}, {"samples", data.digest()},
          {"train", train}, {"batch", batch},      {"seed", seed}};
}

std::vector<Layer> layers_of(const net::Graph& graph) {
  const std::vector<const net::Parameter*> parameters = graph.parameters();
  std::vector<Layer> layers;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight == nullptr) continue;
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const auto* p) { return &p->value == layer.weight; });
    layers.push_back({layer.name, std::string(graph.value_name(layer.node->inputs[0])),
                      static_cast<std::size_t>(found - parameters.begin())});
  }
  return layers;
}

std::vector<std::string> linear_contexts(const net::Graph& graph) {
  std::vector<std::string> names;
  for (int value = 0; value < static_cast<int>(graph.value_count()); ++value) {
    const bool read = std::ranges::any_of(graph.nodes, [&](const net::Node& node) {
      for (std::size_t k = 0; k < node.inputs.size(); ++k)
        if (node.inputs[k] == value && node.op->input_use(k) == net::Use::linear) return true;
      return false;
    });
    if (read) names.emplace_back(graph.value_name(value));
  }
  return names;
}

std::vector<net::Tensor> pass(const Sample& sample, net::Numerics& numerics) {
  const FloatGuard guard;
  const net::Step step{.phase = net::Phase::training};
  net::Tape tape = net::forward_training(sample.graph, sample.x, numerics, step);
  net::Tensor grad_output;
  net::cross_entropy(tape.output, sample.labels, &grad_output, 1);
  return net::backward(sample.graph, std::move(tape), std::move(grad_output), numerics);
}

Exact exact_pass(const Sample& sample) {
  Exact exact;
  Observers show;
  show.before = [&](const net::Product& p, std::int64_t) {
    if (p.kind == net::GemmKind::wgrad) add_reach(p, exact.reach[std::string(p.layer)]);
  };
  show.kept = [&](const net::Kept& kept, const net::Tensor& tensor) {
    if (kept.use == net::Use::linear) exact.contexts[std::string(kept.layer)] = tensor;
  };
  show.edge = [&](const net::Edge& edge, const net::Tensor& tensor) {
    if (edge.backward) exact.outputs[std::string(edge.layer)] = tensor;
  };
  net::Numerics float32;
  Observed numerics(float32, show);
  exact.gradients = pass(sample, numerics);
  return exact;
}

net::Saved Drawn::save(const net::Step& step, const net::Kept& kept,
                       const net::SharedTensor& tensor) {
  const auto draw = draws.find(kept.layer);
  if (kept.use != net::Use::linear || draw == draws.end()) return {tensor};
  net::Step own = step;
  own.index = draw->second;
  return Forwarding::save(own, kept, tensor);
}

net::SharedTensor Drawn::restore(const net::Step& step, const net::Kept& kept, net::Saved saved) {
  if (kept.use != net::Use::linear || !draws.contains(kept.layer)) return saved.tensor;
  return Forwarding::restore(step, kept, std::move(saved));
}

std::vector<double> context_variance(const net::Tensor& x, std::int64_t group,
                                     const std::vector<int>& bits) {
  static const Format& bfloat16 = find_format("bfloat16");
  std::vector<double> variance(x.data.size());
  for_each_group(x, group, [&](auto n, auto first, auto count, double low, double high) {
    if (high == low) return;
    const double steps = steps_of(bits[static_cast<std::size_t>(n)]);
    const double s = to_double(decode(bfloat16, encode(bfloat16, value_of((high - low) / steps),
                                                       {RoundingMode::rup}, Overflow::saturate)
                                                    .code));
    for (std::int64_t i = first; i < first + count; ++i) {
      const double place = (x.data[static_cast<std::size_t>(i)] - low) / s;
      const double f = place - std::floor(place);
      variance[static_cast<std::size_t>(i)] = s * s * f * (1 - f);
    }
  });
  return variance;
}

std::vector<double> context_bound(const net::Tensor& x, std::int64_t group,
                                  const std::vector<int>& bits) {
  std::vector<double> bound(x.data.size());
  for_each_group(x, group, [&](auto n, auto first, auto count, double low, double high) {
    const double step = (high - low) / steps_of(bits[static_cast<std::size_t>(n)]);
    std::fill_n(bound.begin() + first, count, step * step / 4);
  });
  return bound;
}

std::map<std::string, std::vector<int>> bits_of(const Sample& sample, const Exact& exact, int bits,
                                                double average, std::int64_t group) {
  std::map<std::string, std::vector<int>> all;
  std::map<std::string, double, std::less<>> averages;
  for (const auto& [value, x] : exact.contexts) {
    all[value] = std::vector<int>(static_cast<std::size_t>(x.dim(0)), bits);
    averages[value] = average;
  }
  if (bits > 0) return all;
  policies::SampleBits greedy(sample.graph, averages);
  for (int step = 0; step < 2; ++step) {
    for (const auto& [value, x] : exact.contexts) all[value] = greedy.choose(value, x, group);
    for (const auto& [node, g] : exact.outputs) greedy.see_gradient(node, g);
    greedy.end_step();
  }
  return all;
}

double squared_distance(const net::Tensor& a, const net::Tensor& b) {
  return stats::sum_of_squared_differences(a.size(), a.data.data(), b.data.data());
}

}  // namespace numemu::experiments::actnn
