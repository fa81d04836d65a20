#include "policies/calibrate/reference.hpp"

#include <algorithm>
#include <utility>

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

/// Float32 numerics that keep the activation operands of every forward product.
class Recorder : public net::Numerics {
 public:
  explicit Recorder(FloatReference& reference) : reference_(reference) {}

  void product(const net::Step& step, const net::Product& p) override {
    net::Numerics::product(step, p);
    const std::string layer(p.layer);
    const std::int64_t times = times_[layer]++;
    keep(reference_.inputs, layer, times, *p.a.source);
    if (p.b.role == net::Role::activation) keep(reference_.seconds, layer, times, *p.b.source);
    const std::int64_t size = p.d_stack.count() * p.m * p.n;
    const std::int64_t batch = p.a.source->dim(0);
    net::Tensor result(batch > 0 && size % batch == 0 ? net::Shape{batch, size / batch}
                                                      : net::Shape{size});
    std::copy_n(p.d, size, result.data.begin());
    keep(reference_.outputs, layer, times, result);
  }

 private:
  static void keep(LayerTensors& tensors, const std::string& layer, std::int64_t times,
                   const net::Tensor& tensor) {
    net::Tensor& kept = tensors[layer];
    if (times == 0) {
      kept = tensor;
    } else {
      append_time(kept, times, tensor);
    }
  }
  FloatReference& reference_;
  std::map<std::string, std::int64_t> times_;
};

}  // namespace

FloatReference float_reference(const net::Graph& graph, std::vector<net::Tensor> batch) {
  net::require_memory(graph, batch, net::Keeps::products);
  FloatReference reference;
  Recorder recorder(reference);
  const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
    const auto found = reference.outputs.find(node.name);
    if (found != reference.outputs.end()) found->second = output;
  };
  reference.logits = net::forward(graph, batch, recorder, {}, &observe);
  reference.batch = std::move(batch);
  return reference;
}

FloatReference float_reference(const net::Graph& graph, net::Tensor images) {
  std::vector<net::Tensor> batch;
  batch.push_back(std::move(images));
  return float_reference(graph, std::move(batch));
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
