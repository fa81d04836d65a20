// Exact N:M: water-filling and systematic sampling against a long-double model, published vectors.
#include <algorithm>
#include <cstring>

#include "policies/mask/kernels/mvue.hpp"
#include "policies/mask/mvue_variance.hpp"
#include "tests/catch.hpp"
#include "tests/policies/mask/unbiased_samples.hpp"

namespace mvue_groups_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::testing;

namespace {

constexpr double kErrors = 4;
constexpr unit::Sparsity kTwoOfFour{2, 4};

Pruner pruner(unit::Sparsity pattern) {
  return [pattern](const RandomSource& random, const MaskRun& run) {
    mvue_groups(pattern, random, run);
  };
}

std::vector<float> group_of(unit::Sparsity pattern, const std::vector<float>& x, std::uint32_t r) {
  std::vector<float> y(x.size());
  mvue_group(pattern, x.data(), r, y.data());
  return y;
}

std::int64_t kept_in(const float* y, int group) {
  return std::count_if(y, y + group, [](float v) { return v != 0; });
}

}  // namespace

TEST_CASE("the published 2:4 groups: what is kept, how likely, at which variance", "[fast]") {
  struct Row {
    std::vector<float> x;
    std::vector<double> p;
    double variance;
    std::vector<float> kept;  // magnitude of each element where it is kept
  };
  const std::vector<Row> rows = {
      {{1, 2, 3, 4}, {.2, .4, .6, .8}, 20, {5, 5, 5, 5}},
      {{1, 2, 3, 5}, {2. / 11, 4. / 11, 6. / 11, 10. / 11}, 21.5, {5.5, 5.5, 5.5, 5.5}},
      {{1, 2, 3, 10}, {1. / 6, 1. / 3, .5, 1}, 22, {6, 6, 6, 10}},
      {{1, 1, 1, 1}, {.5, .5, .5, .5}, 4, {2, 2, 2, 2}},
      {{1, 1, 1, 3}, {1. / 3, 1. / 3, 1. / 3, 1}, 6, {3, 3, 3, 3}},
      {{0, 1, 1, 1}, {0, 2. / 3, 2. / 3, 2. / 3}, 1.5, {0, 1.5, 1.5, 1.5}},
      {{0, 0, 1, 1}, {0, 0, 1, 1}, 0, {0, 0, 1, 1}},
      {{0, 0, 0, 0}, {0, 0, 0, 0}, 0, {0, 0, 0, 0}},
  };
  constexpr std::int64_t kDraws = 50000;
  for (const Row& row : rows) {
    INFO(row.x[3] << " at the end");
    std::vector<float> x, y(row.x.size() * kDraws);
    for (std::int64_t i = 0; i < kDraws; ++i) x.insert(x.end(), row.x.begin(), row.x.end());
    for (std::size_t i = 0; i < x.size(); i += 3) x[i] = -x[i];
    mvue_groups(kTwoOfFour, mask_source(1), MaskRun{x.data(), y.data(), nullptr, kDraws, 0});
    double squares = 0, fourth = 0;
    std::int64_t wrong = 0;
    std::array<std::int64_t, 4> counts{};
    for (std::size_t g = 0; g < y.size(); g += 4) {
      double error = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        const double e = double{y[g + i]} - x[g + i];
        error += e * e;
        counts[i] += y[g + i] != 0 ? 1 : 0;
        wrong += y[g + i] != 0 && y[g + i] != std::copysign(row.kept[i], x[g + i]) ? 1 : 0;
      }
      squares += error / kDraws;
      fourth += error * error / kDraws;
    }
    CHECK(wrong == 0);
    for (std::size_t i = 0; i < 4; ++i) {
      const double p = row.p[i];
      CHECK(std::fabs(static_cast<double>(counts[i]) / kDraws - p) <=
            kErrors * std::sqrt(p * (1 - p) / kDraws) + 1e-15);
    }
    const double spread = std::sqrt(std::max(0.0, fourth - squares * squares) / kDraws);
    CHECK(std::fabs(squares - row.variance) <= kErrors * spread + 1e-12 * row.variance);
  }
}

