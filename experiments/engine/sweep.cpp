#include "experiments/engine/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "emu/net/data/view.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/train/score.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/workbench.hpp"
#include "formats/error.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/storage/atomic_file.hpp"
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
                                  const TrainedNet& trained) {
  std::int64_t calibration = 0;
  for (const Point& point : config.points)
    calibration = std::max(calibration,
                           calibration_elements(bound_recipe(point.recipe, trained, point.where)));
  return require_bench_memory(trained.graph, baseline_graph(trained), dataset,
                              std::min(config.eval_images, dataset.test_count()), calibration);
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

SweepSummary run_sweep(const SweepConfig& config, const Workbench& bench, RowStore& store,
                       const std::string& folder, const Shard& shard, const SweepHooks& hooks) {
  for (const std::string& damage : store.damaged()) hooks.warn(damage);
  write_atomically(folder + "/tensors.json", {tensor_histograms(bench).dump(), "\n"});

  const std::vector<const Point*> points = shard_points(config, shard);
  const std::vector<std::string>& keys = store.keys();
  PointCache cache(points.size() > 1);
  SweepSummary summary{points.size(), 0, store.kept(), store.path()};
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!store.has(keys[i])) {
      const double start = hooks.seconds();
      JudgedSums judged;
      Row row = run_point(*points[i], bench, cache, hooks.on_work, &judged);
      // Before the row: no row lacks its file after a kill.
      row.losses = write_losses(folder, keys[i], judged);
      store.append(keys[i], to_json(row).dump());
      append_time(times_path(folder), keys[i], hooks.seconds() - start, hooks.host);
      ++summary.computed;
    }
    if (hooks.on_point) hooks.on_point(i + 1, i + 1 - summary.computed, points.size(), *points[i]);
  }
  store.finish();
  return summary;
}

}  // namespace numemu::experiments
