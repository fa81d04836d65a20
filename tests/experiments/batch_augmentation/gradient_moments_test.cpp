// Variance of mean gradients with copies: vectors of the closed form, and estimates from simulated
// gradients.
#include "experiments/batch_augmentation/batch_augmentation.hpp"

#include <cmath>

#include "emu/stats/mean.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace numemu::gradient_moments_test {

using namespace numemu::experiments;
using namespace numemu::experiments::batch_augmentation;

constexpr double kRho = 0.7;
constexpr std::size_t kSize = 16;  // elements of a gradient, each of variance 1
constexpr double kMean = 0.7;      // of each element

/// Normal gradients of samples in a row, whose copies share a part of variance rho.
class Drawn {
 public:
  Drawn(std::int64_t samples, std::int64_t copies, std::uint32_t use)
      : copies_(static_cast<std::size_t>(copies)),
        shared_(numbers(samples, use)),
        own_(numbers(samples * copies, use + 1)) {}

  std::vector<std::vector<float>> sample(std::size_t n) const {
    std::vector<std::vector<float>> of(copies_, std::vector<float>(kSize));
    for (std::size_t c = 0; c < copies_; ++c) {
      for (std::size_t i = 0; i < kSize; ++i) {
        of[c][i] = static_cast<float>(kMean + std::sqrt(kRho) * shared_[n * kSize + i] +
                                      std::sqrt(1 - kRho) * own_[(n * copies_ + c) * kSize + i]);
      }
    }
    return of;
  }

 private:
  static std::vector<float> numbers(std::int64_t vectors, std::uint32_t use) {
    return normal::sample({7, Stream::data, use}, static_cast<std::size_t>(vectors) * kSize, 31);
  }
  std::size_t copies_;
  std::vector<float> shared_, own_;
};

TEST_CASE("batch-augmentation: variance of a mean gradient with copies", "[fast]") {
  CHECK(mean_variance(1, kRho, 8, 4) == Approx(.09687).margin(1e-5).epsilon(0));
  CHECK(mean_variance(1, kRho, 8, 1) == Approx(1.0 / 8));
  CHECK(mean_variance(1, 0, 8, 4) == Approx(1.0 / 32));
  CHECK(mean_variance(1, 1, 8, 4) == Approx(1.0 / 8));
  // Copies that are infinitely many leave the share rho.
  CHECK(mean_variance(1, kRho, 8, 1e12) == Approx(kRho / 8));
}

TEST_CASE("batch-augmentation: simulated means have the variance and the mean square predicted",
          "[fast]") {
  constexpr std::int64_t kBatches = 4000, kBatch = 8, kCopies = 4;
  const Drawn drawn(kBatches * kBatch, kCopies, 1);
  GradientSums sums(20);
  std::vector<double> squares;
  for (std::size_t b = 0; b < kBatches; ++b) {
    std::vector<double> sum(kSize);
    for (std::size_t n = 0; n < kBatch; ++n)
      for (const std::vector<float>& g : drawn.sample(b * kBatch + n))
        for (std::size_t i = 0; i < kSize; ++i) sum[i] += double{g[i]} / (kBatch * kCopies);
    const std::vector<float> mean[] = {{sum.begin(), sum.end()}};
    sums.add(b * 20 / kBatches, mean);
    double square = 0;
    for (const double s : sum) square += s * s;
    squares.push_back(square);
  }
  const MomentGroups groups = sums.groups();
  const Estimate variance =
      estimate(20, [&](std::int64_t out) { return moments(groups, 1, out).sigma2() / kSize; });
  CHECK(variance.value == Approx(.09687).margin(4 * variance.error).epsilon(0));
  CHECK(variance.error < .002);
  const stats::Mean square = stats::mean_of(squares);
  CHECK(moments(groups, 1).one == Approx(square.value));
  const double predicted = kSize * (kMean * kMean + mean_variance(1, kRho, kBatch, kCopies));
  CHECK(square.value == Approx(predicted).margin(4 * square.error).epsilon(0));
}

TEST_CASE("batch-augmentation: U-statistics find the moments of single gradients", "[fast]") {
  constexpr std::int64_t kSamples = 2000, kCopies = 3;
  const Drawn drawn(kSamples, kCopies, 3);
  GradientSums sums(10);
  for (std::size_t n = 0; n < kSamples; ++n) sums.add(n % 10, drawn.sample(n));
  const MomentGroups groups = sums.groups();
  const auto check = [&](double expected, const auto& statistic) {
    const Estimate found =
        estimate(10, [&](std::int64_t out) { return statistic(moments(groups, kCopies, out)); });
    CHECK(found.value == Approx(expected).margin(4 * found.error).epsilon(0));
    CHECK(found.error < .1 * expected);
  };
  check(kRho, [](const Moments& m) { return m.rho(); });
  check(kSize, [](const Moments& m) { return m.sigma2(); });
  check(kSize * kMean * kMean, [](const Moments& m) { return m.other; });
}

TEST_CASE("batch-augmentation: moments are those of all pairs, also without a group", "[fast]") {
  const Drawn drawn(6, 2, 5);
  GradientSums sums(3);
  for (std::size_t n = 0; n < 6; ++n) sums.add(n / 2, drawn.sample(n));
  const MomentGroups groups = sums.groups();
  for (const std::int64_t out : {kNone, std::int64_t{1}}) {
    double one = 0, same = 0, other = 0, n = 0;
    const auto product = [](const std::vector<float>& a, const std::vector<float>& b) {
      double sum = 0;
      for (std::size_t i = 0; i < kSize; ++i) sum += double{a[i]} * double{b[i]};
      return sum;
    };
    for (std::size_t a = 0; a < 6; ++a) {
      if (static_cast<std::int64_t>(a / 2) == out) continue;
      const auto g = drawn.sample(a);
      ++n;
      one += (product(g[0], g[0]) + product(g[1], g[1])) / 2;
      same += product(g[0], g[1]);
      for (std::size_t b = 0; b < 6; ++b) {
        if (b == a || static_cast<std::int64_t>(b / 2) == out) continue;
        const auto h = drawn.sample(b);
        for (const auto& x : g)
          for (const auto& y : h) other += product(x, y) / 4;
      }
    }
    const Moments found = moments(groups, 2, out);
    CHECK(found.one == Approx(one / n));
    CHECK(found.same == Approx(same / n));
    CHECK(found.other == Approx(other / (n * (n - 1))));
  }
}

}  // namespace numemu::gradient_moments_test
