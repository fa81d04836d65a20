// Approximate 2:4: published probabilities, vectors against groups one by one, unbiasedness.
#include "policies/mask/rules/mvue_approx.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>

#include "policies/mask/mvue_variance.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace mvue_approx_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::testing;

namespace {

constexpr double kErrors = 4;
constexpr unit::Sparsity kTwoOfFour{2, 4};
/// The documented bias, of S: two sums of three roundings each that draws are compared with.
constexpr double kBias = 0x1p-22;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("an element kept becomes itself over its probability", "[fast]") {
  struct Row {
    std::vector<float> x;
    std::vector<double> p;  // published, six digits
  };
  const std::vector<Row> rows = {{{1, 2, 3, 4}, {.234524, .441270, .608333, .715873}},
                                 {{1, 2, 3, 10}, {.190018, .370513, .539286, .900183}},
                                 {{1, 1, 1, 1}, {.5, .5, .5, .5}},
                                 {{1, 1, 1, 3}, {.4, .4, .4, .8}}};
  constexpr double kSixDigits = 0.5e-6;
  for (const Row& row : rows) {
    std::array<bool, 4> seen{};
    for (std::uint32_t k = 0; k < 256; ++k) {
      float y[4];
      mvue_approx_group(row.x.data(), (k % 16) << 28, (k / 16) << 28, y);
      CHECK(std::count(y, y + 4, 0.0F) == 2);
      for (int i = 0; i < 4; ++i) {
        if (y[i] == 0) continue;
        seen[i] = true;
        CHECK(std::fabs(row.x[i] / double{y[i]} - row.p[i]) <= kSixDigits);
      }
    }
    CHECK((seen[0] && seen[1] && seen[2] && seen[3]));
  }
}

TEST_CASE("at most two elements that are not zero stay as they are", "[fast]") {
  for (const std::vector<float>& x : std::vector<std::vector<float>>{
           {0, 0, 0, 0}, {0, -3, 0, 0}, {0, 7, 0, -0x1p-149F}, {0x1p127F, 0, 0, -0x1p127F}}) {
    for (const std::uint32_t r : {0U, 0x55555555U, 0xffffffffU}) {
      float y[4];
      mvue_approx_group(x.data(), r, ~r, y);
      for (int i = 0; i < 4; ++i) CHECK(y[i] == x[i]);
    }
  }
  const float x[4] = {-0.0F, 1, NAN, 2};
  float y[4];
  mvue_approx_group(x, 5, 6, y);
  CHECK((std::isnan(y[0]) && std::isnan(y[1]) && y[2] == 0 && y[3] == 0));
}

TEST_CASE("sums beyond float32 change nothing but the scale", "[fast]") {
  for (const std::uint32_t r : {0U, 0x40000000U, 0x80000000U, 0xfffffff0U}) {
    const float x[4] = {1, -1.25F, 1.5F, 1.75F};
    float small[4], large[4], y[4];
    for (int i = 0; i < 4; ++i) large[i] = x[i] * 0x1p126F;
    mvue_approx_group(x, r, ~r, small);
    mvue_approx_group(large, r, ~r, y);
    for (int i = 0; i < 4; ++i) CHECK(y[i] == small[i] * 0x1p126F);
  }
}

TEST_CASE("vectors give the bits of single groups", "[fast]") {
  constexpr std::int64_t kCount = 1 << 19;
  const std::vector<float> x = mixed(kCount, true);
  std::vector<float> fast(x.size()), slow(x.size());
  std::vector<std::uint8_t> keep(x.size());
  on_every_target([&] {
    for (const std::int64_t groups : {kCount / 4, std::int64_t{1}, std::int64_t{19}}) {
      const std::uint64_t first = groups == 19 ? (std::uint64_t{1} << 34) + 1 : 3;
      mvue_approx(mask_source(9), MaskRun{x.data(), fast.data(), keep.data(), groups, first});
      mvue_approx_reference(mask_source(9), MaskRun{x.data(), slow.data(), nullptr, groups, first});
      CHECK(same_bits(fast, slow));
    }
  });
  for (const char* law : {"normal", "lognormal:2", "lognormal:8"}) {
    const std::vector<float> smooth = sample(law, 1 << 16);
    fast.resize(smooth.size());
    slow.resize(smooth.size());
    mvue_approx(mask_source(3), MaskRun{smooth.data(), fast.data(), nullptr, 1 << 14, 0});
    mvue_approx_reference(mask_source(3), MaskRun{smooth.data(), slow.data(), nullptr, 1 << 14, 0});
    CHECK(same_bits(fast, slow));
  }
}

TEST_CASE("vectors give the bits of single groups where draws are next to their limits", "[fast]") {
  // One such group in the widest vector, so that no other one sends it to the reference.
  constexpr std::int64_t kGroups = 1 << 17, kEvery = 16;
  const RandomSource random = mask_source(10);
  RandomSource second = random;
  second.draw = 1;
  std::vector<float> x, fast(4 * kGroups), slow(4 * kGroups);
  for (std::int64_t g = 0; g < kGroups; ++g) {
    const auto i = static_cast<std::uint64_t>(g);
    const std::int64_t number = g / kEvery, kind = g % kEvery == 0 ? 1 + number % 5 : 0;
    const double near = static_cast<double>(number / 5 % 9 - 4) * 0x1p-25;
    // Of sum 1; the first limit is where the draw is, or the second, or the third; or one of the
    // two limits of the second draw.
    const double u = random.uniform(i), v = second.uniform(i);
    const double d = u + near, e = 0.25 * (v + near), rest = 1 - u, others = 0.25 * (1 - v);
    const std::array<double, 4> kinds[] = {{1, 2, 3, 4},
                                           {d, rest / 4, rest / 4, rest / 2},
                                           {d / 2, d / 2, rest / 4, rest * 0.75},
                                           {d / 4, d / 4, d / 2, rest},
                                           {e, others / 2, others / 2, 0.75},
                                           {e / 2, e / 2, others, 0.75}};
    for (const double m : kinds[kind]) x.push_back(static_cast<float>(std::fabs(m)));
  }
  mvue_approx_reference(random, MaskRun{x.data(), slow.data(), nullptr, kGroups, 0});
  on_every_target([&] {
    mvue_approx(random, MaskRun{x.data(), fast.data(), nullptr, kGroups, 0});
    CHECK(same_bits(fast, slow));
  });
  std::vector<float> here = x;
  mvue_approx(random, MaskRun{here.data(), here.data(), nullptr, kGroups, 0});
  CHECK(same_bits(here, slow));
}

TEST_CASE("vectors give the bits of single groups for all mixtures of sizes", "[fast]") {
  // Around every limit of the vectors: subnormal numbers, 2^-100, 2^-62, 2^-60, 2^60, 2^64, 2^124.
  const float sizes[] = {0,          0x1p-149F,  0x3p-149F,  0x5.4p-130F,    0x1.8p-126F,
                         0x1p-101F,  0x1p-100F,  0x1.8p-62F, 0x1.4p-61F,     0x1.2p-60F,
                         0x1.6p-40F, 1.5F,       0x1.ep59F,  0x1.000002p64F, 0x1.ap123F,
                         0x1p124F,   0x1.2p127F, HUGE_VALF};
  constexpr std::size_t kSizes = std::size(sizes);
  std::vector<float> x;
  for (std::size_t i = 0; i < kSizes * kSizes * kSizes * kSizes; ++i) {
    std::size_t at = i;
    for (int k = 0; k < 4; ++k, at /= kSizes)
      x.push_back((i >> k) % 2 == 0 ? sizes[at % kSizes] : -sizes[at % kSizes]);
  }
  const auto groups = std::ssize(x) / 4;
  std::vector<float> fast(x.size()), slow(x.size());
  for (const std::uint32_t tensor : {11U, 12U, 13U}) {
    mvue_approx_reference(mask_source(tensor), MaskRun{x.data(), slow.data(), nullptr, groups, 0});
    on_every_target([&] {
      mvue_approx(mask_source(tensor), MaskRun{x.data(), fast.data(), nullptr, groups, 0});
      CHECK(same_bits(fast, slow));
    });
  }
}

namespace {

/// P(element i is kept) = t_i (1 + sum over j != i of t_j / (1 - t_j)) with t = |x| / S.
std::vector<double> inclusion_probabilities(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += std::fabs(v);
  std::vector<double> p;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double more = 1;
    for (std::size_t j = 0; j < x.size(); ++j)
      more += j == i ? 0 : std::fabs(x[j]) / (sum - std::fabs(x[j]));
    p.push_back(std::min(1.0, std::fabs(x[i]) / sum * more));
  }
  return p;
}

}  // namespace

