#include "experiments/search/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "experiments/engine/run_points.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/predict/version.hpp"
#include "formats/portable/math.hpp"
#include "policies/canonical_json.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {

namespace {

constexpr int kDigits = 9;
/// Probes that refine one configuration: fewer than a row's, since there are many.
constexpr std::int64_t kRefiningProbes = 8;

/// Over the signal; infinite without a figure.
double noise_of(const RefinedNoise& refined) {
  if (std::isnan(refined.db)) return HUGE_VAL;
  return portable::exp(-refined.db * portable::log(10.0) / 10);
}

/// Of each size of numbers that a unit reads, the configuration of least noise within the budget.
std::map<int, Configured> quietest(const SearchSpace& space, std::size_t u,
                                   const SearchBudget& budget) {
  const RankedUnit& unit = space.units[u];
  std::map<int, Configured> out;
  for (std::size_t w = 0; w < space.weights.options.size(); ++w) {
    if (!budget.allows(space.weights.ranks[w].bits)) continue;
    for (std::size_t a = 0; a < space.activations.options.size(); ++a) {
      if (!unit.takes(w, a) || !budget.allows(space.activations.ranks[a].bits)) continue;
      const double noise = space.weights.ranks[w].noise + space.activations.ranks[a].noise;
      if (!std::isfinite(noise)) continue;
      const int size = unit.size_of(space.weights.options[w], space.activations.options[a]);
      const auto [found, added] = out.try_emplace(size, Configured{w, a, noise, 0, 0, u});
      if (noise < found->second.noise) found->second = {w, a, noise, 0, 0, u};
    }
  }
  return out;
}

}  // namespace

double search_db(double noise) { return noise > 0 ? -10 * portable::log10(noise) : HUGE_VAL; }

void refine(const ExperimentRun& run, const Workbench& bench, std::vector<SearchEntry>& entries) {
  std::vector<TypedTrial<RefinedNoise>> trials;
  for (const SearchEntry& entry : entries) {
    const policies::Recipe recipe = policies::Recipe::parse(entry.recipe, "search");
    Json point = {{"refined", kRefiningProbes},       {"prediction", kPredictionVersion},
                  {"recipe", recipe.json()},          {"data", bench.dataset.name()},
                  {"images", bench.dataset.digest()}, {"samples", bench.reference.samples()}};
    identify(point, bench.trained);
    trials.push_back({std::move(point), entry.name, [&bench, recipe] {
                        const LayerPrediction p =
                            predict_layers(bound_recipe(recipe, bench.trained, "search"),
                                           bench.reference, {}, kRefiningProbes);
                        return RefinedNoise{policies::significant(p.output.db, kDigits),
                                            policies::significant(p.output.gained_db, kDigits),
                                            policies::significant(p.output_error, kDigits)};
                      }});
  }
  const std::vector<RefinedNoise> refined = run_typed(run, std::move(trials));
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i].refined = refined[i];
}

std::vector<std::string> add_unit_noise(const ExperimentRun& run, const Workbench& bench,
                                        SearchSpace& space, const SearchBudget& budget) {
  std::vector<std::string> notes;
  std::vector<SearchEntry> entries;  // pairs: on the unit, and in float32
  std::vector<std::pair<RankedUnit*, int>> of;
  for (std::size_t u = 0; u < space.units.size(); ++u) {
    RankedUnit& unit = space.units[u];
    if (unit.name.empty() || !unit_adds_noise(unit::find_unit(unit.name).row().name)) continue;
    for (const auto& [size, configured] : quietest(space, u, budget)) {
      of.emplace_back(&unit, size);
      entries.push_back(space.entry(configured));
      entries.push_back(entries.back());
      entries.back().recipe.erase("gemms");
    }
  }
  if (entries.empty()) return notes;
  run.say(fmt::format("noise of units, by {} configurations", entries.size()));
  refine(run, bench, entries);
  for (std::size_t i = 0; i < of.size(); ++i) {
    const double with = noise_of(entries[2 * i].refined),
                 without = noise_of(entries[2 * i + 1].refined);
    // Without a figure of the configuration in float32 nothing is known of the unit.
    of[i].first->noise[of[i].second] =
        std::isfinite(without) ? std::max(0.0, with - without) : HUGE_VAL;
  }
  for (const RankedUnit& unit : space.units) {
    const auto none = std::ranges::count_if(
        unit.noise, [](const auto& size) { return !std::isfinite(size.second); });
    if (none > 0)
      notes.push_back(fmt::format(
          "What {} adds to the noise has no figure at {} of {} sizes of numbers: configurations of "
          "these are not among the best.",
          unit.name, none, unit.noise.size()));
  }
  return notes;
}

