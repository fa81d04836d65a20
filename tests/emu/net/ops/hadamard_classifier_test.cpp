// The fixed classifier: its matrix, its result and gradients, and signs that training leaves as
// they are.
#include "emu/net/ops/hadamard_classifier.hpp"

#include <cmath>

#include "emu/net/nets.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

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
}  // namespace numemu::net
