// Transform hadamard: the exact product stays, outliers are spread, and what it contradicts is
// refused.
#include <cmath>
#include <set>

#include "emu/net/forward.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/recurrent.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/one_layer.hpp"
#include "tests/policies/transform/rotated_products.hpp"

namespace hadamard_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;
using net::GemmKind;

namespace {

std::string hadamard(std::int64_t block, const std::string& rest = "") {
  return R"j("transform": {"rule": "hadamard", "block": )j" + std::to_string(block) + "}" + rest;
}

net::Conv2dOptions grouped() {
  return {.in_channels = 32,
          .out_channels = 4,
          .kernel_height = 3,
          .kernel_width = 3,
          .pad = 1,
          .bias = false,
          .groups = 2};
}

/// Forward products differ from those of the operands as they are by no more than float32
/// rounding; backward reads the operands as they are.
void check_products(std::unique_ptr<net::Op> op, const net::Shape& shape, std::int64_t block) {
  OneLayer layer(hadamard(block), std::move(op), {shape.begin() + 1, shape.end()});
  RotatedProducts comparing(layer.in_training(0));
  comparing.rotated = {GemmKind::fprop};
  comparing.block = block;
  run_op(layer.op(), shape, comparing);
  CHECK(comparing.products == 3);
  CHECK(comparing.differ > 0);
}

/// One scale each.
const std::string kInt4 =
    R"j("roles": {"weight": {"format": "int8"}, "activation": {"format": "int4"}})j";

double squared_error(const net::Tensor& y, const net::Tensor& exact) {
  double sum = 0;
  for (std::size_t i = 0; i < y.data.size(); ++i)
    sum += std::pow(double{y.data[i]} - exact.data[i], 2);
  return sum;
}

net::Tensor in_float32(const OneLayer& layer, const net::Tensor& x) {
  net::Numerics float32;
  return net::forward(layer.graph(), x, float32);
}

std::string refused(const std::string& keys, std::unique_ptr<net::Op> op, const net::Shape& shape,
                    std::size_t inputs = 1) {
  return numemu::test::message_of([&] { OneLayer(keys, std::move(op), shape, inputs); });
}

std::string refused(const std::string& keys) {
  return refused(keys, std::make_unique<net::Linear>(32, 4), {32});
}

}  // namespace

TEST_CASE("hadamard: products stay within the rounding of float32", "[fast]") {
  for (const std::int64_t block : {2, 8, 16}) {
    INFO("block " << block);
    check_products(std::make_unique<net::Linear>(32, 8, false), {6, 32}, block);
    check_products(std::make_unique<net::Conv2d>(grouped()), {2, 4, 4, 32}, block);
  }
}

TEST_CASE("hadamard: sums of whole numbers stay exact", "[fast]") {
  // In units of 1/16 no sum exceeds 32 x 480 x 416 < 2^24: every step is exact in float32.
  OneLayer layer(hadamard(16), std::make_unique<net::Linear>(32, 8, false), {32});
  net::Tensor x({5, 32}), &w = layer.op().parameters()[0].value;
  for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] = static_cast<float>(i * 7 % 61) - 30;
  for (std::size_t i = 0; i < w.data.size(); ++i) w.data[i] = static_cast<float>(i * 11 % 53) - 26;
  CHECK(net::forward(layer.graph(), x, layer.numerics()).data == in_float32(layer, x).data);
}

TEST_CASE("hadamard: an outlier channel costs less precision", "[fast]") {
  net::Tensor x = noise({64, 32}, 4);
  for (std::int64_t row = 0; row < 64; ++row) x.data[row * 32 + 5] += 10;
  const auto error = [&](const std::string& keys, bool frozen) {
    OneLayer layer(keys, std::make_unique<net::Linear>(32, 16), {32});
    if (frozen) layer.numerics().freeze(layer.graph(), float_reference(layer.graph(), x));
    const net::Tensor y = net::forward(layer.graph(), x, layer.numerics());
    // Calibration saw the rotated activations: none is beyond their scale.
    CHECK(layer.numerics()
              .roles()
              .operand_counts("layer", GemmKind::fprop, net::Role::activation)
              .overflow == 0);
    return squared_error(y, in_float32(layer, x));
  };
  for (const bool frozen : {false, true}) {
    INFO((frozen ? "frozen" : "dynamic"));
    CHECK(error(hadamard(32, ", " + kInt4), frozen) < 0.5 * error(kInt4, frozen));
  }
}

