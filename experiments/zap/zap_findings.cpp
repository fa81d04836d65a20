// Judges shares with intervals, exact identities, and the aim.
#include "experiments/zap/zap_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "emu/stats/holm.hpp"
#include "policies/zap/position_mask.hpp"

namespace numemu::experiments {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNormal95 = 1.959964;

/// Shares are judged together.
class Shares {
 public:
  void add(std::string what, double predicted, double measured, double error) {
    findings_.push_back({std::move(what), predicted, measured, measured - kNormal95 * error,
                         measured + kNormal95 * error, ""});
    const double beyond = std::fabs(predicted - measured) - kZapShareHolds;
    p_values_.push_back(beyond <= 0 ? 1 : error > 0 ? stats::normal_tail(beyond / error) : 0);
  }
  std::vector<Finding> judged() {
    const std::vector<bool> rejected = stats::holm(p_values_);
    for (std::size_t i = 0; i < findings_.size(); ++i) {
      Finding& finding = findings_[i];
      const double distance = std::fabs(finding.predicted - finding.measured);
      finding.verdict = distance <= kZapShareHolds ? "holds" : rejected[i] ? "fails" : "undecided";
    }
    return findings_;
  }

 private:
  std::vector<Finding> findings_;
  std::vector<double> p_values_;
};

Finding exact(std::string what, double predicted, double measured, bool holds) {
  return {std::move(what), predicted, measured, measured, measured, holds ? "holds" : "fails"};
}

void bound_shares(const ZapResults& results, const Json& layer, const std::string& where,
                  Shares& shares) {
  const Json &seen = layer["bound_seen"], &bound = layer["bound"];
  const double error = std::hypot(seen["error"].get<double>(), bound["error"].get<double>());
  shares.add("bound on the saving of " + where + ": zeros among what is predicted", seen["value"],
             bound["value"], error);
  const Json& random = layer["random"];
  const double rest = 1 - policies::mask_share(results.mask).value();
  shares.add("error of a random predictor in " + where, random["rate"].get<double>() * rest,
             random["measured"]["value"], random["measured"]["error"]);
}

void layer_shares(const ZapResults& results, std::size_t l, bool first, Shares& shares) {
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
               error["predicted"], error["measured"]["value"], error["measured"]["error"]);
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

/// Holds where a point that saves enough loses less even at the end of its interval; the largest
/// saving of such a point is the one that is told.
Finding aim_under(const std::vector<ZapResults>& all, ZapCare care) {
  ZapBest told = best_of(all, care);
  const bool reached = told.of != nullptr && told.at.saving >= kZapSaving;
  std::string verdict = reached ? "undecided" : "fails";
  for_each_point(all, care, [&](const ZapBest& point) {
    if (point.at.saving < kZapSaving || -point.change.low >= kZapLoss) return;
    if (verdict != "holds" || point.at.saving > told.at.saving) told = point;
    verdict = "holds";
  });
  return {fmt::format("share of multiply-adds saved for less than {} points, {}, at least",
                      100 * kZapLoss, to_string(care)),
          kZapSaving,
          told.at.saving,
          told.at.least_saving,
          told.at.largest_saving,
          verdict};
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
  Shares shares;
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
  std::vector<Finding> findings = shares.judged();
  const auto broken = static_cast<double>(broken_identities(all));
  findings.push_back(exact("tallies whose hits and misses do not add up", 0, broken, broken == 0));
  findings.push_back(exact("error where nothing is skipped", 0, none, none == 0));
  // Three float64 sums over leaves of 64 terms and at most 40 levels of halves.
  constexpr double kRounding = 3 * (64 + 40) * 0x1p-53;
  findings.push_back(exact("error where all predictions say zero, less 1 - sum(I_s) / sum", 0,
                           limit, limit <= kRounding));
  findings.push_back(exact("largest residual (RMS) of a logistic error curve, at most",
                           kZapFitHolds, worst_fit, worst_fit <= kZapFitHolds));
  for (const ZapCare care : cares_of(all)) findings.push_back(aim_under(all, care));
  return findings;
}

}  // namespace numemu::experiments
