#include "experiments/search/cheapest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "emu/net/train/evaluate.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/normal_law.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {
namespace {

constexpr double kTail = 0.025;
constexpr std::int64_t kStageFactor = 4;

/// Counts as a trial has them.
struct Answers {
  std::int64_t both = 0, only1 = 0, only2 = 0, n = 0;

  static void fields(auto& self, const auto& visit) {
    visit("both", self.both);
    visit("only_float32", self.only1);
    visit("only_recipe", self.only2);
    visit("n", self.n);
  }
};

Answers answers_of(const Workbench& bench, const policies::Recipe& recipe, std::int64_t images) {
  policies::RecipeNumerics numerics(bound_recipe(recipe, bench.trained, "search"));
  freeze(numerics, bench.trained.graph, bench.dataset);
  const net::Evaluation evaluation =
      net::evaluate(bench.trained.graph, bench.dataset, net::Split::test, images, numerics);
  const auto at = [](const std::vector<std::uint8_t>& right) {
    return [&right](std::int64_t i) { return right[static_cast<std::size_t>(i)] != 0; };
  };
  const stats::PairedAnswers counts = stats::count_answers(
      std::ssize(evaluation.right), at(bench.baseline.right), at(evaluation.right));
  return {counts.both, counts.only1, counts.only2, counts.n};
}

}  // namespace

std::vector<std::int64_t> stages_of(std::int64_t images) {
  std::vector<std::int64_t> out;
  for (std::int64_t n = kFirstStage; 2 * n <= images; n *= kStageFactor) out.push_back(n);
  out.push_back(images);
  return out;
}

Cheapest cheapest_within(
    std::size_t candidates, std::int64_t images, double limit,
    const std::function<stats::PairedAnswers(std::size_t, std::int64_t)>& measure) {
  const std::vector<std::int64_t> stages = stages_of(images);
  Cheapest out;
  out.looks = stages.size() * (static_cast<std::size_t>(std::bit_width(candidates)) + kNeighbours);
  const double z = -normal::quantile(kTail / static_cast<double>(out.looks));
  const auto keeps = [&](std::size_t candidate) {
    Tried tried{.candidate = candidate, .answers = {}};
    for (const std::int64_t n : stages) {
      tried.answers = measure(candidate, n);
      tried.loss = stats::paired_share(tried.answers, 1, z);
      if (tried.loss.high <= limit) tried.keeps = true;
      if (tried.loss.low > limit) tried.keeps = false;
      if (tried.keeps) break;
    }
    out.order.push_back(tried);
    return tried.keeps == true;
  };
  // Below `low` none keeps the limit, as far as is known; `high` does, or is the end.
  std::size_t low = 0, high = candidates;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (keeps(middle)) {
      out.found = out.order.size() - 1;
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  for (int k = 0; out.found && k < kNeighbours && high > 0; ++k) {
    --high;
    const auto known = std::ranges::find(out.order, high, &Tried::candidate);
    if (known == out.order.end() && keeps(high)) out.found = out.order.size() - 1;
  }
  return out;
}

Cheapest cheapest_within(const ExperimentRun& run, const Workbench& bench,
                         const std::vector<LossCandidate>& candidates, double limit) {
  return cheapest_within(
      candidates.size(), bench.eval_images, limit, [&](std::size_t c, std::int64_t images) {
        const policies::Recipe recipe = policies::Recipe::parse(candidates[c].recipe, "search");
        Json point = {{"answers", images},
                      {"recipe", recipe.json()},
                      {"data", bench.dataset.name()},
                      {"images", bench.dataset.digest()}};
        identify(point, bench.trained);
        const std::vector<Answers> counts = run_typed<Answers>(
            run, {{std::move(point), fmt::format("{}, {} samples", candidates[c].name, images),
                   [&bench, recipe, images] { return answers_of(bench, recipe, images); }}});
        const Answers& one = counts.front();
        return stats::PairedAnswers{one.both, one.only1, one.only2, one.n};
      });
}

}  // namespace numemu::experiments
