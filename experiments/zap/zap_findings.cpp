// Judges shares with intervals, exact identities, and the aim.
#include "experiments/zap/zap_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "emu/stats/holm.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/paired_claims.hpp"
#include "formats/portable/math.hpp"
#include "policies/zap/position_mask.hpp"

namespace numemu::experiments {
namespace {

void bound_shares(const ZapResults& results, const Json& layer, const std::string& where,
                  Judged& shares) {
  const Json &seen = layer["bound_seen"], &bound = layer["bound"];
  const double error = portable::hypot(seen["error"].get<double>(), bound["error"].get<double>());
  shares.add("bound on the saving of " + where + ": zeros among what is predicted", seen["value"],
             bound["value"], error, kZapShareHolds);
  const Json& random = layer["random"];
  const double rest = 1 - policies::mask_share(results.mask).value();
  shares.add("error of a random predictor in " + where, random["rate"].get<double>() * rest,
             random["measured"]["value"], random["measured"]["error"], kZapShareHolds);
}

void layer_shares(const ZapResults& results, std::size_t l, bool first, Judged& shares) {
  const Json& trial = results.seeds.front();
  const Json& layer = trial["layers"][l];
  const std::string where =
      fmt::format("{}, mask {}", layer["layer"].get<std::string>(), results.mask);
  if (first) bound_shares(results, layer, where, shares);
  for (std::size_t i = 0; i < layer["chosen_errors"].size(); ++i) {
    const Json& error = layer["chosen_errors"][i];
    shares.add(fmt::format("error of {}, at threshold {:.2f} ({} layers, budget {})", where,
                           error["threshold"].get<double>(), results.layers,
                           trial["chosen"][i]["budget"].get<double>()),
               error["predicted"], error["measured"]["value"], error["measured"]["error"],
               kZapShareHolds);
  }
}

/// Null where it was not done.
const AccuracyChange* change_under(const ZapSummary& at, ZapCare care) {
  switch (care) {
    case ZapCare::none:
      return &at.zap;
    case ZapCare::recalibrated:
      return at.has_recalibrated ? &at.recalibrated : nullptr;
    case ZapCare::finetuned:
      return at.has_finetuned ? &at.finetuned : nullptr;
  }
  return nullptr;
}

template <class Use>
void for_each_point(const std::vector<ZapResults>& all, ZapCare care, const Use& use) {
  for (const ZapResults& results : all)
    for (const char* list : {"points", "chosen"})
      for (std::size_t i = 0; i < results.seeds.front()[list].size(); ++i) {
        const ZapSummary at = summarize(results, list, i);
        const AccuracyChange* const change = change_under(at, care);
        if (change != nullptr) use(ZapBest{&results, at, *change});
      }
}

/// That the true loss is at least kZapLoss: one-sided, by the score that gives the interval its
/// ends.
double p_of_loss(const AccuracyChange& change) { return tails(change.answers, -kZapLoss).above; }

/// Whether a point saves enough for less than kZapLoss is tested at every point, so that the best
/// of many must pass Holm's procedure over all of them; what saves too little cannot pass. One
/// point alone passes where its interval ends below. It fails where none saves enough for less on
/// average. The finding reports the largest saving of a point that passes, else on average.
Finding aim_under(const std::vector<ZapResults>& all, ZapCare care) {
  constexpr double kLevel = 0.025;  // one end of an interval of 95 %
  std::vector<ZapBest> points;
  std::vector<double> p_values;
  for_each_point(all, care, [&](const ZapBest& point) {
    points.push_back(point);
    p_values.push_back(point.at.saving < kZapSaving ? 1 : p_of_loss(point.change));
  });
  const std::vector<bool> passes = stats::holm(p_values, kLevel);
  ZapBest told = best_of(all, care);
  const bool reached = told.of != nullptr && told.at.saving >= kZapSaving;
  bool passed = false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!passes[i]) continue;
    if (!passed || points[i].at.saving > told.at.saving) told = points[i];
    passed = true;
  }
  return {fmt::format("share of the convolutions' multiply-adds saved (mean over seeds) for less "
                      "than {} points, {}, at least",
                      100 * kZapLoss, to_string(care)),
          kZapSaving,
          told.at.saving,
          told.at.least_saving,
          told.at.largest_saving,
          decide(passed, !reached)};
}

