#include "policies/calibrate/reference.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/memory_plan.hpp"

namespace numemu::policies {
namespace {

/// [batch, times, ...] and [batch, ...] to [batch, times + 1, ...].
void append_time(net::Tensor& all, std::int64_t times, const net::Tensor& next) {
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

/// Float32 numerics that tell of every forward product. Those of a recurrence are collected until
/// the last of a layer.
class Listening : public net::Numerics {
 public:
  Listening(const net::Graph& graph, const ReferenceListener& listener) : listener_(listener) {
    for (const net::Node& node : graph.nodes) nodes_.insert(node.name);
  }

  void product(const net::Step& step, const net::Product& p) override {
    net::Numerics::product(step, p);
    const net::Tensor* const right = p.b.role == net::Role::activation ? p.b.source : nullptr;
    const bool last = p.repetition + 1 == p.repetitions;
    multiply_.insert(std::string(p.layer));
    if (listener_.operands && p.repetitions == 1) {
      listener_.operands(p.layer, *p.a.source, right);
    } else if (listener_.operands) {
      Collected& all = collected_[std::string(p.layer)];
      add(all.left, p.repetition, *p.a.source);
      if (right != nullptr) add(all.right, p.repetition, *right);
      if (last) listener_.operands(p.layer, all.left, right == nullptr ? nullptr : &all.right);
    }
    // Of a layer that is a whole operator, that operator's result comes.
    if (listener_.output && !nodes_.contains(p.layer)) {
      const std::int64_t size = p.d_stack.count() * p.m * p.n;
      const std::int64_t batch = p.a.source->dim(0);
      net::Tensor result(batch > 0 && size % batch == 0 ? net::Shape{batch, size / batch}
                                                        : net::Shape{size});
      std::copy_n(p.d, size, result.data.begin());
      Collected& all = collected_[std::string(p.layer)];
      add(all.result, p.repetition, result);
      if (last) listener_.output(p.layer, all.result);
    }
    if (last) collected_.erase(std::string(p.layer));
  }

  void node(const net::Node& node, const net::Tensor& output) const {
    if (listener_.output && multiply_.contains(node.name)) listener_.output(node.name, output);
  }

 private:
  struct Collected {
    net::Tensor left, right, result;
  };
  static void add(net::Tensor& all, std::int64_t times, const net::Tensor& next) {
    if (times == 0) {
      all = next;
    } else {
      append_time(all, times, next);
    }
  }

  const ReferenceListener& listener_;
  std::set<std::string, std::less<>> nodes_, multiply_;
  std::map<std::string, Collected> collected_;
};

}  // namespace

net::Tensor listen(const net::Graph& graph, const std::vector<net::Tensor>& batch,
                   const ReferenceListener& listener) {
  Listening numerics(graph, listener);
  const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
    numerics.node(node, output);
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
