// Pruning below a threshold: the vectors of the specification, exact comparisons, expectation and
// variance, and vectors that equal the reference in every bit.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "policies/mask/rules/stochastic.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace stochastic_threshold_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSubnormal = std::numeric_limits<float>::denorm_min();

std::uint32_t word(float x) { return std::bit_cast<std::uint32_t>(x); }

std::vector<std::uint32_t> words(const std::vector<float>& x) {
  std::vector<std::uint32_t> result;
  for (const float value : x) result.push_back(word(value));
  return result;
}

struct Pruned {
  std::vector<float> y;
  std::vector<std::uint8_t> keep;
};

using Prune = void (*)(const RandomSource&, const MaskRun&);

Pruned prune(Prune how, const std::vector<float>& x, double threshold, const RandomSource& random,
             std::uint64_t first = 0) {
  Pruned result{std::vector<float>(x.size(), 77), std::vector<std::uint8_t>(x.size(), 77)};
  how(random, {x.data(), result.y.data(), result.keep.data(), std::ssize(x), first, threshold});
  return result;
}

void prune_hard_run(const RandomSource&, const MaskRun& run) { prune_hard(run); }

const RandomSource kRandom{12345, Stream::mask, 7, 3};

/// Magnitudes over 40 binades around tau, zeros and special values among them.
std::vector<float> mixture(std::int64_t n, float tau, std::uint64_t seed) {
  const RandomSource random{seed, Stream::vectors, 1, 0};
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const double size = 1.2 * tau * std::exp2(-20 * random.uniform(3 * i));
    const auto g = static_cast<float>(random.uniform(3 * i + 1) < 0.5 ? size : -size);
    const float special[] = {0.0F,
                             -0.0F,
                             kNan,
                             -kNan,
                             kInfinity,
                             -kInfinity,
                             kSubnormal,
                             -kSubnormal,
                             tau,
                             -tau,
                             std::nextafter(tau, 0.0F)};
    const auto which = static_cast<std::size_t>(random.uniform(3 * i + 2) * 60);
    x.push_back(which < std::size(special) ? special[which] : g);
  }
  return x;
}

/// u tau < |g| with every number exact: 56 bits fit the significand of a long double.
bool keeps_exactly(std::uint32_t random, float g, float tau) {
  static_assert(std::numeric_limits<long double>::digits >= 56);
  return static_cast<long double>(random) * 0x1p-32L * static_cast<long double>(tau) <
         static_cast<long double>(g);
}

}  // namespace

TEST_CASE("an element below the threshold is raised where u tau < |g|", "[fast]") {
  const auto tau = word(1.0F), quarter = word(0.25F);
  const auto draw = [](double u) { return static_cast<std::uint32_t>(u * 0x1p32); };
  CHECK(is_raised(draw(0.2), quarter, tau));
  CHECK_FALSE(is_raised(draw(0.3), quarter, tau));
  CHECK(is_raised(draw(0.25) - 1, quarter, tau));
  CHECK_FALSE(is_raised(draw(0.25), quarter, tau));
  CHECK(is_raised(0, word(kSubnormal), tau));
  CHECK_FALSE(is_raised(1, word(kSubnormal), tau));
  CHECK_FALSE(is_raised(0, 0, tau));
}

TEST_CASE("signs follow, the threshold itself and what is above stay", "[fast]") {
  const std::vector<float> x = {0.25F, -0.25F, 1.0F, -1.0F, 3.0F, 0.0F, -0.0F};
  bool raised = false, zeroed = false;
  for (std::uint16_t draw = 0; draw < 64; ++draw) {
    const RandomSource random{5, Stream::mask, 0, draw};
    const Pruned pruned = prune(prune_stochastic_reference, x, 1.0, random);
    for (std::size_t i = 0; i < 2; ++i) {
      const bool kept = random.uniform(i) < 0.25;
      CHECK(word(pruned.y[i]) == word(kept ? std::copysign(1.0F, x[i]) : 0.0F));
      CHECK(pruned.keep[i] == kept);
      (kept ? raised : zeroed) = true;
    }
    for (std::size_t i = 2; i < 5; ++i) CHECK(pruned.y[i] == x[i]);
    for (std::size_t i = 5; i < 7; ++i) CHECK(word(pruned.y[i]) == 0);
    CHECK(std::vector<std::uint8_t>(pruned.keep.begin() + 2, pruned.keep.end()) ==
          std::vector<std::uint8_t>{1, 1, 1, 0, 0});
  }
  CHECK(raised);
  CHECK(zeroed);
}