/// Tallies whose predicted activations are not the sum of hits and misses.
std::int64_t broken_identities(const std::vector<ZapResults>& all) {
  std::int64_t broken = 0;
  for (const ZapResults& results : all)
    for (const Json& trial : results.seeds)
      for (const char* list : {"points", "chosen"})
        for (const Json& point : trial[list])
          for (const Json& tally : point["layers"]) {
            std::int64_t sum = 0;
            for (const char* key : {"zeros_skipped", "losses", "values_kept", "zeros_kept"})
              sum += tally[key].get<std::int64_t>();
            broken += sum != tally["predicted"].get<std::int64_t>();
          }
  return broken;
}

}  // namespace

std::string to_string(ZapCare care) {
  switch (care) {
    case ZapCare::none:
      return "the network as it is";
    case ZapCare::recalibrated:
      return "statistics estimated anew";
    case ZapCare::finetuned:
      return "fine-tuning";
  }
  return "";
}

std::vector<ZapCare> cares_of(const std::vector<ZapResults>& all) {
  std::vector<ZapCare> cares;
  for (const ZapCare care : {ZapCare::none, ZapCare::recalibrated, ZapCare::finetuned}) {
    bool done = false;
    for_each_point(all, care, [&](const ZapBest&) { done = true; });
    if (done) cares.push_back(care);
  }
  return cares;
}

ZapBest best_of(const std::vector<ZapResults>& all, ZapCare care) {
  ZapBest best;
  for_each_point(all, care, [&](const ZapBest& point) {
    if (-point.change.value >= kZapLoss) return;
    if (best.of == nullptr || point.at.saving > best.at.saving) best = point;
  });
  return best;
}

std::vector<Finding> zap_findings(const std::vector<ZapResults>& all) {
  Judged shares;
  std::set<std::pair<int, std::string>> seen;
  double worst_fit = 0, none = 0, limit = 0;
  for (const ZapResults& results : all) {
    const Json& layers = results.seeds.front()["layers"];
    // With "inner" and "all" some layers are there twice; their thresholds differ.
    for (std::size_t l = 0; l < layers.size(); ++l)
      layer_shares(results, l, seen.emplace(results.mask, layers[l]["layer"]).second, shares);
    for (const Json& trial : results.seeds)
      for (const Json& layer : trial["layers"]) {
        const Json& limits = layer["limits"];
        worst_fit = std::max(worst_fit, layer["error_fit"]["rms"].get<double>());
        none = std::max(none, limits["none"].get<double>());
        limit = std::max(limit,
                         std::fabs(limits["all"].get<double>() - limits["expected"].get<double>()));
      }
  }
  Conclusion conclusion;
  conclusion.findings = shares.findings();
  conclusion.about("shares");
  const auto broken = static_cast<double>(broken_identities(all));
  std::vector<Finding>& findings = conclusion.findings;
  findings.push_back(
      self_check("tallies whose hits and misses do not add up", 0, broken, broken == 0));
  findings.push_back(self_check("error where nothing is skipped", 0, none, none == 0));
  // Three float64 sums over leaves of 64 terms and at most 40 levels of halves.
  constexpr double kRounding = 3 * (64 + 40) * 0x1p-53;
  findings.push_back(self_check("error where all predictions say zero, less 1 - sum(I_s) / sum", 0,
                                limit, limit <= kRounding));
  findings.push_back(exact_finding("largest residual (RMS) of a logistic error curve, at most",
                                   kZapFitHolds, worst_fit, worst_fit <= kZapFitHolds));
  conclusion.about("curves");
  for (const ZapCare care : cares_of(all)) findings.push_back(aim_under(all, care));
  conclusion.about("saving");
  return findings;
}

}  // namespace numemu::experiments
