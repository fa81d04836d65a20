#include "experiments/engine/workbench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "experiments/engine/baseline_cache.hpp"
#include "experiments/engine/bench_memory.hpp"
#include "experiments/predict/listening.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::experiments {
namespace {

/// Activations of one sample that products read and give.
class Activations : public net::Numerics {
 public:
  void product(const net::Step& step, const net::Product& p) override {
    elements += p.a.source->size() + p.d_stack.count() * p.m * p.n;
    net::Numerics::product(step, p);
  }
  std::int64_t elements = 0;
};

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
  const bool kept_whole = bench.scores.empty();  // the cache has no tables of scores
  if (!options.fresh && kept_whole) {
    if (std::optional<net::Evaluation> kept = cache.read()) {
      work.skip();
      return std::move(*kept);
    }
  }
  net::Numerics float32;
  Listening counted(float32, {}, [&](std::int64_t n) { work.add(n, bench.eval_images); });
  net::Evaluation baseline =
      net::evaluate(baseline_graph(bench.trained), bench.dataset, net::Split::test,
                    bench.eval_images, counted, bench.scores);
  if (kept_whole) cache.write(baseline);
  return baseline;
}

}  // namespace

TrainedNet load_trained_net(const std::string& name, const net::Dataset& dataset,
                            const Folders& folders) {
  const auto described = [](net::LoadedNetwork network, const std::string& path) {
    TrainedNet trained{std::move(network.graph), path, ""};
    trained.before = std::move(network.before);
    if (!network.onnx.empty()) trained.source = sha256_hex(network.onnx);
    trained.digest = net::digest_of(trained.graph);
    return trained;
  };
  if (net::names_onnx_file(name)) return described(net::load_network(name, dataset), name);
  std::string path = name, architecture;
  if (const std::size_t equals = name.find('='); equals != std::string::npos) {
    architecture = name.substr(0, equals);
    path = name.substr(equals + 1);
  }
  const bool file = path.ends_with(".safetensors") || path.ends_with(".npz");
  if (!file) {
    const std::vector<std::string> known = net::net_names();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error("expected a network or a .safetensors, .npz or .onnx file: " +
                  unknown_name("network", name, known));
    }
    path = fmt::format("{}/{}-{}.safetensors", folders.data, name, dataset.name());
    if (!std::filesystem::exists(path)) {
      throw Error(
          fmt::format("numemu ships no trained {} for {}; train one with `numemu train --net {} "
                      "--data ... --out DIR` and "
                      "give its .safetensors file as the network",
                      name, dataset.name(), name));
    }
    architecture = name;
  }
  const net::Checkpoint checkpoint = net::read_weights(path);
  if (architecture.empty()) return described(net::network_of(checkpoint, path, dataset), path);
  net::Graph graph = net::build_net(architecture, dataset);
  net::load_parameters(graph, checkpoint, path);
  return described({std::move(graph), true}, path);
}

const net::Graph& baseline_graph(const TrainedNet& trained) {
  return trained.before ? *trained.before : trained.graph;
}

void fold_batch_norm(TrainedNet& trained) {
  net::fold_batch_norm(trained.graph);
  if (trained.before) net::fold_batch_norm(*trained.before);
  trained.digest = net::digest_of(trained.graph);
}

policies::CalibrationBatch calibration_of(const net::Dataset& dataset) {
  return [&dataset](std::int64_t first, std::int64_t count) {
    net::Targets targets;
    return std::vector<net::Tensor>{dataset.calibration_batch(first, count, targets)};
  };
}

void freeze(policies::RecipeNumerics& numerics, const net::Graph& graph,
            const net::Dataset& dataset) {
  numerics.freeze(graph, dataset.calibration_count(), calibration_of(dataset));
}

std::string_view text_unit(const net::Dataset& dataset) {
  return dataset.name() == "tokens" ? "token" : "character";
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
  Activations one;
  net::forward(graph, dataset.calibration_batch(0, 1, targets), one);
  return std::clamp<std::int64_t>(most_samples(one.elements), 1, dataset.calibration_count());
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

std::int64_t keep_finite(net::Tensor& batch, std::set<std::int64_t>* odd) {
  const std::int64_t count = batch.dim(0), each = batch.size() / std::max<std::int64_t>(1, count);
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto from = batch.data.begin() + i * each;
    if (std::all_of(from, from + each, [](float x) { return std::isfinite(x); })) {
      if (kept < i) std::copy_n(from, each, batch.data.begin() + kept * each);
      ++kept;
    } else if (odd != nullptr) {
      odd->insert(i);
    }
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

}  // namespace numemu::experiments
