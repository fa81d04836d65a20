// The autoencoder: it learns the principal components of windows, is linear, keeps its state.
#include "policies/exchange/base/autoencoder.hpp"

#include <cmath>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace numemu::autoencoder_test {

using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

/// Windows whose values have the correlation rho with each other, of no particular law.
std::vector<float> windows(std::int64_t count, std::int64_t window, double rho, int seed) {
  const auto draw = [&](std::int64_t n, int which) {
    return noise({n}, static_cast<std::uint32_t>(2 * seed + which)).data;
  };
  const std::vector<float> common = draw(count, 0);
  std::vector<float> x = draw(count * window, 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double shared = common[i / static_cast<std::size_t>(window)];
    x[i] = static_cast<float>(std::sqrt(rho) * shared + std::sqrt(1 - rho) * x[i]);
  }
  return x;
}

double relative_error(const Autoencoder& autoencoder, const std::vector<float>& x) {
  std::vector<float> decoded = x;
  autoencoder.reconstruct(decoded);
  double error = 0, power = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += std::pow(double{decoded[i]} - x[i], 2);
    power += std::pow(double{x[i]}, 2);
  }
  return error / power;
}

}  // namespace

TEST_CASE("autoencoder: dozens of steps reach the error of principal components", "[fast]") {
  // Of windows of s values with correlation rho the first component leaves (1 - rho)(1 - 1/s).
  constexpr double kOff = 0.02;  // of the power: what is left to learn, and the sample
  for (const double rho : {0.0, 0.5, 0.9}) {
    Autoencoder autoencoder(4, 1, 0);
    for (int step = 0; step < 64; ++step) autoencoder.train(windows(150, 4, rho, step));
    const double bound = (1 - rho) * 0.75;
    CHECK(std::fabs(relative_error(autoencoder, windows(5000, 4, rho, 1000)) - bound) < kOff);
  }
}

TEST_CASE("autoencoder: the decoded mean of codes is the mean of what they decode to", "[fast]") {
  Autoencoder autoencoder(8, 3, 1);
  const std::vector<float> a = windows(20, 8, 0.5, 1), b = windows(20, 8, 0.5, 2);
  autoencoder.train(a);
  std::vector<float> mean(a.size()), of_a = a, of_b = b;
  for (std::size_t i = 0; i < a.size(); ++i) mean[i] = (a[i] + b[i]) / 2;
  for (std::vector<float>* x : {&mean, &of_a, &of_b}) autoencoder.reconstruct(*x);
  for (std::size_t i = 0; i < a.size(); ++i)
    CHECK(std::fabs(mean[i] - (of_a[i] + of_b[i]) / 2) < 1e-5 * (1 + std::fabs(mean[i])));
}

TEST_CASE("autoencoder: a short last window is filled with zeros", "[fast]") {
  Autoencoder autoencoder(4, 2, 2);
  std::vector<float> whole = {1, 2, 3, 4, 5, 6, 0, 0}, part = {1, 2, 3, 4, 5, 6};
  CHECK(autoencoder.codes(8) == 4);
  CHECK(autoencoder.codes(6) == 4);
  CHECK(autoencoder.codes(0) == 0);
  autoencoder.reconstruct(whole);
  autoencoder.reconstruct(part);
  whole.resize(6);
  CHECK(part == whole);
  Autoencoder of_whole = autoencoder, of_part = autoencoder;
  of_whole.train(std::vector<float>{1, 2, 3, 4, 5, 6, 0, 0});
  of_part.train(std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(std::ranges::equal(of_whole.state(), of_part.state()));
}

TEST_CASE("autoencoder: zeros and what is not finite teach nothing", "[fast]") {
  Autoencoder autoencoder(4, 1, 3);
  const std::vector<float> before(autoencoder.state().begin(), autoencoder.state().end());
  autoencoder.train(std::vector<float>(12));
  autoencoder.train(std::vector<float>{1, 2, 3, NAN});
  autoencoder.train(std::vector<float>{});
  CHECK(std::ranges::equal(autoencoder.state(), before));
  std::vector<float> x = {1, 2, NAN, 4, 1, 2, 3, 4};
  autoencoder.reconstruct(x);
  CHECK(x[0] == 1);
  CHECK(std::isnan(x[2]));
  CHECK(x[4] != 1);
}

TEST_CASE("autoencoder: its state continues to the same bits", "[fast]") {
  Autoencoder whole(4, 1, 4), resumed(4, 1, 5);
  for (int step = 0; step < 3; ++step) whole.train(windows(10, 4, 0.5, step));
  resumed.set_state(whole.state());
  whole.train(windows(10, 4, 0.5, 3));
  resumed.train(windows(10, 4, 0.5, 3));
  CHECK(std::ranges::equal(whole.state(), resumed.state()));
  CHECK_THROWS_WITH(resumed.set_state(std::vector<float>(3)),
                    Catch::Contains("expected 25 elements, found 3"));
}

}  // namespace numemu::autoencoder_test
