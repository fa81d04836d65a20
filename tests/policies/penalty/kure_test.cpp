// Penalty kure: its value by hand, its gradient against central differences, and where it acts.
#include <cmath>

#include "emu/net/ops/linear.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/update/two_layers.hpp"

namespace kure_test {

using namespace numemu;
using namespace numemu::policies;
using numemu::policies::test::noise;
using numemu::policies::test::two_layers;

namespace {

/// What a recipe with the key `penalty` (JSON) and further keys adds for a parameter.
struct Penalty {
  explicit Penalty(const std::string& key, const std::string& rest = "")
      : numerics(Recipe::parse_text(R"({"numemu_recipe": 1, "penalty": )" + key + rest + "}", "r"),
                 graph) {}

  double of(const std::string& parameter, const net::Tensor& value, net::Tensor& gradient) {
    return numerics.penalty({net::Phase::training}, parameter, value, gradient);
  }

  net::Graph graph = two_layers(12, 8, 5, 3);
  RecipeNumerics numerics;
};

/// weight (kurtosis - target)^2 in float64, with element `moved` changed by `by`.
double by_hand(const net::Tensor& w, double weight, double target, std::size_t moved = 0,
               double by = 0) {
  std::vector<double> x(w.data.begin(), w.data.end());
  x[moved] += by;
  const double n = static_cast<double>(x.size());
  double mean = 0, m2 = 0, m4 = 0;
  for (const double v : x) mean += v / n;
  for (const double v : x) {
    m2 += std::pow(v - mean, 2) / n;
    m4 += std::pow(v - mean, 4) / n;
  }
  return weight * std::pow(m4 / (m2 * m2) - target, 2);
}

}  // namespace

TEST_CASE("kure: the loss is the squared distance of the kurtosis, and it is returned", "[fast]") {
  // The sums of float64 differ in order alone.
  constexpr double kSumOrder = 1e-12;
  const net::Tensor w = noise({8, 12}, 4);
  net::Tensor gradient({8, 12});
  CHECK(Penalty("\"kure\"").of("fc1.weight", w, gradient) ==
        Approx(by_hand(w, 1, 1.8)).epsilon(kSumOrder));
  CHECK(Penalty("\"kure(0.25,3)\"").of("fc1.weight", w, gradient) ==
        Approx(by_hand(w, 0.25, 3)).epsilon(kSumOrder));
  CHECK(Penalty(R"({"rule": "kure", "weight": 0})").of("fc1.weight", w, gradient) == 0);
  // Halves of -1 and 1 have the least kurtosis there is: 1.
  net::Tensor signs({2, 2});
  signs.data = {1, -1, -1, 1};
  net::Tensor none({2, 2});
  CHECK(Penalty("\"kure(2,1.5)\"").of("fc1.weight", signs, none) == 0.5);
}

TEST_CASE("kure: the gradient is that of central differences", "[fast]") {
  // Central differences: a truncation of h^2 and a cancellation of 2^-52 / h, each below 1e-8 here.
  // The gradient itself is rounded to float32 once.
  constexpr double kStep = 1e-5, kDifferences = 1e-7, kFloat32 = 0x1p-23;
  for (const double target : {1.8, 9.0}) {
    INFO("target " << target);
    const net::Tensor w = noise({6, 7}, 9);
    net::Tensor gradient({6, 7});
    Penalty("\"kure(0.5," + std::to_string(target) + ")\"").of("fc1.weight", w, gradient);
    double largest = 0;
    for (std::size_t i = 0; i < w.data.size(); ++i) {
      const double slope =
          (by_hand(w, 0.5, target, i, kStep) - by_hand(w, 0.5, target, i, -kStep)) / (2 * kStep);
      CHECK(double{gradient.data[i]} ==
            Approx(slope).epsilon(kFloat32 + kDifferences).margin(kDifferences));
      largest = std::max(largest, std::abs(slope));
    }
    CHECK(largest > 1e-3);
  }
}

TEST_CASE("kure: the gradient is added to the one there is", "[fast]") {
  const net::Tensor w = noise({8, 12}, 4);
  net::Tensor alone({8, 12}), added({8, 12});
  for (float& g : added.data) g = 4;
  Penalty kure("\"kure\"");
  kure.of("fc1.weight", w, alone);
  kure.of("fc1.weight", w, added);
  for (std::size_t i = 0; i < alone.data.size(); ++i) CHECK(added.data[i] == 4 + alone.data[i]);
}

TEST_CASE("kure: biases and constant weights cost nothing", "[fast]") {
  Penalty kure("\"kure\"");
  const net::Tensor bias = noise({8}, 5);
  net::Tensor gradient({8});
  CHECK(kure.of("fc1.bias", bias, gradient) == 0);
  CHECK(gradient.data == std::vector<float>(8));
  for (const float value : {0.0f, 0.5f}) {
    net::Tensor constant({3, 4}), of_constant({3, 4});
    for (float& w : constant.data) w = value;
    CHECK(kure.of("fc1.weight", constant, of_constant) == 0);
    CHECK(of_constant.data == std::vector<float>(12));
  }
}

TEST_CASE("kure: layers choose other options, or null for none", "[fast]") {
  const net::Tensor w = noise({5, 8}, 6);
  net::Tensor gradient({5, 8}), twice({5, 8});
  Penalty without("\"kure\"", R"(, "layers": [{"match": "fc2", "penalty": null}])");
  CHECK(without.of("fc2.weight", w, gradient) == 0);
  CHECK(gradient.data == std::vector<float>(40));
  const double loss = without.of("fc1.weight", w, gradient);
  CHECK(loss > 0);
  Penalty other("null",
                R"(, "layers": [{"match": "fc2", "penalty": {"rule": "kure", "weight": 2}}])");
  CHECK(other.of("fc2.weight", w, twice) == 2 * loss);
  for (std::size_t i = 0; i < twice.data.size(); ++i)
    CHECK(twice.data[i] == Approx(2 * gradient.data[i]).epsilon(0x1p-22));
  net::Tensor untouched({5, 8});
  CHECK(other.of("fc1.weight", w, untouched) == 0);
  CHECK(untouched.data == std::vector<float>(40));
}

}  // namespace kure_test