TEST_CASE("hadamard: a frozen weight is rotated and quantized once", "[fast]") {
  OneLayer layer(hadamard(8, ", " + kInt4), std::make_unique<net::Linear>(32, 16), {32});
  std::vector<const net::Tensor*> weights;
  layer.hear([&](const net::Product& p) { weights.push_back(p.b.source); });
  const net::Tensor x = noise({4, 32}, 4);
  layer.numerics().freeze(layer.graph(), float_reference(layer.graph(), x));
  const net::Tensor y = net::forward(layer.graph(), x, layer.numerics());
  CHECK(net::forward(layer.graph(), x, layer.numerics()).data == y.data);
  REQUIRE(weights.size() == 2);
  CHECK(weights[0] == weights[1]);
  CHECK(layer.numerics()
            .roles()
            .operand_counts("layer", GemmKind::fprop, net::Role::weight)
            .elements == 32 * 16);
  // After another freeze it is that of the weight of then.
  for (float& w : layer.op().parameters()[0].value.data) w *= 2;
  layer.numerics().freeze(layer.graph(), float_reference(layer.graph(), x));
  CHECK(net::forward(layer.graph(), x, layer.numerics()).data != y.data);
}

TEST_CASE("hadamard: layers choose their own, signs are those of the seed", "[fast]") {
  const std::string off = R"j(, "layers": [{"match": "*", "transform": null}])j";
  const net::Tensor x = noise({4, 32}, 4);
  const auto result = [&](const std::string& keys) {
    OneLayer layer(keys, std::make_unique<net::Linear>(32, 16), {32});
    return net::forward(layer.graph(), x, layer.numerics()).data;
  };
  const std::vector<float> plain = result(kInt4);
  CHECK(result(hadamard(32, ", " + kInt4 + off)) == plain);
  CHECK(result(R"j("transform": "hadamard(8)", )j" + kInt4) == result(hadamard(8, ", " + kInt4)));
  const std::set<std::vector<float>> different = {plain, result(hadamard(32, ", " + kInt4)),
                                                  result(hadamard(8, ", " + kInt4))};
  CHECK(different.size() == 3);
}

TEST_CASE("hadamard: products of one node choose for themselves", "[fast]") {
  const auto lstm = [] { return std::make_unique<net::Lstm>(16, 12); };
  CHECK_THAT(refused(hadamard(8), lstm(), {3, 16}),
             Contains("layer layer.recurrent: expected a multiple of 8"));
  const std::string off = R"j(, "layers": [{"match": "layer.recurrent", "transform": null}])j";
  CHECK(refused(hadamard(8, off), lstm(), {3, 16}).empty());
}

TEST_CASE("hadamard: what cannot be rotated is refused by name", "[fast]") {
  CHECK(refused(hadamard(16)).empty());
  CHECK(refused(hadamard(24)) ==
        "r: transform: layer layer: block: expected a power of two, found 24");
  CHECK(refused(hadamard(64)) ==
        "r: transform: layer layer: expected a multiple of 64 input channels (the block of "
        "hadamard), found 32");
  CHECK_THAT(refused(hadamard(32), std::make_unique<net::Conv2d>(grouped()), {4, 4, 32}),
             Contains("expected a multiple of 32 input channels") && Contains("found 16"));
  CHECK_THAT(refused(hadamard(2), std::make_unique<net::MatMul>(), {2, 2}, 2),
             Contains("layer layer: it multiplies two activations"));
  for (const std::string role : {"weight", "activation"}) {
    INFO(role);
    const auto with = [&](const std::string& keys) {
      return refused(hadamard(16, R"j(, "roles": {")j" + role + "\": {" + keys + "}}"));
    };
    CHECK_THAT(with(R"j("mask": "greedy(2:4)")j"),
               Contains("hadamard and roles." + role + ".mask contradict each other"));
    CHECK_THAT(with(R"j("format": "int8", "ste": "clipped")j"),
               Contains("hadamard and roles." + role + ".ste clipped contradict each other"));
    CHECK_THAT(with(R"j("format": "uint8")j"),
               Contains("hadamard and roles." + role + ".format uint8 contradict each other"));
    CHECK(with(R"j("format": "int8")j").empty());
  }
}

}  // namespace hadamard_test