TEST_CASE("a group's draws: each element has an interval of its probability's length", "[fast]") {
  // (1, 2, 3, 4) with probabilities .2 .4 .6 .8: the ends are .2, .6, 1.2 and 2,
  // and the points u and u + 1.
  CHECK(group_of(kTwoOfFour, {1, 2, 3, 4}, 0) == std::vector<float>{5, 0, 5, 0});
  CHECK(group_of(kTwoOfFour, {1, 2, 3, 4}, 0x33333332) == std::vector<float>{5, 0, 5, 0});
  CHECK(group_of(kTwoOfFour, {1, 2, 3, 4}, 0x33333333) == std::vector<float>{0, 5, 0, 5});
  CHECK(group_of(kTwoOfFour, {1, 2, 3, 4}, 0xffffffff) == std::vector<float>{0, 0, 5, 5});
  CHECK(group_of({3, 4}, {1, -1, 1, 1}, 0x80000000) ==
        std::vector<float>{4.0F / 3, 0, 4.0F / 3, 4.0F / 3});
  CHECK(group_of({4, 4}, {1, -7, 0, NAN}, 5)[0] != 1);
  CHECK(group_of({4, 4}, {1, -7, 0, 2}, 5) == std::vector<float>{1, -7, 0, 2});
}

TEST_CASE("no more than N are kept, N where N are not zero, over a million groups", "[fast]") {
  for (const unit::Sparsity pattern :
       {unit::Sparsity{2, 4}, {1, 2}, {1, 4}, {4, 8}, {3, 5}, {7, 16}}) {
    const std::int64_t groups = pattern.group == 4 && pattern.kept == 2 ? 1'000'000 : 20'000;
    const std::vector<float> x = mixed(groups * pattern.group, false);
    std::vector<float> y(x.size());
    mvue_groups(pattern, mask_source(4), MaskRun{x.data(), y.data(), nullptr, groups, 0});
    std::int64_t more = 0, fewer = 0;
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t kept = kept_in(y.data() + g * pattern.group, pattern.group);
      const std::int64_t present = kept_in(x.data() + g * pattern.group, pattern.group);
      more += kept > pattern.kept ? 1 : 0;
      fewer += kept < std::min<std::int64_t>(pattern.kept, present) ? 1 : 0;
    }
    CHECK(more == 0);
    CHECK(fewer == 0);
  }
}

TEST_CASE("groups with NaN or infinities, sums beyond float32, subnormals", "[fast]") {
  for (const float odd : {INFINITY, NAN}) {
    const auto y = group_of(kTwoOfFour, {1, 2, odd, 4}, 77);
    CHECK((std::isnan(y[0]) && std::isnan(y[1]) && y[2] == 0 && y[3] == 0));
  }
  // S / 2 = 2^127.8 is a float32 though S is not.
  const float big = 0x1.cp126F;
  CHECK(group_of(kTwoOfFour, {big, big, -big, big}, 0) ==
        std::vector<float>{0x1.cp127F, 0, -0x1.cp127F, 0});
  const float huge = 0x1p127F;
  CHECK(group_of(kTwoOfFour, {huge, huge, huge, huge}, 0)[0] == INFINITY);
  const float least = 0x1p-149F;
  CHECK(group_of(kTwoOfFour, {least, 2 * least, 3 * least, 10 * least}, 0) ==
        std::vector<float>{6 * least, 0, 0, 10 * least});
  CHECK_FALSE(std::signbit(group_of(kTwoOfFour, {-0.0F, 1, 2, -0.0F}, 3)[0]));
}

namespace {

/// P(element i is kept), in proportion to its magnitude among those that are not certain.
std::vector<double> inclusion_probabilities(const unit::Sparsity& pattern,
                                            const std::vector<float>& x) {
  std::vector<double> p(x.size(), 0);
  int kept = pattern.kept;
  for (bool more = true; more;) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += p[i] == 1 ? 0 : std::fabs(x[i]);
    more = false;
    std::vector<double> next = p;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (p[i] == 1) continue;
      next[i] = std::min(1.0, kept * std::fabs(double{x[i]}) / sum);
      more = more || next[i] == 1;
    }
    p = next;
    kept = pattern.kept - static_cast<int>(std::count(p.begin(), p.end(), 1.0));
  }
  return p;
}

}  // namespace

