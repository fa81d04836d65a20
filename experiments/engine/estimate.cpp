// Rates are multiply-adds per second, so that a try may end in the middle of the first sample.
#include "experiments/engine/estimate.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <vector>

#include "emu/net/multiply_adds.hpp"
#include "experiments/engine/baseline_cache.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/sweep.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/predict/listening.hpp"
#include "formats/storage/json.hpp"
#include "policies/recipe/recipe_numerics.hpp"

namespace numemu::experiments {
namespace {

/// A point also calibrates and measures on the samples of the reference, which takes as long as so
/// many passes over them: 2.7 measured on LeNet over element and block formats.
constexpr double kPassesOfReference = 3;
/// And as long as so many passes over the samples of its probes it predicts.
constexpr double kPassesOfProbes = 1.5;

/// Of the time for tries; the rest is for float32.
constexpr double kPointsShare = 0.75;

struct OutOfTime {};

/// Multiply-adds per second since `begin` of at most so many test samples, until `budget` seconds
/// have passed.
double rate_of(net::Numerics& numerics, std::int64_t samples, const net::Dataset& dataset,
               const net::Graph& graph, const std::function<double()>& clock, double begin,
               double budget) {
  std::atomic<double> macs = 0;
  Listening pilot(numerics, [&](const net::Product& p) {
    macs += net::multiply_adds(p);
    if (clock() > begin + budget) throw OutOfTime();
  });
  try {
    net::evaluate(graph, dataset, net::Split::test, std::min(samples, dataset.test_count()), pilot);
  } catch (const OutOfTime&) {
  }
  return std::max(1.0, macs / std::max(1e-9, clock() - begin));
}

/// The same under a point.
double rate_of(const Point& point, const net::Dataset& dataset, const net::Graph& graph,
               const std::function<double()>& clock, double budget) {
  const double begin = clock();
  policies::RecipeNumerics numerics(point.recipe, graph, point.where);
  numerics.freeze(graph, 1, [&](std::int64_t first, std::int64_t count) {
    std::vector<std::uint8_t> labels;
    return std::vector<net::Tensor>{dataset.calibration_batch(first, count, labels)};
  });
  return rate_of(numerics, point.eval_images, dataset, graph, clock, begin, budget);
}

double macs_of_a_sample(const net::Dataset& dataset, const net::Graph& graph) {
  std::vector<std::uint8_t> labels;
  return net::multiply_adds(graph, {dataset.calibration_batch(0, 1, labels)});
}

/// Whether the cache holds the baseline of the sweep.
bool has_baseline(const Folders& folders, const net::Dataset& dataset, const TrainedNet& trained,
                  std::int64_t images) {
  std::vector<std::uint8_t> labels;
  const policies::FloatReference reference = policies::float_reference(
      trained.graph, dataset.calibration_batch(0, reference_count(trained.graph, dataset), labels));
  return BaselineCache(folders.cache, trained, dataset, reference, images).read().has_value();
}

/// Of the workbench: reference and the baseline of `images`, all in float32.
double bench_seconds(std::int64_t images, const net::Dataset& dataset, const net::Graph& graph,
                     const std::function<double()>& clock, double budget) {
  const double reference = static_cast<double>(reference_count(graph, dataset));
  const double macs = macs_of_a_sample(dataset, graph);
  net::Numerics float32;
  // The first samples wait for threads and memory.
  rate_of(float32, dataset.test_count(), dataset, graph, clock, clock(), budget / 5);
  const double rate =
      rate_of(float32, dataset.test_count(), dataset, graph, clock, clock(), budget);
  return (reference + static_cast<double>(images)) * macs / rate;
}

/// Seconds by key; what cannot be read is not a time.
std::map<std::string, double> stored_times(const std::string& folder) {
  std::map<std::string, double> times;
  std::ifstream file(folder + "/times.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse_or_null(line);
    if (json.is_object() && json.value("key", Json()).is_string() &&
        json.value("seconds", Json()).is_number())
      times[json["key"]] = json["seconds"];
  }
  return times;
}

double measured_seconds(const std::vector<const Point*>& missing, const net::Dataset& dataset,
                        const TrainedNet& trained, const std::function<double()>& clock,
                        double budget) {
  const net::Graph& graph = trained.graph;
  const double macs = macs_of_a_sample(dataset, graph);
  const std::int64_t reference = reference_count(graph, dataset);
  const ProbePlan plan = probe_plan(macs, reference);
  std::map<std::string, std::vector<const Point*>> by_unit;  // a name or a description
  for (const Point* point : missing)
    by_unit[point->recipe.json()["gemms"]["fprop"]["unit"].dump()].push_back(point);
  const double share = budget / static_cast<double>(by_unit.size());
  double total = 0;
  for (const auto& [unit, group] : by_unit) {
    const Point& middle = *group[group.size() / 2];
    const double samples = static_cast<double>(std::min(middle.eval_images, dataset.test_count())) +
                           kPassesOfReference * static_cast<double>(reference) +
                           kPassesOfProbes * static_cast<double>(plan.probes * plan.samples);
    total += static_cast<double>(group.size()) * samples * macs /
             rate_of(middle, dataset, graph, clock, share);
  }
  return total;
}

}  // namespace

Estimate estimate_sweep(const SweepConfig& config, const Folders& folders,
                        const std::string& folder, const Shard& shard, Existing existing,
                        const std::function<double()>& clock, double budget) {
  const double begin = clock();
  const auto [dataset, trained] = load_sweep(config, folders);
  const double loading = clock() - begin;
  const std::int64_t images = std::min(config.eval_images, dataset.test_count());
  const std::set<std::string> rows =
      existing == Existing::fresh ? std::set<std::string>() : stored_keys(folder);
  const std::map<std::string, double> times = stored_times(folder);
  Estimate estimate;
  std::vector<const Point*> missing;
  double known = 0, known_points = 0;
  for (const Point* point : shard_points(config, shard)) {
    const std::string key = row_key(identify(*point, dataset, trained, images));
    if (const auto time = times.find(key); time != times.end()) {
      known += time->second;
      ++known_points;
    }
    if (!rows.contains(key)) missing.push_back(point);
    ++estimate.points;
  }
  estimate.kept = estimate.points - missing.size();
  if (known_points > 0) {
    estimate.seconds = known / known_points * static_cast<double>(missing.size());
  } else if (!missing.empty()) {
    estimate.seconds = measured_seconds(missing, dataset, trained, clock, kPointsShare * budget);
  }
  const bool kept = existing != Existing::fresh && has_baseline(folders, dataset, trained, images);
  estimate.seconds += loading + bench_seconds(kept ? 0 : images, dataset, trained.graph, clock,
                                              (1 - kPointsShare) * budget);
  return estimate;
}

}  // namespace numemu::experiments