std::vector<SearchEntry> entries_of(const SearchSpace& space, const SearchRanking& ranking,
                                    std::size_t count, Along along) {
  std::vector<SearchEntry> out;
  std::set<std::tuple<std::size_t, std::size_t, std::size_t>> seen;
  const auto add = [&](const Configured& c, bool random) {
    if (!seen.emplace(c.weight, c.activation, c.unit).second) return;
    out.push_back(space.entry(c));
    out.back().random = random;
  };
  for (const Configured& c : ranking.random) add(c, true);
  for (const Configured& c : evenly(ranking.front, along == Along::front ? count : (count + 1) / 2))
    add(c, false);
  for (const Configured& c : ranking.best) {
    if (out.size() >= count + ranking.random.size()) break;
    add(c, false);
  }
  return out;
}

bool quieter(const SearchEntry& a, const SearchEntry& b) {
  const auto of = [](const SearchEntry& e) {
    return std::isnan(e.refined.db) ? -HUGE_VAL : e.refined.db;
  };
  return std::tuple(-of(a), a.configured.bits, a.configured.mac) <
         std::tuple(-of(b), b.configured.bits, b.configured.mac);
}

std::vector<SearchEntry> to_measure(const std::vector<SearchEntry>& refined, std::size_t count,
                                    std::size_t units, Along along) {
  std::vector<const SearchEntry*> best;
  for (const SearchEntry& e : refined)
    if (!e.random) best.push_back(&e);
  const auto undercut = [&](const SearchEntry& e) {
    return std::ranges::any_of(best, [&](const SearchEntry* other) {
      const Configured &its = other->configured, &own = e.configured;
      return its.bits <= own.bits && its.mac <= own.mac && other->refined.db >= e.refined.db &&
             (its.bits < own.bits || its.mac < own.mac || other->refined.db > e.refined.db);
    });
  };
  std::set<const SearchEntry*> chosen;
  const auto choose = [&](const std::vector<const SearchEntry*>& from, std::size_t most) {
    for (const SearchEntry* const e : from)
      if (chosen.size() < most) chosen.insert(e);
  };
  const bool whole_front = along == Along::front;
  choose(best, whole_front ? std::min<std::size_t>(1, count) : units > 1 ? (count + 1) / 2 : count);
  std::vector<const SearchEntry*>
      front;  // besides those, and where something is left of the signal
  for (const SearchEntry* const e : best)
    if (!chosen.contains(e) && e->refined.db > 0 && !undercut(*e)) front.push_back(e);
  std::ranges::stable_sort(front, {}, [&](const SearchEntry* e) {
    return whole_front ? e->configured.bits : e->configured.mac;
  });
  choose(evenly(front, count - chosen.size()), count);
  choose(best, count);
  std::vector<SearchEntry> out;
  for (const SearchEntry& e : refined)
    if (e.random || chosen.contains(&e)) out.push_back(e);
  return out;
}

std::vector<Row> measure(const ExperimentRun& run, const Workbench& bench,
                         const std::vector<SearchEntry>& entries) {
  BuiltSweep built{.experiment = "search",
                   .net = run.settings.text("net"),
                   .data = run.settings.text("data"),
                   .images = bench.eval_images};
  for (const SearchEntry& entry : entries)
    built.points.push_back({.settings = {{"recipe", entry.recipe}}, .name = entry.name});
  PointRun points(run, built, run.out);
  points.open(bench.dataset, bench.trained);
  return points.rows(bench);
}

}  // namespace numemu::experiments
