#include "experiments/lognormal_gradients/looks.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "emu/stats/fit.hpp"
#include "formats/analysis/magnitude_law.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/fields.hpp"

namespace numemu::experiments::lognormal_gradients {
namespace {

Json distances(const std::vector<float>& nonzero) {
  Json json = Json::object();
  for (const stats::Fit& fit : stats::fit_all(nonzero.data(), std::ssize(nonzero)))
    json[fit.family] = fit.ks_distance;
  return json;
}

/// A record but for layer, step and epoch; null without a spread.
Json look_at(const std::vector<float>& g, const std::vector<Candidate>& candidates) {
  std::vector<float> nonzero;
  std::copy_if(g.begin(), g.end(), std::back_inserter(nonzero), [](float x) { return x != 0; });
  const auto n = static_cast<std::int64_t>(nonzero.size());
  const MagnitudeLaw law = fit_law(ThresholdLaw::lognormal, g.data(), std::ssize(g));
  if (!law.usable() || !(law.spread > 0)) return nullptr;
  const double mean = portable::log2(law.scale), sigma = law.spread / std::numbers::ln2;
  Json record = {{"n", g.size()},
                 {"zeros", 1 - law.nonzero},
                 {"ln", {{"mean", portable::log(law.scale)}, {"sigma", law.spread}}},
                 {"log2", {{"mean", mean}, {"sigma", sigma}}},
                 {"ks", distances(nonzero)},
                 {"errors", Json::array()}};
  for (const Candidate& candidate : candidates) {
    const double target = candidate.grid.best_mean(sigma), factor = portable::exp2(target - mean);
    const double sum = pairwise_sum(n, [&](std::int64_t i) {
      return candidate.grid.error_of(factor * std::fabs(double{nonzero[i]}));
    });
    record["errors"].push_back({{"mean", target},
                                {"predicted", candidate.grid.expected(sigma, target)},
                                {"measured", sum / static_cast<double>(n)}});
  }
  return record;
}

}  // namespace

std::vector<Candidate> candidates_of(const std::vector<int>& widths) {
  std::vector<Candidate> all;
  for (const int bits : widths) {
    for (const Split& split : splits_of(bits))
      all.push_back({split, FormatGrid(find_format(split.format()))});
  }
  return all;
}

Json observe(TrainTrial trial, const net::Dataset& data, const Looks& looks,
             const std::vector<Candidate>& candidates) {
  Json records = Json::array();
  trial.before = [&](const net::Product& product, std::int64_t step) {
    if (product.kind != net::GemmKind::wgrad || !looks.at(step)) return;
    Json record = look_at(product.a.source->data, candidates);
    if (record.is_null()) return;
    record["layer"] = std::string(product.layer);
    record["step"] = step;
    record["epoch"] = step / looks.steps_per_epoch;
    records.push_back(std::move(record));
  };
  const TrainOutcome outcome = run_train_trial(trial, data);
  return {{"outcome", json_of(outcome)}, {"records", records}};
}

}  // namespace numemu::experiments::lognormal_gradients
