// A try may end in the middle of the first sample, so multiply-adds measure how far it came.
#include "experiments/engine/estimate.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "emu/net/multiply_adds.hpp"
#include "experiments/engine/baseline_cache.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/sweep.hpp"
#include "experiments/predict/listening.hpp"
#include "formats/storage/json.hpp"
#include "policies/recipe/recipe_numerics.hpp"

namespace numemu::experiments {
namespace {

/// Of the time for tries; the rest is for float32.
constexpr double kPointsShare = 0.75;

struct OutOfTime {};

struct Trial {
  const net::Dataset& dataset;
  const net::Graph& graph;
  const std::function<double()>& clock;
  double macs;  ///< multiply-adds of a sample
};

double macs_of_a_sample(const net::Dataset& dataset, const net::Graph& graph) {
  std::vector<std::uint8_t> labels;
  return net::multiply_adds(graph, {dataset.calibration_batch(0, 1, labels)});
}

/// Seconds per sample over at most so many test samples, until `budget` seconds have passed.
double sample_seconds(const Trial& trial, net::Numerics& numerics, std::int64_t samples,
                      double budget) {
  const double begin = trial.clock();
  std::atomic<double> macs = 0;
  Listening pilot(numerics, [&](const net::Product& p) {
    macs += net::multiply_adds(p);
    if (trial.clock() > begin + budget) throw OutOfTime();
  });
  try {
    net::evaluate(trial.graph, trial.dataset, net::Split::test,
                  std::min(samples, trial.dataset.test_count()), pilot);
  } catch (const OutOfTime&) {
  }
  return (trial.clock() - begin) * trial.macs / std::max(1.0, macs.load());
}

/// Of a point: setting up once, its predictions in float32, and all else under the point, whose
/// test samples are tried.
double point_seconds(const Trial& trial, const Point& point, double float32, double budget) {
  const net::Graph& graph = trial.graph;
  const double begin = trial.clock();
  policies::RecipeNumerics numerics(point.recipe, graph, point.where);
  numerics.freeze(graph, 1, [&](std::int64_t first, std::int64_t count) {
    std::vector<std::uint8_t> labels;
    return std::vector<net::Tensor>{trial.dataset.calibration_batch(first, count, labels)};
  });
  const double setting_up = trial.clock() - begin;
  const std::int64_t images = std::min(point.eval_images, trial.dataset.test_count());
  const std::int64_t reference = reference_count(graph, trial.dataset);
  const double measuring = point_cost(images, reference, false);
  const double predicting = point_cost(images, reference, makes_predictions(point)) - measuring;
  const double sample = sample_seconds(trial, numerics, images, budget);
  return setting_up + predicting * float32 + measuring / evaluation_cost(1) * sample;
}

/// Whether the cache holds the baseline of the sweep.
bool has_baseline(const Folders& folders, const net::Dataset& dataset, const TrainedNet& trained,
                  std::int64_t images) {
  std::error_code error;
  if (std::filesystem::is_empty(folders.cache + "/baselines", error) || error) return false;
  std::vector<std::uint8_t> labels;
  const policies::FloatReference reference = policies::float_reference(
      trained.graph, dataset.calibration_batch(0, reference_count(trained.graph, dataset), labels));
  return BaselineCache(folders.cache, trained, dataset, reference, images).read().has_value();
}

/// Seconds per sample in float32.
double float32_seconds(const Trial& trial, double budget) {
  net::Numerics float32;
  // The first samples wait for threads and memory.
  sample_seconds(trial, float32, trial.dataset.test_count(), budget / 5);
  return sample_seconds(trial, float32, trial.dataset.test_count(), budget);
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

double measured_seconds(const Trial& trial, const std::vector<const Point*>& missing,
                        double float32, double budget) {
  std::map<std::string, std::vector<const Point*>> by_unit;  // a name or a description
  for (const Point* point : missing)
    by_unit[point->recipe.json()["gemms"]["fprop"]["unit"].dump()].push_back(point);
  const double share = budget / static_cast<double>(by_unit.size());
  double total = 0;
  for (const auto& [unit, group] : by_unit) {
    total += static_cast<double>(group.size()) *
             point_seconds(trial, *group[group.size() / 2], float32, share);
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
  const Trial trial{dataset, trained.graph, clock, macs_of_a_sample(dataset, trained.graph)};
  const double float32 = float32_seconds(trial, (1 - kPointsShare) * budget);
  if (known_points > 0) {
    estimate.seconds = known / known_points * static_cast<double>(missing.size());
  } else if (!missing.empty()) {
    estimate.seconds = measured_seconds(trial, missing, float32, kPointsShare * budget);
  }
  const bool kept = existing != Existing::fresh && has_baseline(folders, dataset, trained, images);
  estimate.seconds +=
      loading + float32 * bench_cost(kept ? 0 : images, reference_count(trained.graph, dataset));
  return estimate;
}

}  // namespace numemu::experiments
