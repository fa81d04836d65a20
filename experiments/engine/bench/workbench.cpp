#include "experiments/engine/bench/workbench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/data/view.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/train/evaluate.hpp"
#include "experiments/engine/bench/baseline_cache.hpp"
#include "experiments/engine/bench/bench_memory.hpp"
#include "experiments/predict/accuracy.hpp"
#include "experiments/predict/fitted_noise.hpp"
#include "formats/error.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {

namespace {

policies::FloatReference float32_reference(const TrainedNet& trained, const net::Dataset& dataset,
                                           std::int64_t images, const BenchOptions& options,
                                           std::set<std::int64_t>& odd) {
  require_bench_memory(trained.graph, baseline_graph(trained), dataset, images);
  net::Tensor batch = reference_batch(trained.graph, dataset, &odd);
  const std::int64_t count = batch.dim(0);
  Work work(options.on_work, bench_cost(images, count));
  work.begin("float32 reference", static_cast<double>(count));
  return policies::float_reference(trained.graph, std::move(batch));
}

net::Evaluation float32_baseline(const Workbench& bench, const BenchOptions& options) {
  const std::int64_t before = bench.reference.samples();
  Work work(options.on_work, bench_cost(bench.eval_images, before), static_cast<double>(before));
  work.begin("float32 baseline", static_cast<double>(bench.eval_images));
  const BaselineCache cache(options.cache, bench.trained, bench.dataset, bench.reference,
                            bench.eval_images);
  // The cache has no tables of scores but those of predictions.
  const bool targets = bench.dataset.target() != net::TargetKind::none;
  const bool kept_whole = bench.scores.empty() && targets;
  if (!options.fresh && kept_whole) {
    if (std::optional<net::Evaluation> kept = cache.read()) {
      work.skip();
      return std::move(*kept);
    }
  }
  net::Observing counted({.stepped = [&](std::int64_t n) { work.add(n, bench.eval_images); }});
  std::vector<net::OutputScore> scores = bench.scores;
  for (const net::OutputScore& score : float32_scores(bench.dataset)) scores.push_back(score);
  net::Evaluation baseline = net::evaluate(baseline_graph(bench.trained), bench.dataset,
                                           net::Split::test, bench.eval_images, counted, scores);
  if (kept_whole) cache.write(baseline);
  return baseline;
}

}  // namespace

policies::CalibrationBatch calibration_of(const net::Dataset& dataset) {
  return [&dataset](std::int64_t first, std::int64_t count) {
    net::Targets targets;
    return dataset.inputs_of(dataset.calibration_batch(first, count, targets));
  };
}

void freeze(policies::RecipeNumerics& numerics, const net::Graph& graph,
            const net::Dataset& dataset) {
  numerics.freeze(graph, dataset.calibration_count(), calibration_of(dataset));
}

void throw_no_calibration(const net::Dataset& dataset) {
  const std::string& name = dataset.name();
  const char* apart = name == "images" ? "calibration=N after the path takes N images out of it"
                      : name == "npy"  ? "test=N after the path tests the last N alone, and "
                                         "calibration=N of the others calibrate"
                                       : "leave out test=all, or have training samples";
  throw Error(fmt::format(
      "data set {}: expected samples to calibrate with, all are of the test: {}, or give others by "
      "--calibrate-on SET",
      name, apart));
}

std::int64_t reference_count(const net::Graph& graph, const net::Dataset& dataset) {
  if (dataset.calibration_count() == 0) throw_no_calibration(dataset);
  net::Targets targets;
  std::int64_t elements = 0;  // of one sample, that products read and give
  net::Observing numerics({.before = [&](const net::Step&, const net::Product& p) {
    elements += p.a.source->size() + p.d_stack.count() * p.m * p.n;
  }});
  net::forward(graph, dataset.calibration_batch(0, 1, targets), numerics);
  return std::clamp<std::int64_t>(most_samples(elements), 1, dataset.calibration_count());
}

net::Tensor reference_batch(const net::Graph& graph, const net::Dataset& dataset,
                            std::set<std::int64_t>* odd) {
  const std::int64_t count = reference_count(graph, dataset);
  net::Targets targets;
  net::Tensor batch = dataset.calibration_batch(0, count, targets);
  if (keep_finite(batch, odd) == 0)
    throw Error(
        fmt::format("data set {}: expected finite numbers in one of the first {} calibration "
                    "samples at least, all hold NaN or infinite ones",
                    dataset.name(), count));
  return batch;
}

std::vector<std::int64_t> odd_samples_of(const net::Tensor& batch) {
  const std::int64_t count = batch.dim(0), each = batch.size() / std::max<std::int64_t>(1, count);
  std::vector<std::int64_t> odd;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const x = batch.data.data() + i * each;
    if (!std::all_of(x, x + each, [](float v) { return std::isfinite(v); })) odd.push_back(i);
  }
  return odd;
}

std::int64_t keep_finite(net::Tensor& batch, std::set<std::int64_t>* odd) {
  const std::vector<std::int64_t> dropped = odd_samples_of(batch);
  if (odd != nullptr) odd->insert(dropped.begin(), dropped.end());
  const std::int64_t count = batch.dim(0), each = batch.size() / std::max<std::int64_t>(1, count);
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::ranges::binary_search(dropped, i)) continue;
    const auto from = batch.data.begin() + i * each;
    if (kept < i) std::copy_n(from, each, batch.data.begin() + kept * each);
    ++kept;
  }
  batch.shape[0] = kept;
  batch.data.resize(static_cast<std::size_t>(kept * each));
  return kept;
}

Workbench::Workbench(net::Dataset set, TrainedNet net, std::int64_t images,
                     const BenchOptions& options)
    : dataset(std::move(set)),
      trained(std::move(net)),
      scores(net::scores_for(
          dataset, options.metrics.empty() ? net::default_scores(dataset) : options.metrics)),
      eval_images(std::min(images, dataset.test_count())),
      reference(float32_reference(trained, dataset, eval_images, options, odd_samples)),
      baseline(float32_baseline(*this, options)) {}

PointCache::PointCache(bool several)
    : fits_(std::make_unique<FitCache>()),
      calibrations_(several ? std::make_unique<policies::SeenTensors>() : nullptr) {}

PointCache::~PointCache() = default;

const AccuracyReference* PointCache::accuracy(const Workbench& bench) {
  std::call_once(accuracy_once_, [&] {
    auto made = accuracy_reference(baseline_graph(bench.trained), bench.dataset, bench.scores,
                                   bench.baseline);
    if (made) accuracy_ = std::make_unique<AccuracyReference>(std::move(*made));
  });
  return accuracy_.get();
}

void PointCache::add_odd_sample(std::int64_t sample) {
  const std::lock_guard lock(mutex_);
  odd_samples_.insert(sample);
}

std::set<std::int64_t> PointCache::odd_samples() const {
  const std::lock_guard lock(mutex_);
  return odd_samples_;
}

}  // namespace numemu::experiments