TEST_CASE("every element is unbiased and the variance is the closed form, at any scale", "[fast]") {
  constexpr std::int64_t kDraws = 100000;
  std::uint32_t tensor = 60;
  for (const char* law : {"normal", "laplace", "lognormal:0.5", "lognormal:1", "lognormal:2"}) {
    for (const int exponent : {0, -130, 121}) {
      INFO(law << " 2^" << exponent);
      std::vector<float> x = sample(law, 4, ++tensor);
      for (float& v : x) v = std::ldexp(v, exponent);
      const Moments m = moments(mvue_approx, x, kDraws, mask_source(tensor));
      const auto p = inclusion_probabilities(x);
      double sum = 0;
      for (const float v : x) sum += std::fabs(v);
      for (int i = 0; i < 4; ++i) {
        const double variance = double{x[i]} * x[i] * (1 - p[i]) / p[i];
        // Subnormals are rounded to multiples of 2^-149.
        CHECK(std::fabs(m.mean[i] - x[i]) <=
              kErrors * std::sqrt(variance / kDraws) + kBias * sum + 0x1p-150);
      }
      const double expected = estimator_variance(Estimator::approx, kTwoOfFour, x.data());
      CHECK(std::fabs(m.error - expected) <=
            kErrors * std::sqrt(m.error_variance / kDraws) + 1e-5 * expected);
    }
  }
}

}  // namespace mvue_approx_test