TEST_CASE("integers decide as exact arithmetic does", "[fast]") {
  const RandomSource random{9, Stream::vectors, 2, 0};
  std::int64_t kept = 0, tested = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    // Any exponents, those of subnormal numbers too; g half of the time next to u tau.
    const std::uint32_t draw =
        random.bits(4 * i, 32) >> (i % 3 == 0 ? random.bits(4 * i + 3, 5) : 0);
    const float tau = std::bit_cast<float>(1 + random.bits(4 * i + 1, 32) % 0x7f7fffff);
    float g = std::bit_cast<float>(random.bits(4 * i + 2, 32) % word(tau));
    if (i % 2 == 0) {
      g = static_cast<float>(draw * 0x1p-32 * tau);
      if (i % 4 == 0) g = std::nextafter(g, i % 8 == 0 ? 0.0F : tau);
    }
    if (!(g < tau)) continue;
    const bool expected = keeps_exactly(draw, g, tau);
    if (is_raised(draw, word(g), word(tau)) != expected) FAIL(draw << " " << g << " " << tau);
    kept += expected;
    ++tested;
  }
  CHECK(tested > 190'000);
  CHECK(kept > tested / 4);
  CHECK(kept < tested * 3 / 4);
}

TEST_CASE("nothing is pruned without a threshold", "[fast]") {
  std::vector<float> x = mixture(100, 1, 3);
  x.push_back(std::bit_cast<float>(0xffa12345U));  // a signalling NaN with its payload
  for (const double threshold : {0.0, -1.0, HUGE_VAL, std::nan(""), 1e-60, 1e60}) {
    CHECK(threshold_value(threshold) == 0);
    for (const Prune how : {prune_stochastic, prune_stochastic_reference, prune_hard_run}) {
      const Pruned pruned = prune(how, x, threshold, kRandom);
      CHECK(words(pruned.y) == words(x));
      CHECK(pruned.keep == std::vector<std::uint8_t>(x.size(), 1));
    }
    CHECK(stochastic_error(x.data(), 8, threshold) == 0);
    CHECK(hard_error(x.data(), 8, threshold) == 0);
  }
}

TEST_CASE("vectors equal the reference in every bit", "[fast]") {
  for (const double threshold :
       {1.0, 0.3, 1e-3, 7e20, 3e38, 1e-20, 0x1p-90, 0x1.fffffep-91, 1e-38, 1e-41}) {
    const float tau = threshold_value(threshold);
    for (const std::int64_t n : {0, 1, 3, 15, 16, 17, 63, 100, 1023, 1024, 1025, 5001}) {
      const std::vector<float> x = mixture(n, tau, static_cast<std::uint64_t>(n) + 11);
      for (const std::uint64_t first :
           {std::uint64_t{0}, std::uint64_t{5}, (std::uint64_t{1} << 34) - 3}) {
        const Pruned slow = prune(prune_stochastic_reference, x, threshold, kRandom, first);
        testing::on_every_target([&] {
          const Pruned fast = prune(prune_stochastic, x, threshold, kRandom, first);
          REQUIRE(words(fast.y) == words(slow.y));
          REQUIRE(fast.keep == slow.keep);
        });
      }
    }
  }
}

