// Kept weights solved on calibration inputs, against the dense layer's outputs.
#include "policies/calibrate/adaprune.hpp"

#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "formats/error.hpp"
#include "policies/mask/mask_tensor.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace adaprune_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;

namespace {

struct Pruned {
  net::Tensor masked;
  std::vector<std::uint8_t> keep;
};

Pruned prune(const net::Tensor& w, const char* mask) {
  Pruned out{net::Tensor(w.shape), std::vector<std::uint8_t>(w.data.size())};
  const MaskLayout layout{1, w.size() / w.shape.back(), 1, w.shape.back(), false};
  mask_tensor(parse_mask(mask), {}, layout, 0, 0, w.data.data(), out.masked.data.data(),
              out.keep.data());
  return out;
}

net::Tensor output(net::Op& op, const net::Tensor& weight, const net::Tensor& x,
                   net::Numerics& numerics) {
  op.parameters()[0].value = weight;
  const std::vector<const net::Tensor*> inputs = {&x};
  const std::vector<net::Shape> shapes = {x.shape};
  net::Tensor y(op.output_shape(shapes));
  op.forward({"layer", numerics}, inputs, y);
  return y;
}

double distance(const net::Tensor& a, const net::Tensor& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    const double d = static_cast<double>(a.data[i]) - b.data[i];
    sum += d * d;
  }
  return sum;
}

/// Inputs of which neighbours are alike: what a pruned weight did, a kept one can do.
net::Tensor correlated(net::Shape shape) {
  net::Tensor x = noise(std::move(shape), 2);
  for (std::size_t i = 0; i + 1 < x.data.size(); i += 2)
    x.data[i + 1] = x.data[i] + 0.2f * x.data[i + 1];
  return x;
}

void check(net::Op& op, const net::Tensor& x) {
  const net::Tensor w = noise(op.parameters()[0].value.shape, 1);
  const Pruned pruned = prune(w, "greedy(2:4)");
  AdaPrune adaprune({"layer"});
  const net::Tensor dense = output(op, w, x, adaprune);
  const net::Tensor solved = adaprune.solve("layer", pruned.masked, pruned.keep);
  for (std::size_t i = 0; i < pruned.keep.size(); ++i)
    CHECK((pruned.keep[i] == 1 || solved.data[i] == 0));
  net::Numerics plain;
  const double before = distance(dense, output(op, pruned.masked, x, plain)),
               after = distance(dense, output(op, solved, x, plain));
  CHECK(after < before / 2);
  // A minimum: a step away from it in any kept weight is no better.
  for (std::size_t i = 0; i < pruned.keep.size(); i += 7) {
    if (pruned.keep[i] == 0) continue;
    for (const float by : {-0.05f, 0.05f}) {
      net::Tensor moved = solved;
      moved.data[i] += by;
      CHECK(distance(dense, output(op, moved, x, plain)) > after);
    }
  }
}

}  // namespace

TEST_CASE("adaprune: kept weights minimise the layer's output error", "[fast]") {
  net::Linear linear(16, 5, false);
  check(linear, correlated({64, 16}));
  net::Conv2dOptions options{.in_channels = 8,
                             .out_channels = 4,
                             .kernel_height = 3,
                             .kernel_width = 3,
                             .pad = 1,
                             .bias = false};
  net::Conv2d conv(options);
  check(conv, correlated({6, 5, 5, 8}));
  options.groups = 2;
  net::Conv2d grouped(options);
  check(grouped, correlated({6, 5, 5, 8}));
}

TEST_CASE("adaprune: a layer that did not multiply is named", "[fast]") {
  const AdaPrune adaprune({"fc"});
  CHECK_THROWS_WITH(adaprune.matrices("fc"), Contains("no product of layer fc"));
}

}  // namespace adaprune_test
