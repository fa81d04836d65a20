// What the float32 graph computes on the calibration images: the only values that scales and
// predictions may read.
#include "policies/calibrate/reference.hpp"

#include <algorithm>

namespace numemu::policies {
namespace {

/// Float32 numerics that keep the activation operand of every forward product.
class Recorder : public net::Numerics {
 public:
  explicit Recorder(FloatReference& reference) : reference_(reference) {}
  void product(const net::Product& product) override {
    reference_.inputs.insert_or_assign(std::string(product.layer), *product.a.source);
    net::Numerics::product(product);
  }

 private:
  FloatReference& reference_;
};

}  // namespace

FloatReference float_reference(const net::Graph& graph, net::Tensor images) {
  FloatReference reference;
  Recorder recorder(reference);
  const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
    if (reference.inputs.contains(node.name)) reference.outputs.insert_or_assign(node.name, output);
  };
  reference.logits = net::forward(graph, images, recorder, &observe);
  reference.images = std::move(images);
  return reference;
}

net::Tensor first_samples(const net::Tensor& x, std::int64_t samples) {
  if (samples >= x.dim(0)) return x;
  net::Shape shape = x.shape;
  const std::int64_t each = x.size() / shape[0];
  shape[0] = samples;
  net::Tensor out(shape);
  std::copy_n(x.data.begin(), samples * each, out.data.begin());
  return out;
}

}  // namespace numemu::policies
