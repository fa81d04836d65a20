#include "bench/prune_cases.hpp"

#include <cstring>

#include "formats/error.hpp"
#include "policies/mask/kernels/mvue.hpp"
#include "policies/mask/kernels/tile_4x4.hpp"
#include "policies/mask/rules/greedy.hpp"
#include "policies/mask/rules/mvue_approx.hpp"
#include "policies/mask/rules/random.hpp"
#include "policies/mask/rules/stochastic.hpp"

namespace numemu::bench {
namespace {

using policies::MaskPolicy;
using policies::MaskRun;

constexpr RandomSource kRandom{42, Stream::mask, 7, 0};

void greedy(const MaskPolicy& policy, const RandomSource&, const MaskRun& run) {
  policies::keep_largest_reference(policy.pattern, run);
}

void random(const MaskPolicy& policy, const RandomSource& source, const MaskRun& run) {
  policies::keep_random_reference(policy.pattern, source, run);
}

void mvue_pairs(const MaskPolicy&, const RandomSource& source, const MaskRun& run) {
  policies::mvue_pairs_reference(source, run);
}

void mvue_groups(const MaskPolicy& policy, const RandomSource& source, const MaskRun& run) {
  policies::mvue_groups_reference(policy.pattern, source, run);
}

void mvue_approx(const MaskPolicy&, const RandomSource& source, const MaskRun& run) {
  policies::mvue_approx_reference(source, run);
}

void tiles_4x4(const MaskPolicy&, const RandomSource&, const MaskRun& run) {
  constexpr std::int64_t kElements = 16;
  for (std::int64_t i = 0; i < run.count * kElements; ++i) {
    const policies::Mask4x4 mask = policies::best_4x4(run.x + i / kElements * kElements);
    const bool keeps = (mask >> (kElements - 1 - i % kElements) & 1) != 0;
    run.y[i] = keeps ? run.x[i] : 0.0F;
    run.keep[i] = keeps ? 1 : 0;
  }
}

void stochastic(const MaskPolicy&, const RandomSource& source, const MaskRun& run) {
  policies::prune_stochastic_reference(source, run);
}

void one_by_one(const MaskPolicy& policy, const RandomSource& source, const MaskRun& run) {
  const std::int64_t elements = decision_size(policy);
  for (std::int64_t i = 0; i < run.count; ++i) {
    const std::int64_t at = i * elements;
    policy.rule->prune(policy, source,
                       {.x = run.x + at,
                        .y = run.y + at,
                        .keep = run.keep + at,
                        .count = 1,
                        .first = run.first + static_cast<std::uint64_t>(i),
                        .threshold = run.threshold});
  }
}

}  // namespace

std::vector<PruneCase> prune_cases() {
  std::vector<PruneCase> cases = {
      {"greedy(1:2)", 0, greedy},
      {"greedy(2:4)", 4e9, greedy},
      {"greedy(4:8)", 20e6, greedy},
      {"greedy(8:16)", 0, greedy},
      {"random(2:4)", 0, random},
      {"sequential(4:8)"},
      {"mvue(1:2)", 1.8e9, mvue_pairs},
      {"mvue(2:4)", 0, mvue_groups},
      {"mvue(4:8)", 0, mvue_groups},
      {"mvue-approx(2:4)", 1e9, mvue_approx},
      {"random-unbiased(2:4)"},
      {"transposable(2:4)", 1.5e9, tiles_4x4},
      {"transposable(4:8)", 2e6},
      {"transposable-greedy(4:8)"},
      {"transposable-2approx(4:8)"},
      {"stochastic(0.9)", 0, stochastic},
      {"hard(0.9)"},
  };
  for (PruneCase& c : cases) {
    c.policy = policies::parse_mask(c.text);
    if (c.reference == nullptr) c.reference = one_by_one;
  }
  return cases;
}

double threshold_of(const PruneCase& c, const Arrays& a) {
  const policies::MaskRule& rule = *c.policy.rule;
  return rule.threshold == nullptr ? 0 : rule.threshold(c.policy, a.x, a.n);
}

void prune(const PruneCase& c, Arrays& a, double threshold) {
  const std::int64_t count = a.n / decision_size(c.policy);
  c.policy.rule->prune(c.policy, kRandom,
                       {.x = a.x, .y = a.y, .count = count, .threshold = threshold});
}

void require_equal(const PruneCase& c, Arrays& a) {
  const auto size = static_cast<std::size_t>(a.n);
  std::vector<float> want(size), got(size);
  std::vector<std::uint8_t> wanted(size), mask(size);
  const double threshold = threshold_of(c, a);
  const std::int64_t count = a.n / decision_size(c.policy);
  c.reference(c.policy, kRandom, {a.x, want.data(), wanted.data(), count, /*first=*/0, threshold});
  c.policy.rule->prune(c.policy, kRandom,
                       {a.x, got.data(), mask.data(), count, /*first=*/0, threshold});
  prune(c, a, threshold);
  const auto differs = [&](const float* y) {
    return std::memcmp(want.data(), y, size * sizeof(float)) != 0;
  };
  if (differs(got.data()) || differs(a.y) || mask != wanted)
    throw Error(c.text + ": differs from the reference");
}

}  // namespace numemu::bench
