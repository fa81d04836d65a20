// What masks leave and replace; random masks as functions of seed, layer, step and element.
#include "emu/net/ops/masks.hpp"

#include <cmath>

#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::masks_test {
namespace {

using test::kAnyNan;
using test::kInfinity;

TEST_CASE("the causal mask replaces what is above the diagonal", "[fast]") {
  Numerics numerics;
  const Tensor x = test::random_tensor({2, 3, 4, 4}, 1);
  const test::OpResult result = test::run_op(CausalMask(), {x}, numerics);
  for (int i = 0; i < 96; ++i) {
    const bool seen = i % 4 <= i / 4 % 4;
    CHECK(result.output.data[i] == (seen ? x.data[i] : -kInfinity));
    CHECK(result.grad_inputs[0].data[i] == (seen ? result.grad_output.data[i] : 0));
  }
  test::check_threads(CausalMask(), {test::random_tensor({4, 70, 70}, 1)});
}

TEST_CASE("the causal mask keeps one NaN and refuses other shapes", "[fast]") {
  Numerics numerics;
  Tensor x({1, 1}, kAnyNan);
  CHECK(test::bits(test::run_op(CausalMask(), {x}, numerics).output) ==
        std::vector<std::uint32_t>{0x7fc00000});
  const std::vector<Shape> wrong{{2, 3, 4}}, vector{{4}};
  CHECK_THROWS_WITH(CausalMask().output_shape(wrong), Catch::Contains("[2, 3, 4]"));
  CHECK_THROWS_WITH(CausalMask().output_shape(vector), Catch::Contains("[..., T, T]"));
}

TEST_CASE("dropout is the mask that its random source gives", "[fast]") {
  constexpr double kProbability = 0.25;
  const Dropout op(kProbability);
  const Tensor x({1, 2001}, 3);  // the last random block is used in part
  Numerics numerics;
  const test::OpResult result = test::run_op(op, {x}, numerics);
  const RandomSource source{0, Stream::dropout, tensor_word("layer/mask/0/dropout"), 0};
  const float scale = static_cast<float>(1 / 0.75);
  int kept = 0;
  for (int i = 0; i < 2001; ++i) {
    const bool keep = source.uniform(i) >= kProbability;
    kept += keep;
    REQUIRE(result.output.data[i] == (keep ? 3 * scale : 0));
    REQUIRE(result.grad_inputs[0].data[i] == (keep ? result.grad_output.data[i] * scale : 0));
  }
  // 5 standard errors of a binomial count of 2001 at 3/4: 5 sqrt(2000 * 3 / 16).
  CHECK(std::abs(kept - 1500) < 97);
}

TEST_CASE("dropout depends on seed and step and layer while inference and rate 0 leave all",
          "[fast]") {
  const Dropout op(0.5);
  const Tensor x = test::random_tensor({500}, 1);
  const std::vector<const Tensor*> inputs{&x};
  Numerics numerics;
  const auto run = [&](const OpCall& call, const Dropout& dropout) {
    Tensor y(x.shape);
    dropout.forward(call, inputs, y);
    return y.data;
  };
  const std::vector<float> base = run({"a", numerics, Phase::training, 1, {.index = 2}}, op);
  CHECK(run({"a", numerics, Phase::training, 1, {.index = 2}}, op) == base);
  CHECK(run({"b", numerics, Phase::training, 1, {.index = 2}}, op) != base);
  CHECK(run({"a", numerics, Phase::training, 2, {.index = 2}}, op) != base);
  CHECK(run({"a", numerics, Phase::training, 1, {.index = 3}}, op) != base);
  CHECK(run({"a", numerics}, op) == x.data);
  const std::vector<float> third =
      run({"a", numerics, Phase::training, 1, {.index = 2, .part = 3}}, op);
  const RandomSource source{1, Stream::dropout, tensor_word("a/mask/2.3/dropout"), 0};
  for (int i = 0; i < 500; ++i) REQUIRE(third[i] == (source.uniform(i) >= 0.5 ? x.data[i] * 2 : 0));
  CHECK(run({"a", numerics, Phase::training}, Dropout(0)) == x.data);
  test::check_threads(op, {test::random_tensor({20000}, 4)});
}

TEST_CASE("dropout keeps one NaN and refuses impossible probabilities", "[fast]") {
  Numerics numerics;
  for (const std::uint32_t y :
       test::bits(test::run_op(Dropout(0.5), {Tensor({64}, kAnyNan)}, numerics).output))
    CHECK((y == 0x7fc00000 || y == 0));
  CHECK_THROWS_WITH(Dropout(1), Catch::Contains("probability"));
  CHECK_THROWS_WITH(Dropout(-0.1), Catch::Contains("probability"));
  CHECK_THROWS_AS(Dropout(double{kInfinity}), Error);
}

}  // namespace

}  // namespace numemu::net::masks_test
