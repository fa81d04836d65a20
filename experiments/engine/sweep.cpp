#include "experiments/engine/sweep.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "emu/net/data/view.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/run_context.hpp"
#include "emu/net/train/score.hpp"
#include "emu/unit/tiles.hpp"
#include "experiments/engine/bench/baseline_cache.hpp"
#include "experiments/engine/bench/bench_memory.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/side_by_side.hpp"
#include "experiments/predict/accuracy.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "formats/error.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_files.hpp"
#include "policies/canonical_json.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {

namespace {

constexpr int kHistogramBins = 128;

/// Shards are run apart and merged, so they must be of one and the same sweep. An unsharded folder
/// may change its sweep: its one rows file is checked row by row.
void require_same_sweep(const std::string& text, const std::string& folder, const Shard& shard,
                        Existing existing) {
  const std::string path = folder + "/sweep.json";
  if (shard.count == 1 || existing == Existing::fresh || !std::filesystem::exists(path) ||
      !has_rows(folder))
    return;
  if (read_text(path) != text)
    throw Error(fmt::format(
        "{}: belongs to another sweep with shards in this folder; use --fresh or --out {}", path,
        fresh_folder(folder)));
}

std::string times_path(const std::string& folder) { return folder + "/times.jsonl"; }

void append_time(const std::string& path, const std::string& key, double seconds,
                 const std::string& host) {
  const Json time = {{"key", key}, {"seconds", policies::significant(seconds, 4)}, {"host", host}};
  append_text(path, time.dump() + "\n");
}

Json histogram(const std::string& layer, net::Role role, const net::Tensor& x) {
  const auto [low, high] = std::minmax_element(x.data.begin(), x.data.end());
  const double absmax = largest_magnitude(x.data.data(), x.size());
  const bool one_sided = x.size() == 0 || *low >= 0;
  const double from = one_sided ? 0 : -absmax, width = (absmax - from) / kHistogramBins;
  std::vector<std::int64_t> counts(kHistogramBins);
  for (const float value : x.data) {
    const double bin = width > 0 ? (value - from) / width : 0;
    if (std::isfinite(bin))
      ++counts[std::clamp<std::int64_t>(static_cast<std::int64_t>(bin), 0, kHistogramBins - 1)];
  }
  return {{"layer", layer},
          {"role", net::to_string(role)},
          {"n", x.size()},
          {"min", x.size() ? *low : 0.f},
          {"max", x.size() ? *high : 0.f},
          {"low", from},
          {"high", absmax},
          {"counts", counts},
          {"absmax", absmax}};
}

}  // namespace

Json tensor_histograms(const Workbench& bench) {
  Json tensors = Json::array();
  for (const net::GemmLayer& layer : net::gemm_layers(bench.trained.graph)) {
    if (layer.weight != nullptr)
      tensors.push_back(histogram(layer.name, net::Role::weight, *layer.weight));
    tensors.push_back(histogram(layer.name, net::Role::activation,
                                net::at_layer(bench.reference.inputs, layer.name)));
  }
  return {{"tensors", tensors}};
}

std::vector<const Point*> shard_points(const SweepConfig& config, const Shard& shard) {
  std::vector<const Point*> points;
  for (std::size_t i = shard.index; i < config.points.size(); i += shard.count)
    points.push_back(&config.points[i]);
  return points;
}

std::pair<net::Dataset, TrainedNet> load_sweep(const SweepConfig& config, const Folders& folders) {
  net::Dataset dataset = net::load_dataset(config.data, folders.cache);
  if (!config.calibrate_on.empty()) {
    dataset = net::calibrated_on(dataset, net::load_dataset(config.calibrate_on, folders.cache));
  }
  TrainedNet trained = load_with_data(config.net, dataset, folders);
  if (config.fold_batch_norm) fold_batch_norm(trained);
  net::scores_for(dataset, config.metrics);  // a metric that does not fit, before any work
  dataset = with_reference(std::move(dataset), trained, config.points);
  require_sweep_memory(config, dataset, trained);
  return {std::move(dataset), std::move(trained)};
}

