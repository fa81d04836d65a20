// Elements that saturate have zero gradients.
#include <cmath>

#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/one_layer.hpp"

namespace clipped_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using net::GemmKind;
using net::Role;

namespace {

/// Clipped activations; a delayed scale is 1 in the first step.
std::string clipped(const std::string& format) {
  return R"j("roles": {"activation": {"format": ")j" + format + R"j(", "ste": "clipped"}})j";
}
const char* const kInt4 = R"j(int4", "scale": "delayed(1))j";

/// Products of a linear layer of ones in training, its operands and results by hand.
class Ones {
 public:
  Ones(const std::string& roles, std::int64_t in)
      : in_(in), w_({1, in}, 1.0f), layer_(roles, std::make_unique<net::Linear>(in, 1), {in}) {
    layer_.numerics().begin_step(kStep);
  }

  void forward(const std::vector<float>& x) {
    net::Tensor source({static_cast<std::int64_t>(x.size()) / in_, in_});
    source.data = x;
    const std::int64_t m = source.dim(0);
    net::Tensor y({m, 1});
    const unit::Gather a = unit::Gather::matrix(m, in_), b = unit::Gather::matrix(1, in_);
    layer_.numerics().product(kStep, {"layer",
                                      GemmKind::fprop,
                                      m,
                                      1,
                                      in_,
                                      {&source, &a, Role::activation, {.width = in_}},
                                      {&w_, &b, Role::weight, {.width = in_}},
                                      y.data.data(),
                                      {.width = 1}});
  }

  /// The gradient of m x `in` inputs: ones but for the zeros of what saturated.
  std::vector<float> backward(std::int64_t m) {
    const net::Tensor g({m, 1}, 1.0f);
    net::Tensor d({m, in_});
    const unit::Gather a = unit::Gather::matrix(m, 1), b = unit::Gather::matrix(in_, 1, true);
    layer_.numerics().product(kStep, {"layer",
                                      GemmKind::dgrad,
                                      m,
                                      in_,
                                      1,
                                      {&g, &a, Role::gradient, {.width = 1}},
                                      {&w_, &b, Role::weight, {.width = in_}, true},
                                      d.data.data(),
                                      {.width = in_}});
    return d.data;
  }

  void begin_step() { layer_.numerics().begin_step(kStep); }

 private:
  static inline const net::Step kStep{net::Phase::training};
  std::int64_t in_;
  net::Tensor w_;
  OneLayer layer_;
};

using Values = std::vector<float>;

}  // namespace

TEST_CASE("clipped: elements beyond the format's ends saturate", "[fast]") {
  Ones with_sign(clipped(kInt4), 6), without(clipped(R"j(uint4", "scale": "delayed(1))j"), 6);
  with_sign.forward({7.1f, 7, -7, -7.1f, 0, -0.1f});
  CHECK(with_sign.backward(1) == Values{0, 1, 1, 0, 1, 1});
  without.forward({15.1f, 15, -7, -7.1f, 0, -0.1f});
  CHECK(without.backward(1) == Values{0, 1, 0, 0, 1, 0});
  // A scale of every row: the rule absmax saturates nothing.
  Ones rows(clipped(R"j(int4", "granularity": "row)j"), 2);
  rows.forward({700, 1, 7, -2});
  CHECK(rows.backward(2) == Values{1, 1, 1, 1});
}

TEST_CASE("clipped: signs pass the gradient of elements from -1 to 1", "[fast]") {
  Ones signs(clipped(R"j(sign1", "scale": "none)j"), 7);
  const float above = std::nextafter(1.0f, 2.0f);
  signs.forward({-above, -1, -0.5f, 0, 0.5f, 1, above});
  CHECK(signs.backward(1) == Values{0, 1, 1, 1, 1, 1, 0});
}

TEST_CASE("clipped: elements of blocks saturate under the floor rule", "[fast]") {
  // Floor of log2 7.9 is 2: with the largest element 6 = 1.5 * 2^2 the scale is 1.
  Ones blocks(clipped("mxfp4"), 2);
  blocks.forward({7.9f, -7, 6, 1});
  CHECK(blocks.backward(2) == Values{0, 0, 1, 1});
  Ones reduction(clipped(R"j(mxfp4", "axis": "reduction)j"), 2);
  CHECK_THROWS_WITH(reduction.forward({7.9f, -7, 6, 1}),
                    Catch::Contains("layer layer: roles.activation.straight_through: clipped"));
}

TEST_CASE("clipped: backward meets the products of a step in the opposite order", "[fast]") {
  Ones layer(clipped(kInt4), 2);
  layer.forward({9, 1});
  layer.forward({1, 9});
  CHECK(layer.backward(1) == Values{1, 0});
  CHECK(layer.backward(1) == Values{0, 1});
  CHECK(layer.backward(1) == Values{1, 1});
  layer.forward({9, 1});
  CHECK_THROWS_WITH(layer.backward(2),
                    Catch::Contains("a gradient of 4 elements for an operand of 2"));
  layer.forward({9, 1});
  layer.begin_step();  // what a step leaves behind is not the next one's
  CHECK(layer.backward(2) == Values{1, 1, 1, 1});
}

TEST_CASE("clipped: a right operand that is read along its rows", "[fast]") {
  OneLayer layer(clipped(kInt4), std::make_unique<net::MatMul>(), {2, 2}, 2);
  net::Tensor a({1, 1, 2}, 1.0f), b({1, 2, 3});
  b.data = {9, 1, 1, 1, 1, -9};
  const std::vector<const net::Tensor*> inputs = {&a, &b};
  net::Tensor y({1, 1, 3});
  const net::OpCall call{"layer", layer.in_training(0), net::Phase::training};
  layer.op().forward(call, inputs, y);
  std::vector<net::Tensor> gradients{net::Tensor(a.shape), net::Tensor(b.shape)}, none;
  layer.op().backward(call, {inputs, &y, net::Tensor(y.shape, 1.0f), gradients, none, true});
  CHECK(gradients[1].data == Values{0, 1, 1, 1, 1, 0});
  CHECK(gradients[0].data == Values{7 + 1 + 1, 1 + 1 - 7});  // 9 saturates at 7
}

}  // namespace clipped_test