TEST_CASE("vectors leave what float32 cannot tell to integers", "[fast]") {
  // Every element within three ulp of its own u tau.
  for (const float tau : {1.0F, 0.7F, 1.9999999F, 3e-5F}) {
    std::vector<float> x;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      float g = static_cast<float>(kRandom.uniform(i) * tau);
      for (std::uint64_t k = 0; k < i % 4; ++k) g = std::nextafter(g, i % 8 < 4 ? 0.0F : 4.0F);
      x.push_back(i % 16 < 8 ? g : -g);
    }
    const Pruned slow = prune(prune_stochastic_reference, x, tau, kRandom);
    testing::on_every_target([&] {
      const Pruned fast = prune(prune_stochastic, x, tau, kRandom);
      CHECK(words(fast.y) == words(slow.y));
      CHECK(fast.keep == slow.keep);
    });
    std::int64_t kept = 0;
    for (const std::uint8_t keep : slow.keep) kept += keep;
    CHECK(kept > 5'000);
    CHECK(kept < 15'000);
  }
}

TEST_CASE("pruning in place, and masks alone", "[fast]") {
  const std::vector<float> x = mixture(3000, 0.5F, 4);
  for (const Prune how : {prune_stochastic, prune_stochastic_reference, prune_hard_run}) {
    const Pruned both = prune(how, x, 0.5, kRandom);
    std::vector<float> y = x;
    std::vector<std::uint8_t> keep(x.size(), 77);
    how(kRandom, {y.data(), y.data(), keep.data(), std::ssize(y), 0, 0.5});
    CHECK(words(y) == words(both.y));
    CHECK(keep == both.keep);
    keep.assign(x.size(), 77);
    how(kRandom, {x.data(), nullptr, keep.data(), std::ssize(x), 0, 0.5});
    CHECK(keep == both.keep);
    y = x;
    how(kRandom, {y.data(), y.data(), nullptr, std::ssize(y), 0, 0.5});
    CHECK(words(y) == words(both.y));
  }
}

TEST_CASE("runs of one tensor are independent", "[fast]") {
  const std::vector<float> x = mixture(1000, 2, 6);
  const Pruned whole = prune(prune_stochastic, x, 2, kRandom, 100);
  const std::vector<float> tail(x.begin() + 333, x.end());
  const Pruned part = prune(prune_stochastic, tail, 2, kRandom, 433);
  CHECK(words(part.y) == words({whole.y.begin() + 333, whole.y.end()}));
}

TEST_CASE("hard pruning keeps what reaches the threshold", "[fast]") {
  const std::vector<float> x = {0.5F, -0.5F,     std::nextafter(0.5F, 0.0F), -0.1F, -0.0F,
                                kNan, -kInfinity};
  const Pruned pruned = prune(prune_hard_run, x, 0.5, kRandom);
  CHECK(words(pruned.y) == words({0.5F, -0.5F, 0.0F, 0.0F, 0.0F, kNan, -kInfinity}));
  CHECK(pruned.keep == std::vector<std::uint8_t>{1, 1, 0, 0, 0, 1, 1});
  CHECK(hard_error(x.data(), 5, 0.5) ==
        Approx(0.25 + 0.1F * static_cast<double>(0.1F)).epsilon(1e-6));
}

TEST_CASE("the expectation is the element and the variance |g| (tau - |g|)", "[fast]") {
  constexpr std::int64_t kDraws = 200'000;
  const double tau = 1.3F;
  for (const float g : {0.01F, -0.4F, 0.6F, -1.2F, 1.29F}) {
    const std::vector<float> x(kDraws, g);
    const Pruned pruned = prune(prune_stochastic, x, tau, kRandom, 17);
    double sum = 0, squares = 0;
    for (const float y : pruned.y) {
      sum += y;
      squares += (y - static_cast<double>(g)) * (y - static_cast<double>(g));
    }
    const double magnitude = std::fabs(static_cast<double>(g)), p = magnitude / tau;
    const double variance = magnitude * (tau - magnitude);
    CHECK(std::fabs(sum / kDraws - g) <= 4 * std::sqrt(variance / kDraws));
    // (y - g)^2 is (tau - |g|)^2 with probability p, else g^2.
    const double spread = std::fabs((tau - magnitude) * (tau - magnitude) - magnitude * magnitude) *
                          std::sqrt(p * (1 - p));
    CHECK(std::fabs(squares / kDraws - variance) <= 4 * spread / std::sqrt(kDraws));
    CHECK(stochastic_error(x.data(), 1000, tau) == Approx(1000 * variance).epsilon(1e-12));
  }
}

}  // namespace stochastic_threshold_test