std::int64_t require_sweep_memory(const SweepConfig& config, const net::Dataset& dataset,
                                  const TrainedNet& trained, std::int64_t at_once) {
  std::int64_t calibration = 0;
  for (const Point& point : config.points)
    calibration = std::max(calibration,
                           calibration_elements(bound_recipe(point.recipe, trained, point.where)));
  return require_bench_memory(trained.graph, baseline_graph(trained), dataset,
                              std::min(config.eval_images, dataset.test_count()), calibration,
                              std::numeric_limits<std::int64_t>::max(), at_once);
}

RowStore open_rows(const SweepConfig& config, const net::Dataset& dataset,
                   const TrainedNet& trained, const std::string& folder, const Shard& shard,
                   Existing existing) {
  if (config.points.empty()) throw Error("sweep: expected at least one point");
  const std::string text = policies::canonical_json(config.json) + "\n";
  require_same_sweep(text, folder, shard, existing);
  const std::int64_t images = std::min(config.eval_images, dataset.test_count());
  std::vector<std::string> keys;
  for (const Point* point : shard_points(config, shard)) {
    // Every mistake before the first hour of work.
    policies::RecipeNumerics(bound_recipe(point->recipe, trained, point->where));
    keys.push_back(row_key(identify(*point, dataset, trained, images)));
  }
  const std::string times = times_path(folder);
  if (std::filesystem::exists(folder)) require_replaceable(times);
  RowStore store(folder, shard, std::move(keys), existing);
  if (existing == Existing::fresh && shard.count == 1) {
    write_atomically(times, {});
    remove_losses(folder);
  }
  write_atomically(folder + "/sweep.json", {text});
  return store;
}

namespace {

/// A point on each thread where there are several for each and the memory budget holds them, else
/// one on all threads. A profile tells of one point at a time.
int points_at_once(const SweepConfig& config, const Workbench& bench, std::ptrdiff_t missing) {
  constexpr int kOfEach = 4;  // the last ones leave threads idle
  const int threads = unit::threads_here();
  if (missing < kOfEach * threads || net::RunScope::current().profile) return 1;
  try {
    require_sweep_memory(config, bench.dataset, bench.trained, threads);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
    return 1;
  }
  return threads;
}

}  // namespace

SweepSummary run_sweep(const SweepConfig& config, const Workbench& bench, RowStore& store,
                       const std::string& folder, const Shard& shard, const SweepHooks& hooks) {
  for (const std::string& damage : store.damaged()) hooks.warn(damage);
  write_atomically(folder + "/tensors.json", {tensor_histograms(bench).dump(), "\n"});

  const std::vector<const Point*> points = shard_points(config, shard);
  const std::vector<std::string>& keys = store.keys();
  PointCache cache(points.size() > 1);
  SweepSummary summary{points.size(), 0, store.kept(), store.path()};
  std::vector<char> missing;  // the store changes while points run
  for (const std::string& key : keys) missing.push_back(store.has(key) ? 0 : 1);
  struct Computed {
    Row row;
    JudgedSums judged;
    double seconds = 0;
  };
  std::mutex work_mutex;
  const auto compute = [&](std::size_t i, int at_once) -> std::optional<Computed> {
    if (missing[i] == 0) return std::nullopt;
    const double start = hooks.seconds();
    OnWork on_work;
    if (hooks.on_work) {
      on_work = [&](const WorkState& at) {
        const std::lock_guard lock(work_mutex);
        hooks.on_work(i, at);
      };
    }
    Computed made;
    made.row = run_point(*points[i], bench, cache, on_work, &made.judged);
    made.seconds = (hooks.seconds() - start) / at_once;
    return made;
  };
  const auto keep = [&](std::size_t i, std::optional<Computed> made) {
    if (made) {
      // Before the row: no row lacks its file after a kill.
      made->row.losses = write_losses(folder, keys[i], made->judged);
      store.append(keys[i], to_json(made->row).dump());
      append_time(times_path(folder), keys[i], made->seconds, hooks.host);
      ++summary.computed;
    }
    const std::lock_guard lock(work_mutex);
    if (hooks.on_point) hooks.on_point(i + 1, i + 1 - summary.computed, points.size(), *points[i]);
  };
  // The first one finds what all share, on all threads.
  const auto first = static_cast<std::size_t>(std::ranges::find(missing, 1) - missing.begin());
  const std::size_t alone = std::min(first + 1, points.size());
  for (std::size_t i = 0; i < alone; ++i) keep(i, compute(i, 1));
  const int at_once =
      points_at_once(config, bench, std::count(missing.begin() + alone, missing.end(), 1));
  if (at_once > 1) {
    side_by_side(
        points.size() - alone, at_once, [&](std::size_t k) { return compute(alone + k, at_once); },
        [&](std::size_t k, std::optional<Computed> made) { keep(alone + k, std::move(made)); });
  } else {
    for (std::size_t i = alone; i < points.size(); ++i) keep(i, compute(i, 1));
  }
  store.finish();
  return summary;
}

