// Products of a dense layer as the numerics see them, the bias, the Hadamard rows.
#include "emu/net/ops/linear.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "emu/net/data/samples.hpp"
#include "emu/net/nets.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::linear_test {
namespace {

TEST_CASE("a bias is one float32 addition per output, its gradient one rounding of a float64 sum",
          "[fast]") {
  Tensor y = test::random_tensor({7, 5, 3}, 1), bias = test::random_tensor({3}, 2), gradient({3});
  const Tensor before = y;
  add_bias(bias, y);
  for (std::size_t i = 0; i < y.data.size(); ++i)
    CHECK(y.data[i] == before.data[i] + bias.data[i % 3]);
  bias_gradient(before, gradient);
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0;  // exact: multiples of 2^-16 below 35
    for (std::size_t i = c; i < before.data.size(); i += 3) sum += before.data[i];
    CHECK(gradient.data[c] == static_cast<float>(sum));
  }
}

TEST_CASE("infinity minus infinity is the neutral NaN", "[fast]") {
  Tensor y({1, 1}), bias({1});
  y.data[0] = std::numeric_limits<float>::infinity();
  bias.data[0] = -y.data[0];
  add_bias(bias, y);
  CHECK(std::bit_cast<std::uint32_t>(y.data[0]) == 0x7fc00000);
}

constexpr std::int64_t kRows = 5, kIn = 7, kOut = 3;

struct Recorder : Numerics {
  std::vector<GemmKind> kinds;
  std::vector<Role> roles;
  std::string layer;
  void product(const Step& step, const Product& p) override {
    kinds.push_back(p.kind);
    roles.push_back(p.a.role);
    roles.push_back(p.b.role);
    layer = p.layer;
    CHECK(p.a.along_rows == (p.kind == GemmKind::wgrad));
    CHECK(p.b.along_rows == (p.kind != GemmKind::fprop));
    Numerics::product(step, p);
  }
};

TEST_CASE("dense: three products are fused chains", "[fast]") {
  const Tensor x = test::random_tensor({kRows, kIn}, 1), w = test::random_tensor({kOut, kIn}, 2),
               g = test::random_tensor({kRows, kOut}, 3);
  Recorder numerics;
  Tensor y(g.shape), grad_x(x.shape), grad_w(w.shape);
  dense_forward({.layer = "fc", .numerics = numerics}, {"fc"}, x, w, y);
  dense_input_gradient({.layer = "fc", .numerics = numerics}, {"fc"}, g, w, grad_x);
  dense_weight_gradient({.layer = "fc", .numerics = numerics}, {"fc"}, g, x, grad_w);
  std::vector<float> fprop(y.data.size()), dgrad(x.data.size()), wgrad(w.data.size());
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t o = 0; o < kOut; ++o)
      for (std::int64_t i = 0; i < kIn; ++i) {
        const float xi = x.data[r * kIn + i], wi = w.data[o * kIn + i], gi = g.data[r * kOut + o];
        float &f = fprop[r * kOut + o], &d = dgrad[r * kIn + i], &v = wgrad[o * kIn + i];
        f = std::fma(xi, wi, f);
        d = std::fma(gi, wi, d);
        v = std::fma(gi, xi, v);
      }
  CHECK(fprop == y.data);
  CHECK(dgrad == grad_x.data);
  CHECK(wgrad == grad_w.data);
  CHECK(numerics.layer == "fc");
  CHECK(
      (numerics.kinds == std::vector<GemmKind>{GemmKind::fprop, GemmKind::dgrad, GemmKind::wgrad}));
  CHECK((numerics.roles == std::vector<Role>{Role::activation, Role::weight, Role::gradient,
                                             Role::weight, Role::gradient, Role::activation}));
}

TEST_CASE("linear and its gradients are those of loops in float64", "[fast]") {
  constexpr std::int64_t kBatch = 5, kInputs = 7, kOutputs = 4;
  for (const bool bias : {true, false}) {
    Linear op(kInputs, kOutputs, bias);
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y;
      for (std::int64_t n = 0; n < kBatch; ++n) {
        for (std::int64_t o = 0; o < kOutputs; ++o) {
          double sum = bias ? arguments[2][o] : 0;
          for (std::int64_t i = 0; i < kInputs; ++i)
            sum += arguments[0][n * kInputs + i] * arguments[1][o * kInputs + i];
          y.push_back(sum);
        }
      }
      return y;
    };
    test::check_op(op, {test::random_tensor({kBatch, kInputs}, 1)}, reference,
                   test::dot_tolerance(kInputs));
  }
}

TEST_CASE("linear is a fused chain over ascending inputs, then the bias", "[fast]") {
  Linear op(33, 3);
  op.parameters()[0].value = test::random_tensor({3, 33}, 1);
  op.parameters()[1].value = test::random_tensor({3}, 2);
  const Tensor x = test::random_tensor({2, 33}, 3);
  Numerics numerics;
  Tensor y({2, 3});
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"fc", numerics}, inputs, y);
  for (std::int64_t n = 0; n < 2; ++n) {
    for (std::int64_t o = 0; o < 3; ++o) {
      float chain = 0;
      for (std::int64_t i = 0; i < 33; ++i) {
        chain = std::fma(x.data[n * 33 + i], op.parameters()[0].value.data[o * 33 + i], chain);
      }
      CHECK(y.data[n * 3 + o] == chain + op.parameters()[1].value.data[o]);
    }
  }
}

