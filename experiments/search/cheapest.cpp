#include "experiments/search/cheapest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <utility>

#include "emu/net/train/evaluate.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/normal_law.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/recipe.hpp"
#include "policies/tune/base/run_steps.hpp"

namespace numemu::experiments {
namespace {

constexpr double kTail = 0.025;
/// Of it, what the last stage has; the stages before, which settle clear cases, share the rest.
constexpr double kLastStage = 0.8;
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

/// A candidate's network as it is measured: the trained one, or tuned.
class Prepared {
 public:
  Prepared(const ExperimentRun& run, const Workbench& bench, const LossCandidate& candidate,
           const LossTuning* tuning)
      : bench_(bench), recipe_(policies::Recipe::parse(candidate.recipe, "search")) {
    if (tuning == nullptr) {
      numerics_ = std::make_unique<policies::RecipeNumerics>(
          bound_recipe(recipe_, bench.trained, "search"));
      freeze(*numerics_, bench.trained.graph, bench.dataset);
      return;
    }
    const auto folded = [&] {
      TrainedNet trained = load_trained_net(run.settings.text("net"), bench.dataset, run.folders);
      fold_batch_norm(trained);
      return std::move(trained.graph);
    };
    const std::int64_t samples = std::min(tuning->samples, bench.dataset.calibration_count());
    tuning_.reset(new policies::Tuning{folded(),
                                       folded(),
                                       {},
                                       recipe_,
                                       "search",
                                       {samples, calibration_of(bench.dataset)},
                                       run.seed});
    policies::complete_ranges(*tuning_);
    policies::run_tune_steps(*tuning_, policies::parse_tune_steps(tuning->steps, "--tune"));
    numerics_ = policies::tuned_numerics(*tuning_);
  }

  Answers answers(std::int64_t images) const {
    const net::Evaluation evaluation =
        net::evaluate(tuning_ ? tuning_->graph : bench_.trained.graph, bench_.dataset,
                      net::Split::test, images, *numerics_);
    const auto at = [](const std::vector<std::uint8_t>& right) {
      return [&right](std::int64_t i) { return right[static_cast<std::size_t>(i)] != 0; };
    };
    const stats::PairedAnswers counts = stats::count_answers(
        std::ssize(evaluation.right), at(bench_.baseline.right), at(evaluation.right));
    return {counts.both, counts.only1, counts.only2, counts.n};
  }

 private:
  const Workbench& bench_;
  const policies::Recipe recipe_;
  std::unique_ptr<policies::Tuning> tuning_;
  std::unique_ptr<policies::RecipeNumerics> numerics_;
};

}  // namespace

std::vector<std::int64_t> stages_of(std::int64_t images) {
  std::vector<std::int64_t> out;
  for (std::int64_t n = kFirstStage; 2 * n <= images; n *= kStageFactor) out.push_back(n);
  out.push_back(images);
  return out;
}

Cheapest cheapest_within(
    std::size_t candidates, std::int64_t images, double limit,
    const std::function<stats::PairedAnswers(std::size_t, std::int64_t)>& measure,
    std::size_t searches) {
  const std::vector<std::int64_t> stages = stages_of(images);
  Cheapest out;
  const std::size_t tries =
      searches * (static_cast<std::size_t>(std::bit_width(candidates)) + kNeighbours);
  out.looks = tries * stages.size();
  const auto z_of = [&](std::int64_t looked_at) {
    const double share = stages.size() == 1 ? 1
                         : looked_at == stages.back()
                             ? kLastStage
                             : (1 - kLastStage) / static_cast<double>(stages.size() - 1);
    return -normal::quantile(kTail * share / static_cast<double>(tries));
  };
  const auto keeps = [&](std::size_t candidate) {
    Tried tried{.candidate = candidate, .answers = {}};
    for (const std::int64_t n : stages) {
      tried.answers = measure(candidate, n);
      tried.loss = stats::paired_share(tried.answers, 1, z_of(n));
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
                         const std::vector<LossCandidate>& candidates, double limit,
                         std::size_t searches, const LossTuning* tuning) {
  std::unique_ptr<Prepared> prepared;  // of the last candidate: stages follow each other
  std::size_t last = candidates.size();
  const auto answers = [&](std::size_t c, std::int64_t images) {
    if (c != last) {
      prepared = std::make_unique<Prepared>(run, bench, candidates[c], tuning);
      last = c;
    }
    return prepared->answers(images);
  };
  const auto measure = [&](std::size_t c, std::int64_t images) {
    Json point = {{"answers", images},
                  {"recipe", policies::Recipe::parse(candidates[c].recipe, "search").json()},
                  {"data", bench.dataset.name()},
                  {"images", bench.dataset.digest()}};
    if (tuning != nullptr)
      point["tuned"] = {
          {"steps", policies::tune_steps_text(policies::parse_tune_steps(tuning->steps, "--tune"))},
          {"samples", tuning->samples},
          {"seed", run.seed}};
    identify(point, bench.trained);
    const std::vector<Answers> counts = run_typed<Answers>(
        run, {{std::move(point),
               fmt::format("{}{}, {} samples", candidates[c].name, tuning ? ", tuned" : "", images),
               [&, c, images] { return answers(c, images); }}});
    const Answers& one = counts.front();
    return stats::PairedAnswers{one.both, one.only1, one.only2, one.n};
  };
  return cheapest_within(candidates.size(), bench.eval_images, limit, measure, searches);
}

}  // namespace numemu::experiments
