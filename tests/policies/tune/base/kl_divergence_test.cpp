// KL of class probabilities against sums in float64, and its gradient against central differences.
#include <cmath>

#include "policies/tune/base/distillation.hpp"
#include "tests/catch.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

namespace kl_divergence_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

double reference(const net::Tensor& f, const net::Tensor& q) {
  const std::int64_t classes = f.dim(-1), rows = f.size() / classes;
  double sum = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    double of_f = 0, of_q = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      of_f += std::exp(double{f.data[r * classes + c]});
      of_q += std::exp(double{q.data[r * classes + c]});
    }
    for (std::int64_t c = 0; c < classes; ++c) {
      const double a = std::exp(double{f.data[r * classes + c]}) / of_f;
      const double b = std::exp(double{q.data[r * classes + c]}) / of_q;
      sum += a * std::log(a / b);
    }
  }
  return sum / static_cast<double>(rows);
}

}  // namespace

TEST_CASE("the divergence is that of the definition", "[fast]") {
  const net::Tensor f = policies::test::drawn({6, 5}, 1), q = policies::test::drawn({6, 5}, 2);
  // Exponentials and logarithms are within 1 ulp of float32.
  CHECK(kl_divergence(f, q) == Approx(reference(f, q)).margin(1e-6));
  CHECK(kl_divergence(f, f) == Approx(0).margin(1e-7));
}

TEST_CASE("its gradient is softmax(q) - softmax(f) over the rows", "[fast]") {
  const net::Tensor f = policies::test::drawn({3, 4}, 3), q = policies::test::drawn({3, 4}, 4);
  net::Tensor gradient;
  kl_divergence(f, q, &gradient);
  for (std::int64_t i = 0; i < q.size(); ++i) {
    constexpr float kStep = 1.f / 64;
    net::Tensor up = q, down = q;
    up.data[i] += kStep;
    down.data[i] -= kStep;
    // The third derivative is below 0.1: 0.1 step^2 / 6 is less than 1e-5.
    CHECK(gradient.data[i] ==
          Approx((reference(f, up) - reference(f, down)) / (2 * kStep)).margin(1e-5));
  }
}

TEST_CASE("logits of other shapes or without a largest one are refused", "[fast]") {
  net::Tensor f({1, 2}), q({1, 3});
  CHECK_THROWS_WITH(kl_divergence(f, q), Catch::Contains("expected logits of equal shapes"));
  net::Tensor infinite({1, 2});
  infinite.data = {HUGE_VALF, 0};
  CHECK_THROWS_WITH(kl_divergence(f, infinite), Catch::Contains("finite largest"));
}

}  // namespace kl_divergence_test
