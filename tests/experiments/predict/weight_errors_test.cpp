// The errors of a weight taken apart and put together.
#include "experiments/predict/weight_errors.hpp"

#include <cmath>

#include "tests/catch.hpp"

namespace weight_errors_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

constexpr int kWeights = 27;

/// Numbers without a pattern in (-1, 1).
std::vector<float> numbers(double seed) {
  std::vector<float> x;
  for (int i = 0; i < kWeights; ++i) x.push_back(static_cast<float>(std::sin(seed * (i + 1.3))));
  return x;
}

}  // namespace

TEST_CASE("weight errors: the parts that are put together are found again", "[fast]") {
  const std::vector<float> x = numbers(2.1), drawn = numbers(5.3);
  std::vector<float> r = numbers(0.7);
  for (float& size : r) size = std::fabs(size) + 0.5f;
  const ErrorParts from = error_parts(x.data(), r.data(), drawn.data(), kWeights);
  const ErrorParts wanted{.along = -0.03, .common = 0.02, .rest = 0.25 * from.rest};
  std::vector<float> y = drawn;
  add_error_parts(x.data(), r.data(), from, wanted, 0.5, kWeights, y.data());
  for (int i = 0; i < kWeights; ++i) y[i] -= x[i];
  const ErrorParts after = error_parts(x.data(), r.data(), y.data(), kWeights);
  CHECK(after.along == Approx(wanted.along).margin(1e-6));
  CHECK(after.common == Approx(wanted.common).margin(1e-6));
  CHECK(after.rest == Approx(wanted.rest).epsilon(1e-5));
}

TEST_CASE("weight errors: equal directions and zeros have no common part", "[fast]") {
  const std::vector<float> x = numbers(2.1), e = numbers(5.3), zeros(kWeights, 0.0f);
  const ErrorParts equal = error_parts(x.data(), x.data(), e.data(), kWeights);
  const ErrorParts dead = error_parts(x.data(), zeros.data(), e.data(), kWeights);
  CHECK(equal.common == 0);
  CHECK(equal.along == dead.along);
  CHECK(equal.rest == Approx(dead.rest));
  CHECK(error_parts(zeros.data(), zeros.data(), zeros.data(), kWeights).rest == 0);
}

TEST_CASE("weight errors: sizes of inputs are repeated for every tap, ones for groups", "[fast]") {
  net::Tensor images({1, 1, 2, 2});  // two pixels of two channels
  images.data = {3, 1, -4, 0};
  const float first = std::sqrt(12.5f), second = std::sqrt(0.5f);
  CHECK(input_sizes(images, net::Tensor({5, 1, 2, 2})) ==
        std::vector<float>{first, second, first, second});
  CHECK(input_sizes(images, net::Tensor({2, 1, 3, 1})) == std::vector<float>{1, 1, 1});
}

}  // namespace weight_errors_test
