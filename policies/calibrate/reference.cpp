#include "policies/calibrate/reference.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/observing.hpp"

namespace numemu::policies {
namespace {

/// [batch, times, ...] and [batch, ...] to [batch, times + 1, ...]; the first one of all stays as
/// it is.
void append_time(net::Tensor& all, std::int64_t times, const net::Tensor& next) {
  if (times == 0) {
    all = next;
    return;
  }
  const std::int64_t batch = next.dim(0), each = next.size() / std::max<std::int64_t>(1, batch);
  net::Shape shape = next.shape;
  shape.insert(shape.begin() + 1, times + 1);
  net::Tensor joined(shape);
  for (std::int64_t b = 0; b < batch; ++b) {
    float* const to = joined.data.data() + b * (times + 1) * each;
    std::copy_n(all.data.begin() + b * times * each, times * each, to);
    std::copy_n(next.data.begin() + b * each, each, to + times * each);
  }
  all = std::move(joined);
}

/// Products of a recurrence until the last of a layer.
struct Collected {
  net::Tensor left, right, result;
};

}  // namespace

net::Tensor listen(const net::Graph& graph, const std::vector<net::Tensor>& batch,
                   const ReferenceListener& listener) {
  std::set<std::string, std::less<>> nodes, multiply;
  for (const net::Node& node : graph.nodes) nodes.insert(node.name);
  std::map<std::string, Collected> collected;
  net::Observing numerics({.after = [&](const net::Step&, const net::Product& p) {
    const net::Tensor* const right = p.b.role == net::Role::activation ? p.b.source : nullptr;
    const bool last = p.repetition + 1 == p.repetitions;
    multiply.insert(std::string(p.layer));
    if (listener.operands && p.repetitions == 1) {
      listener.operands(p.layer, *p.a.source, right);
    } else if (listener.operands) {
      Collected& all = collected[std::string(p.layer)];
      append_time(all.left, p.repetition, *p.a.source);
      if (right != nullptr) append_time(all.right, p.repetition, *right);
      if (last) listener.operands(p.layer, all.left, right == nullptr ? nullptr : &all.right);
    }
    // Of a layer that is a whole operator, that operator's result comes.
    if (listener.output && !nodes.contains(p.layer)) {
      const std::int64_t size = p.d_stack.count() * p.m * p.n;
      const std::int64_t samples = p.a.source->dim(0);
      net::Tensor result(samples > 0 && size % samples == 0 ? net::Shape{samples, size / samples}
                                                            : net::Shape{size});
      std::copy_n(p.d, size, result.data.begin());
      Collected& all = collected[std::string(p.layer)];
      append_time(all.result, p.repetition, result);
      if (last) listener.output(p.layer, all.result);
    }
    if (last) collected.erase(std::string(p.layer));
  }});
  const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
    if (listener.output && multiply.contains(node.name)) listener.output(node.name, output);
  };
  return net::forward(graph, batch, numerics, {}, &observe);
}

FloatReference float_reference(const net::Graph& graph, std::vector<net::Tensor> batch) {
  net::require_memory(graph, batch, net::Keeps::products);
  FloatReference reference;
  const ReferenceListener keep{
      .operands =
          [&](std::string_view layer, const net::Tensor& left, const net::Tensor* right) {
            reference.inputs.insert_or_assign(std::string(layer), left);
            if (right != nullptr) reference.seconds.insert_or_assign(std::string(layer), *right);
          },
      .output =
          [&](std::string_view layer, const net::Tensor& output) {
            reference.outputs.insert_or_assign(std::string(layer), output);
          }};
  reference.logits = listen(graph, batch, keep);
  reference.batch = std::move(batch);
  const net::Tensor nothing({reference.samples(), 0});
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (!reference.inputs.try_emplace(layer.name, nothing).second) continue;
    if (layer.weight == nullptr) reference.seconds.emplace(layer.name, nothing);
    reference.outputs.emplace(layer.name, nothing);
  }
  return reference;
}

FloatReference float_reference(const net::Graph& graph, net::Tensor images) {
  return float_reference(graph, net::unpacked(std::move(images), graph.inputs));
}

net::Tensor samples_of(const net::Tensor& x, std::int64_t first, std::int64_t count) {
  net::Shape shape = x.shape;
  const std::int64_t each = x.size() / shape[0];
  shape[0] = count;
  net::Tensor out(shape);
  std::copy_n(x.data.begin() + first * each, count * each, out.data.begin());
  return out;
}

net::Tensor first_samples(const net::Tensor& x, std::int64_t samples) {
  return samples >= x.dim(0) ? x : samples_of(x, 0, samples);
}

}  // namespace numemu::policies