TEST_CASE("linear refuses other shapes", "[fast]") {
  CHECK_THROWS_AS(Linear(0, 3), Error);
  const Linear op(4, 2);
  const std::vector<Shape> wrong{{3, 5}}, rank{{3, 2, 2}};
  CHECK_THROWS_WITH(op.output_shape(wrong),
                    Catch::Contains("[batch, ..., 4]") && Catch::Contains("[3, 5]"));
  CHECK_THROWS_AS(op.output_shape(rank), Error);
}

constexpr std::int64_t kFeatures = 12, kClasses = 5;

TEST_CASE("hadamard_classifier: whole matrices have orthogonal rows", "[fast]") {
  for (const std::int64_t n : {1, 2, 8, 64}) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::int64_t c = 0; c < n; ++c) sum += hadamard_element(i, c) * hadamard_element(j, c);
        CHECK(sum == (i == j ? static_cast<float>(n) : 0));
      }
    }
  }
  CHECK(hadamard_element(1, 1) == -1);
  CHECK(hadamard_element(3, 3) == 1);
  for (std::int64_t c = 0; c < 100; ++c) CHECK(hadamard_element(0, c) == 1);
}

TEST_CASE("hadamard_classifier and its gradients", "[fast]") {
  HadamardClassifier op(kFeatures, kClasses);
  CHECK(op.parameters()[0].trained == false);
  CHECK(op.parameters()[1].initial == static_cast<float>(1 / std::sqrt(5.0)));
  const Tensor x = test::random_tensor({6, kFeatures}, 1);
  const auto reference = [](const std::vector<test::Doubles>& arguments) {
    test::Doubles y(6 * kClasses);
    for (std::int64_t r = 0; r < 6; ++r) {
      double squares = 0;
      for (std::int64_t i = 0; i < kFeatures; ++i)
        squares += std::pow(arguments[0][r * kFeatures + i], 2);
      for (std::int64_t k = 0; k < kClasses; ++k) {
        double sum = 0;
        for (std::int64_t i = 0; i < kFeatures; ++i)
          sum += arguments[1][k * kFeatures + i] * arguments[0][r * kFeatures + i];
        y[r * kClasses + k] =
            -arguments[2][0] * sum / (std::sqrt(squares) + 1e-8) + arguments[3][k];
      }
    }
    return y;
  };
  // Sums of 12 terms below 1, three roundings more; rows are about 2 long.
  constexpr double kTolerance = 30 * 0x1p-23, kThird = 40;
  test::check_op(op, {x}, reference, kTolerance, {.third = kThird});
}

TEST_CASE("hadamard_classifier: the first class behind a ReLU reads a ratio of norms", "[fast]") {
  HadamardClassifier op(4, 2);
  op.parameters()[1].value.data = {2};
  Tensor x({2, 4});
  x.data = {0, 3, 4, 0, 0, 0, 0, 0};
  Numerics numerics;
  const test::OpResult result = test::run_op(op, {x}, numerics);
  CHECK(result.output.data[0] == Approx(-2 * 7.0 / 5).epsilon(4 * 0x1p-24));
  CHECK(result.output.data[1] == Approx(-2 * (4.0 - 3) / 5).epsilon(4 * 0x1p-24));
  for (int i = 2; i < 4; ++i) CHECK(result.output.data[i] == 0);  // without features: the bias
  for (const float gradient : result.grad_inputs[0].data) CHECK(std::isfinite(gradient));
}

TEST_CASE("hadamard_classifier: any network with a linear last layer may have one", "[fast]") {
  const Graph trained = build_net("lenet", {28, 28, 1}, 10),
              fixed = build_net("hadamard(lenet)", {28, 28, 1}, 10);
  CHECK(fixed.name == "hadamard(lenet)");
  CHECK(fixed.nodes.back().name == trained.nodes.back().name);
  CHECK(fixed.nodes.back().op->kind() == "hadamard_classifier");
  CHECK(fixed.parameter_count() == trained.parameter_count() - 84 * 10 + 1);
  CHECK(net_kind("hadamard(lenet)") == DataKind::images);
  CHECK_THROWS_WITH(build_net("hadamard(lenat)", {28, 28, 1}, 10), Catch::Contains("lenet"));
  CHECK_THROWS_WITH(build_net("hadamard(mlp-signs)", {28, 28, 1}, 10),
                    Catch::Contains("ends with a linear layer, bn3 is batch_norm"));
  // Both begin with the same weights in the layers that they share.
  Graph a = build_net("mlp", {8, 8, 1}, 10), b = build_net("hadamard(mlp)", {8, 8, 1}, 10);
  initialize(a, 3);
  initialize(b, 3);
  for (std::size_t p = 0; p < 4; ++p)
    CHECK(a.parameters()[p]->value.data == b.parameters()[p]->value.data);
  CHECK(b.parameters()[4]->value.data[0] == 1);
  CHECK_THROWS_AS(HadamardClassifier(0, 3), Error);
}

}  // namespace

}  // namespace numemu::net::linear_test