TEST_CASE("every element is unbiased and the variance is the closed form, any N:M", "[fast]") {
  constexpr std::int64_t kDraws = 100000;
  const std::vector<unit::Sparsity> patterns = {{1, 2}, {2, 4}, {1, 4}, {4, 8}, {3, 5}, {8, 16}};
  std::uint32_t tensor = 40;
  for (const char* law : {"normal", "laplace", "lognormal:0.5", "lognormal:1", "lognormal:2"}) {
    for (const unit::Sparsity pattern : patterns) {
      INFO(law << " " << pattern.kept << ":" << pattern.group);
      const std::vector<float> x = sample(law, pattern.group, ++tensor);
      const Moments m = moments(pruner(pattern), x, kDraws, mask_source(tensor));
      const auto p = inclusion_probabilities(pattern, x);
      for (int i = 0; i < pattern.group; ++i) {
        // By p and not by the draws: of an element that is kept once in 10^5 they tell nothing.
        const double variance = p[i] > 0 ? double{x[i]} * x[i] * (1 - p[i]) / p[i] : 0;
        CHECK(std::fabs(m.mean[i] - x[i]) <=
              kErrors * std::sqrt(variance / kDraws) + 0x1p-22 * std::fabs(x[i]));
      }
      const double expected = estimator_variance(Estimator::exact, pattern, x.data());
      CHECK(std::fabs(m.error - expected) <= kErrors * std::sqrt(m.error_variance / kDraws));
    }
  }
}

TEST_CASE("batches, first groups and aliasing change nothing", "[fast]") {
  constexpr unit::Sparsity kPattern{3, 6};
  const std::int64_t groups = 777;
  const std::vector<float> x = mixed(groups * 6, true);
  std::vector<float> all(x.size()), parts(x.size()), here = x;
  std::vector<std::uint8_t> keep(x.size());
  const RandomSource random = mask_source(6);
  mvue_groups(kPattern, random, MaskRun{x.data(), all.data(), keep.data(), groups, 100});
  for (std::int64_t g = 0; g < groups; g += 111)
    mvue_groups(kPattern, random,
                MaskRun{x.data() + 6 * g, parts.data() + 6 * g, nullptr, 111,
                        100 + static_cast<std::uint64_t>(g)});
  mvue_groups(kPattern, random, MaskRun{here.data(), here.data(), nullptr, groups, 100});
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto bits = [](float v) { return std::bit_cast<std::uint32_t>(v); };
    wrong += bits(all[i]) != bits(parts[i]) || bits(all[i]) != bits(here[i]) ||
                     keep[i] != (all[i] != 0 ? 1 : 0)
                 ? 1
                 : 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("2:4 by vectors gives the bits of single groups", "[fast]") {
  const RandomSource random = mask_source(12);
  const auto compare = [&](const std::vector<float>& x) {
    const auto groups = static_cast<std::int64_t>(x.size() / 4);
    std::vector<float> fast(x.size()), slow(x.size());
    mvue_groups_reference(kTwoOfFour, random, MaskRun{x.data(), slow.data(), nullptr, groups, 1});
    on_every_target([&] {
      mvue_groups(kTwoOfFour, random, MaskRun{x.data(), fast.data(), nullptr, groups, 1});
      CHECK(std::memcmp(fast.data(), slow.data(), x.size() * sizeof(float)) == 0);
    });
  };
  compare(mixed(1 << 18, true));
  compare(sample("normal", 4 * 1001));
  compare(sample("lognormal:8", 1 << 14));
  // The draw next to a limit; one element next to the sum of the others.
  std::vector<float> near;
  for (std::int64_t g = 0; g < 1 << 14; ++g) {
    const double u = random.uniform(static_cast<std::uint64_t>(g) + 1);
    const double off = static_cast<double>(g % 7 - 3) * 0x1p-26;
    const double a[4] = {u / 2 + off, (1 - u / 2) / 3, (1 - u / 2) / 3, (1 - u / 2) / 3};
    const double b[4] = {u, 0.25, 0.5, u + 0.75 + off};
    const double c[4] = {1, 1, std::exp2(-40 - static_cast<double>(g % 30)), 0};
    for (int i = 0; i < 4; ++i)
      near.push_back(static_cast<float>(g % 3 == 0   ? a[i]
                                        : g % 3 == 1 ? b[(i + g / 3) % 4]
                                                     : c[(i + g) % 4]));
  }
  compare(near);
}

}  // namespace mvue_groups_test