namespace {

/// Of the time for trials; the rest is for float32.
constexpr double kPointsShare = 0.75;
/// Of the time of a trial, how much may go into test samples, and into tensors, of which a sample
/// takes about so many times as long as in float32 when it is predicted twice and measured.
constexpr double kSamplesShare = 0.5, kTensorsShare = 0.4, kTensorsCost = 8;
/// A first trial that took at most so much of its time is made again.
constexpr double kAgainShare = 0.4;

/// Of a point by a clock that stands still: what is missing takes time.
constexpr double kShortest = 1e-9;

struct OutOfTime {};

struct Trial {
  const net::Dataset& dataset;
  const TrainedNet& trained;
  const std::function<double()>& clock;
  double macs = 0;                    ///< multiply-adds of a sample
  std::int64_t reference = 0;         ///< samples that predictions read
  double float32 = 0, pass = 0;       ///< seconds per sample: evaluated, and with all tensors kept
  policies::FloatReference few = {};  ///< of fewer samples
  double whole = 1;                   ///< elements of the reference over those of `few`
  policies::SeenTensors seen = {};    ///< by calibration, which points share
  double calibration = 0;             ///< seconds of it
};

double macs_of_a_sample(const net::Dataset& dataset, const net::Graph& graph) {
  net::Targets targets;
  return net::multiply_adds(graph, dataset.inputs_of(dataset.calibration_batch(0, 1, targets)));
}

/// Seconds per sample over at most so many test samples: each thread evaluates one, then two, four
/// and so on, since small batches cost more each, until `budget` seconds are nearly spent.
double sample_seconds(const Trial& trial, net::Numerics& numerics, std::int64_t samples,
                      double budget) {
  const std::int64_t threads = omp_get_max_threads();
  const std::int64_t most = std::min(samples, trial.dataset.test_count());
  const double begin = trial.clock();
  const auto rate = [&](std::int64_t batch) {
    const double start = trial.clock();
    std::atomic<double> macs = 0;
    net::Observing pilot(numerics, {.after = [&](const net::Step&, const net::Product& p) {
                           macs += net::multiply_adds(p);
                           if (trial.clock() > begin + budget) throw OutOfTime();
                         }});
    try {
      net::evaluate(trial.trained.graph, trial.dataset, net::Split::test,
                    std::min(most, batch * threads), pilot, {}, batch);
    } catch (const OutOfTime&) {
    }
    return (trial.clock() - start) * trial.macs / std::max(1.0, macs.load());
  };
  double seconds = rate(1);  // also prepares weights and waits for threads and memory
  for (std::int64_t batch = 1;
       batch <= net::kEvaluationBatch && 3 * (trial.clock() - begin) < 2 * budget; batch *= 2) {
    seconds = rate(batch);
    if (batch * threads >= most) break;
  }
  return seconds;
}

/// Of predictions for so many test samples, and of measuring what they predict about tensors, from
/// a reference of few samples. Setting up the probes takes time as the elements that are read do,
/// and then each probe takes its own; samples of accuracy take as long as those of probes.
double prediction_seconds(const Trial& trial, const policies::RecipeNumerics& numerics,
                          std::int64_t images) {
  const policies::BoundRecipe& recipe = numerics.bound();
  const auto scales = numerics.roles().static_scales();
  FitCache fits;  // filled once and shared by the points of a sweep
  predict_tensors(recipe, trial.few, fits, scales);
  const double begin = trial.clock();
  std::vector<TensorNoise> tensors = predict_tensors(recipe, trial.few, fits, scales);
  measure_tensors(tensors, recipe, trial.few);
  const double tensors_end = trial.clock();
  const std::int64_t few = omp_get_max_threads();
  const auto probes_seconds = [&](std::int64_t probes) {
    const double start = trial.clock();
    predict_layers(recipe, trial.few, scales, probes);
    return trial.clock() - start;
  };
  const ProbePlan plan = probe_plan(trial.macs, trial.reference);
  const double one = probes_seconds(few), two = probes_seconds(2 * few);
  const double each = std::max(0.0, two - one) / static_cast<double>(few) *
                      static_cast<double>(plan.samples) /
                      static_cast<double>(std::min(plan.samples, trial.few.samples()));
  return trial.whole * (tensors_end - begin + std::max(0.0, 2 * one - two)) +
         each * (static_cast<double>(plan.probes) +
                 static_cast<double>(predicted_samples(trial.macs, images)) /
                     static_cast<double>(std::max<std::int64_t>(1, plan.samples)));
}

/// Of a point without calibration passes, which trial.calibration gets where they are the first.
double point_seconds(Trial& trial, const Point& point, double budget) {
  const double begin = trial.clock();
  const policies::BoundRecipe recipe = bound_recipe(point.recipe, trial.trained, point.where);
  policies::RecipeNumerics numerics(recipe);
  double passes = 0;  // over the calibration samples, here one
  numerics.freeze(
      trial.trained.graph, 1,
      [&](std::int64_t first, std::int64_t count) {
        passes += static_cast<double>(count);
        net::Targets targets;
        return trial.dataset.inputs_of(trial.dataset.calibration_batch(first, count, targets));
      },
      &trial.seen);
  double seconds = trial.clock() - begin;
  const std::int64_t calibration =
      std::min(trial.dataset.calibration_count(), recipe->calibration().samples);
  trial.calibration += passes * static_cast<double>(calibration - 1) * trial.pass;
  const std::int64_t images = std::min(*point.row.eval_images, trial.dataset.test_count());
  if (makes_predictions(point)) seconds += prediction_seconds(trial, numerics, images);
  const double sample = sample_seconds(trial, numerics, images, kSamplesShare * budget);
  // The reference is compared with float32, layer by layer.
  return seconds + sample * static_cast<double>(images + trial.reference) +
         trial.float32 * static_cast<double>(trial.reference);
}

/// Whether the cache holds the baseline of the sweep.
bool has_baseline(const Folders& folders, const net::Dataset& dataset, const TrainedNet& trained,
                  std::int64_t images) {
  std::error_code error;
  if (std::filesystem::is_empty(folders.cache + "/baselines", error) || error) return false;
  const policies::FloatReference reference =
      policies::float_reference(trained.graph, reference_batch(trained.graph, dataset));
  return BaselineCache(folders.cache, trained, dataset, reference, images).read().has_value();
}

/// Times float32: the rate of test samples, then a pass that keeps all tensors of as many samples
/// as trials of `share` seconds can afford.
void try_float32(Trial& trial, double budget, double share) {
  net::Numerics float32;
  const std::int64_t all = trial.dataset.test_count();
  trial.float32 = sample_seconds(trial, float32, all, budget);
  trial.reference = reference_count(trial.trained.graph, trial.dataset);
  const double affordable = kTensorsShare * share / (kTensorsCost * trial.float32);
  const std::int64_t few = std::min(trial.reference, 1 + static_cast<std::int64_t>(affordable));
  net::Targets targets;
  net::Tensor batch = trial.dataset.calibration_batch(0, few, targets);
  const double begin = trial.clock();
  trial.few = policies::float_reference(trial.trained.graph, std::move(batch));
  trial.pass = (trial.clock() - begin) / static_cast<double>(few);
  double weights = 0, activations = 0;  // elements
  for (const net::GemmLayer& layer : net::gemm_layers(trial.trained.graph)) {
    if (layer.weight != nullptr) weights += static_cast<double>(layer.weight->size());
  }
  for (const auto& [layer, x] : trial.few.inputs) activations += static_cast<double>(x.size());
  const double more = static_cast<double>(trial.reference) / static_cast<double>(few);
  trial.whole = (weights + more * activations) / std::max(1.0, weights + activations);
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

/// Points that take about as long: the same unit, blocks or none, and scale rules, of which those
/// that search take many times as long as others.
struct Group {
  std::vector<const Point*> missing;
  std::vector<std::size_t> places;  ///< theirs in the shard
  double seconds = 0, points = 0;   ///< of those whose time is known
  double once = 0;                  ///< what the first point takes besides
};

std::string group_of(const Point& point) {
  const Json& json = point.recipe.json();
  std::string name = json["gemms"]["fprop"]["unit"].dump();  // a name or a description
  for (const char* role : {"weight", "activation"}) {
    const Json& policy = json["roles"][role];
    for (const char* key : {"granularity", "scale"})
      name += " " + (policy.is_object() ? policy[key].dump() : "float32");
  }
  return name;
}

/// One point of each unknown group is tried, then further ones until `budget` seconds have passed.
void try_groups(Trial& trial, const std::vector<Group*>& unknown, double budget, double share) {
  const double begin = trial.clock();
  for (std::size_t round = 0, tried = 1; tried > 0; ++round) {
    tried = 0;
    for (Group* const group : unknown) {
      const std::size_t n = group->missing.size();
      if (round >= n || (round > 0 && trial.clock() > begin + budget)) continue;
      // The middle one first, then on both sides of it.
      const std::size_t step = (round + 1) / 2, place = n / 2 + (round % 2 == 0 ? step : n - step);
      const Point& point = *group->missing[place % n];
      const double start = trial.clock();
      double seconds = point_seconds(trial, point, share);
      // The first one also makes tables of formats and fits that all points share: in a small
      // network several times what the point itself takes.
      if (round == 0 && trial.clock() - start < kAgainShare * share) {
        const double calibration = trial.calibration;
        const double again = std::min(seconds, point_seconds(trial, point, share));
        trial.calibration = calibration;  // counted already
        group->once = seconds - again;
        seconds = again;
      }
      group->seconds += seconds;
      ++group->points;
      ++tried;
    }
  }
}

}  // namespace

SweepEstimate estimate_sweep(const SweepConfig& config, const Folders& folders,
                             const std::string& folder, const Shard& shard, Existing existing,
                             const std::function<double()>& clock, double budget) {
  const double begin = clock();
  const auto [dataset, trained] = load_sweep(config, folders);
  const double loading = clock() - begin;
  const std::int64_t images = std::min(config.eval_images, dataset.test_count());
  const std::set<std::string> rows =
      existing == Existing::fresh ? std::set<std::string>() : stored_keys(folder);
  const std::map<std::string, double> times = stored_times(folder);
  SweepEstimate estimate;
  estimate.memory = require_sweep_memory(config, dataset, trained);
  std::map<std::string, Group> groups;
  for (const Point* point : shard_points(config, shard)) {
    const std::string key = row_key(identify(*point, dataset, trained, images));
    Group& group = groups[group_of(*point)];
    if (const auto time = times.find(key); time != times.end()) {
      group.seconds += time->second;
      ++group.points;
    }
    if (rows.contains(key)) {
      ++estimate.kept;
    } else {
      group.missing.push_back(point);
      group.places.push_back(estimate.points);
    }
    ++estimate.points;
  }
  std::vector<Group*> unknown;
  for (auto& [name, group] : groups) {
    if (group.points == 0 && !group.missing.empty()) unknown.push_back(&group);
  }
  Trial trial{dataset, trained, clock, macs_of_a_sample(dataset, trained.graph)};
  const double share = kPointsShare * budget / static_cast<double>(unknown.size() + 1);
  try_float32(trial, (1 - kPointsShare) * budget, share);
  try_groups(trial, unknown, kPointsShare * budget, share);
  const bool kept = existing != Existing::fresh && has_baseline(folders, dataset, trained, images);
  estimate.shared = loading + trial.pass * static_cast<double>(trial.reference) +
                    trial.calibration + (kept ? 0 : trial.float32 * static_cast<double>(images));
  estimate.each.resize(estimate.points);
  for (const auto& [name, group] : groups) {
    if (group.missing.empty()) continue;
    estimate.shared += group.once;
    for (const std::size_t place : group.places)
      estimate.each[place] = std::max(kShortest, group.seconds / group.points);
  }
  estimate.seconds = std::accumulate(estimate.each.begin(), estimate.each.end(), estimate.shared);
  return estimate;
}

}  // namespace numemu::experiments
