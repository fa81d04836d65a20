// Transform hadamard-backward: exact products stay, outliers are spread, signs change with the
// step, and what it contradicts is refused.
#include <cmath>
#include <set>

#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/one_layer.hpp"
#include "tests/policies/transform/rotated_products.hpp"

namespace hadamard_backward_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;
using net::GemmKind;

namespace {

std::string backward(const std::string& arguments, const std::string& rest = "") {
  return R"j("transform": "hadamard-backward()j" + arguments + ")\"" + rest;
}

std::unique_ptr<net::Op> linear() { return std::make_unique<net::Linear>(32, 20, false); }

/// dW of a layer of 32 inputs and 20 outputs in a step.
net::Tensor weight_gradient(const std::string& keys, const net::Tensor& g, const net::Tensor& x,
                            std::int64_t step) {
  OneLayer layer(keys, linear(), {32});
  net::Tensor d({20, 32});
  net::dense_weight_gradient({"layer", layer.in_training(step)}, {"layer"}, g, x, d);
  return d;
}

std::string refused(const std::string& keys) {
  return numemu::test::message_of([&] { OneLayer(keys, linear(), {32}); });
}

}  // namespace

TEST_CASE("hadamard-backward: products stay within the rounding of float32", "[fast]") {
  struct Case {
    const char* arguments;
    std::int64_t block;
    std::set<GemmKind> rotated;
  };
  for (const Case& c : {Case{"8", 8, {GemmKind::wgrad}}, Case{"4,dgrad", 4, {GemmKind::dgrad}},
                        Case{"16,both", 16, {GemmKind::wgrad, GemmKind::dgrad}}}) {
    INFO(c.arguments);
    // 21 rows and 20 outputs leave positions that no block of 8 or 16 covers.
    OneLayer layer(backward(c.arguments), linear(), {32});
    RotatedProducts comparing(layer.in_training(3));
    comparing.block = c.block;
    comparing.rotated = c.rotated;
    run_op(layer.op(), {21, 32}, comparing);
    CHECK(comparing.products == 3);
    CHECK(comparing.differ > 0);
  }
}

TEST_CASE("hadamard-backward: heads of attention are rotated matrix by matrix", "[fast]") {
  for (const bool scores : {true, false}) {
    net::MatMul op({.heads = 2, .transpose_b = scores});
    OneLayer layer(
        backward("4,both"),
        std::make_unique<net::MatMul>(net::MatMulOptions{.heads = 2, .transpose_b = scores}),
        scores ? net::Shape{6, 8} : net::Shape{2, 6, 6}, 2);
    RotatedProducts comparing(layer.in_training(0));
    comparing.block = 4;
    comparing.rotated = {GemmKind::wgrad, GemmKind::dgrad};
    const net::Tensor a = noise(scores ? net::Shape{3, 6, 8} : net::Shape{3, 2, 6, 6}, 1),
                      b = noise({3, 6, 8}, 2);
    const std::vector<const net::Tensor*> inputs = {&a, &b};
    const std::vector<net::Shape> shapes = {a.shape, b.shape};
    const net::Tensor g = noise(op.output_shape(shapes), 3);
    std::vector<net::Tensor> gradients{net::Tensor(a.shape), net::Tensor(b.shape)};
    layer.op().backward({"layer", comparing, net::Phase::training},
                        {inputs, nullptr, g, gradients, {}, true});
    CHECK(comparing.products == 2);
    CHECK(comparing.differ > 0);
  }
}

TEST_CASE("hadamard-backward: an outlier costs the weight gradient less precision", "[fast]") {
  net::Tensor g = noise({64, 20}, 5);
  const net::Tensor x = noise({64, 32}, 6);
  for (std::int64_t c = 0; c < 20; ++c) g.data[17 * 20 + c] *= 20;
  const std::string int4 = R"j("roles": {"activation": {"format": "int8"},
      "gradient": {"format": "int4", "granularity": "block", "block": 64}})j";
  const net::Tensor exact = weight_gradient(R"j("transform": null)j", g, x, 0);
  const auto error = [&](const std::string& keys) {
    const net::Tensor d = weight_gradient(keys, g, x, 0);
    double sum = 0;
    for (std::size_t i = 0; i < d.data.size(); ++i)
      sum += std::pow(double{d.data[i]} - exact.data[i], 2);
    return sum;
  };
  CHECK(error(backward("64", ", " + int4)) < 0.5 * error(int4));
}

TEST_CASE("hadamard-backward: signs are those of seed and step", "[fast]") {
  const net::Tensor g = noise({64, 20}, 5), x = noise({64, 32}, 6);
  const std::string keys = backward("32");
  const auto at = [&](std::int64_t step) { return weight_gradient(keys, g, x, step).data; };
  CHECK(at(0) == at(0));
  CHECK(at(0) != at(1));
}

TEST_CASE("hadamard-backward: what it contradicts is refused", "[fast]") {
  CHECK_THAT(refused(backward("12")), Contains("block: expected a power of two, found 12"));
  CHECK_THAT(refused(backward(
                 "8,both", R"j(, "roles": {"weight": {"format": null, "mask": "greedy(2:4)"}})j")),
             Contains("layer layer: hadamard and roles.weight.mask"));
  CHECK_THAT(refused(backward("8", R"j(, "roles": {"activation": {"format": "uint8"}})j")),
             Contains("roles.activation.format uint8"));
  CHECK(refused(backward("8", R"j(, "roles": {"weight": {"format": "uint8"}})j")).empty());
}

TEST_CASE("hadamard-backward: windows and groups are copied out before", "[fast]") {
  const auto check = [](std::unique_ptr<net::Op> op, const net::Shape& shape, int products) {
    INFO(op->kind());
    OneLayer layer(backward("4,both"), std::move(op), {shape.begin() + 1, shape.end()});
    RotatedProducts comparing(layer.in_training(0));
    comparing.block = 4;
    comparing.rotated = {GemmKind::wgrad, GemmKind::dgrad};
    run_op(layer.op(), shape, comparing);
    CHECK(comparing.products == products);
    CHECK(comparing.differ > 0);
  };
  for (const std::int64_t groups : {1, 2}) {
    INFO(groups);
    check(std::make_unique<net::Conv2d>(net::Conv2dOptions{.in_channels = 8,
                                                           .out_channels = 8,
                                                           .kernel_height = 3,
                                                           .kernel_width = 3,
                                                           .stride = 2,
                                                           .pad = 1,
                                                           .bias = false,
                                                           .groups = groups}),
          {2, 5, 5, 8}, 3);
  }
}

}  // namespace hadamard_backward_test
