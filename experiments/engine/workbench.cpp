#include "experiments/engine/workbench.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <omp.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/data/view.hpp"
#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/model/coded_weights.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/evaluate.hpp"
#include "experiments/predict/accuracy.hpp"
#include "experiments/predict/fitted_noise.hpp"
#include "experiments/predict/listening.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/suggest.hpp"
#include "formats/version.hpp"
#include "policies/calibrate/observers.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/checkpoint.hpp"

namespace numemu::experiments {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "numemu float32 baseline 4";
constexpr std::int64_t kMostHead = 1024;  // bytes beside those of the targets
constexpr std::int64_t kTargetBytes =
    76;  // at most: a digit, numbers of 32, 64, 64 and 64 bits, spaces
constexpr std::size_t kDigestLine = 7 + 64 + 1;

std::string digest_of(const net::Tensor& x) {
  return sha256_hex(fmt::format(
      "{} {}", joined(x.shape, "x"),
      sha256_hex({reinterpret_cast<const char*>(x.data.data()), x.data.size() * sizeof(float)})));
}

std::string key_of(const TrainedNet& trained, const net::Dataset& dataset,
                   const policies::FloatReference& reference, std::int64_t images) {
  std::string text = fmt::format("{}\nnumerics {}\n", kHead, kNumericsVersion);
  for (const auto& [name, value] : run_identity(trained))
    text += fmt::format("{} {}\n", name, value);
  const net::Graph& graph = baseline_graph(trained);
  for (const net::GraphInput& input : graph.inputs)
    text += fmt::format("input {} {}\n", input.name, joined(input.shape, "x"));
  for (const net::Node& node : graph.nodes)
    text += fmt::format("node {} {} {}\n", node.name, node.op->kind(), joined(node.inputs, " "));
  for (const net::Parameter* parameter : graph.parameters())
    text += fmt::format("parameter {} {}\n", parameter->name, digest_of(parameter->value));
  text += fmt::format("data {} {}\nimages {}\n", dataset.name(), dataset.digest(), images);
  for (const net::Tensor& batch : reference.batch)
    text += fmt::format("reference {}\n", digest_of(batch));
  text += fmt::format("logits {}\n", digest_of(reference.logits));
  return sha256_hex(text);
}

std::string head_of(const std::string& key) { return fmt::format("{}\nkey {}\n", kHead, key); }

/// The figures of an evaluation in whole numbers; a digit and an answer for each target, and of
/// float32_scores() a line each.
std::string text_of(const net::Evaluation& e, const std::string& key) {
  std::string text = head_of(key);
  text += fmt::format("{} {} {} {} {} {} {}\n", e.samples, e.n, e.correct, e.outputs.of,
                      e.outputs.nan, e.outputs.infinite, std::bit_cast<std::uint64_t>(e.loss));
  for (const std::uint8_t right : e.right) text += right != 0 ? '1' : '0';
  text += '\n';
  for (const std::int32_t answer : e.answers) text += fmt::format("{} ", answer);
  text += '\n';
  for (const net::ScoreTable& table : e.tables) {
    for (const double sum : table.sums)
      text += fmt::format("{} ", std::bit_cast<std::uint64_t>(sum));
    text += '\n';
  }
  return text + fmt::format("sha256 {}\n", sha256_hex(text));
}

std::optional<net::Evaluation> parse(const std::string& whole, const std::string& key,
                                     std::int64_t images, std::int64_t targets) {
  if (whole.size() < kDigestLine) return std::nullopt;
  const std::string text = whole.substr(0, whole.size() - kDigestLine), head = head_of(key);
  if (!text.starts_with(head) ||
      whole.substr(text.size()) != fmt::format("sha256 {}\n", sha256_hex(text)))
    return std::nullopt;
  std::istringstream in(text.substr(head.size()));
  net::Evaluation e;
  std::uint64_t loss = 0;
  std::string right;
  in >> e.samples >> e.n >> e.correct >> e.outputs.of >> e.outputs.nan >> e.outputs.infinite >>
      loss >> right;
  if (!in || e.samples != images || e.n != targets ||
      e.n != static_cast<std::int64_t>(right.size()) ||
      e.correct != std::count(right.begin(), right.end(), '1'))
    return std::nullopt;
  e.loss = std::bit_cast<double>(loss);
  for (const char digit : right) e.right.push_back(digit == '1');
  e.answers.resize(e.right.size());
  for (std::int32_t& answer : e.answers) in >> answer;
  in >> std::ws;
  for (std::string line; std::getline(in, line);) {
    net::ScoreTable& table = e.tables.emplace_back();
    std::istringstream sums(line);
    for (std::uint64_t sum = 0; sums >> sum;) table.sums.push_back(std::bit_cast<double>(sum));
    table.columns = std::ssize(table.sums) / std::max<std::int64_t>(1, images);
    if (table.columns == 0 || table.columns * images != std::ssize(table.sums)) return std::nullopt;
  }
  return e;
}

/// The files that were used longest ago go until the others fit.
void keep_small(const std::string& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::int64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files.emplace_back(entry.last_write_time(), entry.path());
    bytes += static_cast<std::int64_t>(entry.file_size());
  }
  std::sort(files.begin(), files.end());
  for (auto file = files.begin(); bytes > BaselineCache::kMostBytes && file != files.end();
       ++file) {
    bytes -= static_cast<std::int64_t>(fs::file_size(file->second));
    fs::remove(file->second);
  }
}

}  // namespace

BaselineCache::BaselineCache(const std::string& folder, const TrainedNet& trained,
                             const net::Dataset& dataset, const policies::FloatReference& reference,
                             std::int64_t images)
    : images_(images), targets_(images * dataset.targets_per_sample()) {
  if (folder.empty() || targets_ > kMostTargets) return;
  folder_ = folder + "/baselines";
  key_ = key_of(trained, dataset, reference, images);
  path_ = fmt::format("{}/{}.txt", folder_, key_.substr(0, 32));
}

std::optional<net::Evaluation> BaselineCache::read() const {
  if (path_.empty()) return std::nullopt;
  try {
    InputFile file(path_);
    if (file.left() > kTargetBytes * kMostTargets + kMostHead) return std::nullopt;
    std::optional<net::Evaluation> kept = parse(file.read(file.left()), key_, images_, targets_);
    if (kept)
      ::utimensat(AT_FDCWD, path_.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // for keep_small()
    return kept;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void BaselineCache::write(const net::Evaluation& evaluation) const {
  if (path_.empty()) return;
  try {
    fs::create_directories(folder_);
    write_atomically(path_, {text_of(evaluation, key_)});
    remove_leftovers(folder_);
    keep_small(folder_);
  } catch (const fs::filesystem_error&) {
  } catch (const Error&) {
  }
}

namespace {

constexpr std::size_t kDigits = 16;

}  // namespace

NetworkIdentity identity_of(const TrainedNet& trained) {
  const std::int64_t codes = net::coded_weights_of(trained.path);
  return {.net = trained.graph.name,
          .weights = trained.digest,
          // Of a reference network the name says all.
          .graph = trained.source.substr(0, kDigits),
          .tuned_from = trained.before ? net::digest_of(*trained.before) : "",
          .ranges = policies::digest_of(policies::checkpoint_ranges(trained.path)),
          .weights_as_codes = codes > 0 ? std::to_string(codes) : "",
          .trained = policies::trained_without_before(trained.path) ? "under a recipe" : ""};
}

net::RunIdentity run_identity(const TrainedNet& trained) {
  net::RunIdentity identity;
  const NetworkIdentity of = identity_of(trained);
  NetworkIdentity::fields(of, [&](const char* key, const std::string& value, unsigned) {
    if (!value.empty()) identity.emplace_back(key, value);
  });
  return identity;
}

void identify(Json& point, const TrainedNet& trained) {
  point.update(json_of(identity_of(trained)));
}

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
  // The cache has no tables of scores but those of predictions.
  const bool targets = bench.dataset.target() != net::TargetKind::none;
  const bool kept_whole = bench.scores.empty() && targets;
  if (!options.fresh && kept_whole) {
    if (std::optional<net::Evaluation> kept = cache.read()) {
      work.skip();
      return std::move(*kept);
    }
  }
  net::Numerics float32;
  Listening counted(float32, {}, [&](std::int64_t n) { work.add(n, bench.eval_images); });
  std::vector<net::OutputScore> scores = bench.scores;
  for (const net::OutputScore& score : float32_scores(bench.dataset)) scores.push_back(score);
  net::Evaluation baseline = net::evaluate(baseline_graph(bench.trained), bench.dataset,
                                           net::Split::test, bench.eval_images, counted, scores);
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
  auto [architecture, path] = net::name_and_file(name);
  if (!net::names_weights_file(path)) {
    const std::vector<std::string> known = net::net_names();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error("expected a network or a .safetensors, .gguf, .npz or .onnx file: " +
                  unknown_name("network", name, known));
    }
    path = fmt::format("{}/{}-{}.safetensors", folders.data, name, dataset.name());
    if (!std::filesystem::exists(path)) {
      throw Error(
          fmt::format("numemu ships no trained {} for {}; train one with `numemu train --net {} "
                      "--data ... --out DIR` and give its .safetensors file as the network",
                      name, dataset.name(), name));
    }
    architecture = name;
  }
  const net::Checkpoint checkpoint = net::read_weights(path);
  if (architecture.empty()) return described(net::network_of(checkpoint, path, dataset), path);
  net::LoadedNetwork network = net::load_network(architecture, dataset);
  net::load_parameters(network.graph, checkpoint, path);
  return described(std::move(network), path);
}

const net::Graph& baseline_graph(const TrainedNet& trained) {
  return trained.before ? *trained.before : trained.graph;
}

net::Dataset at_outputs_of(const net::Graph& graph, const net::Dataset& dataset) {
  return net::at_outputs(dataset, net::output_shapes(graph));
}

TrainedNet load_with_data(const std::string& name, net::Dataset& dataset, const Folders& folders) {
  TrainedNet trained = load_trained_net(name, dataset, folders);
  dataset = at_outputs_of(trained.graph, dataset);
  return trained;
}

void fold_batch_norm(TrainedNet& trained) {
  net::fold_batch_norm(trained.graph);
  if (trained.before) net::fold_batch_norm(*trained.before);
  trained.digest = net::digest_of(trained.graph);
}

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

policies::BoundRecipe bound_recipe(const policies::Recipe& recipe, const TrainedNet& trained,
                                   const std::string& where) {
  return {policies::with_checkpoint_ranges(recipe, trained.path, where), trained.graph, where};
}

namespace {

/// float32 elements that threads hold beside the tensors of a pass: tiles of products, a batch on
/// its way, small tables.
std::int64_t scratch_elements() {
  constexpr std::int64_t kOfThread = std::int64_t{1} << 20;
  return kOfThread * omp_get_max_threads();
}

}  // namespace

std::int64_t most_samples(std::int64_t elements) {
  return Workbench::kReferenceElements / std::max<std::int64_t>(1, elements);
}

std::int64_t calibration_elements(const policies::BoundRecipe& recipe) {
  // Counts of 8 bytes of one sign, and of both for a few layers.
  constexpr std::int64_t kHistogram = policies::MagnitudeHistogram::kBins * 5 / 2;
  const policies::CalibrationPolicy& calibration = recipe->calibration();
  const net::Graph& graph = recipe.graph();
  const std::vector<net::Shape> values = net::value_shapes(graph, net::batch_shapes(graph, 1));
  std::int64_t elements = 0;
  for (const auto& [gemm, policy] : policies::calibrated_operands(recipe, calibration)) {
    if (calibration.rule != policies::CalibrationPolicy::Rule::absmax) {
      elements += kHistogram;
    } else if (!policies::RoleQuantizer(policy).largest_only()) {
      const net::Shape& read = values[static_cast<std::size_t>(gemm.node->inputs[0])];
      elements += std::min(policies::StaticScale::kMostElements,
                           calibration.samples * net::element_count(read));
    }
  }
  return elements;
}

std::int64_t require_bench_memory(const net::Graph& graph, const net::Graph& baseline,
                                  const net::Dataset& dataset, std::int64_t images,
                                  std::int64_t beside, std::int64_t most, std::int64_t points) {
  const auto kept = [&](std::int64_t samples) {
    return net::kept_products(graph, net::batch_shapes(graph, samples));
  };
  const std::int64_t samples =
      std::clamp<std::int64_t>(std::min(most, most_samples(kept(1))), 1,
                               std::max<std::int64_t>(1, dataset.calibration_count()));
  const std::vector<net::Shape> all = net::batch_shapes(graph, samples);
  const std::int64_t scratch = scratch_elements(),
                     // Also codes of weights and what units prepare of them.
      behind = points * (beside + 2 * graph.parameter_count()) + scratch + kept(samples);
  net::PlannedPass evaluation = net::evaluation_pass(graph, images, behind);
  evaluation.at_once = std::max(evaluation.at_once, points);
  const net::PlannedPass passes[] = {{graph, all, net::Keeps::products, 1, scratch},
                                     {graph, all, net::Keeps::nothing, points, behind},
                                     net::evaluation_pass(baseline, images, behind),
                                     evaluation};
  return net::require_memory(passes);
}

void require_export_memory(const policies::BoundRecipe& recipe, std::int64_t samples,
                           std::int64_t calibration) {
  constexpr std::int64_t kAtOnce = 32;  // policies::Calibration::for_each
  const net::Graph& graph = recipe.graph();
  const std::int64_t scratch = scratch_elements(), parameters = graph.parameter_count();
  const std::vector<net::Shape> compared = net::batch_shapes(graph, samples);
  // Codes and what units prepare of them, the file, its tensors, the network that is read back.
  std::int64_t beside = scratch + 6 * parameters;
  for (const net::Shape& shape : compared) beside += net::element_count(shape);
  beside += net::element_count(net::value_shapes(graph, compared).back());
  const net::PlannedPass passes[] = {
      {graph, net::batch_shapes(graph, std::max<std::int64_t>(1, std::min(kAtOnce, calibration))),
       net::Keeps::nothing, 1, scratch + calibration_elements(recipe)},
      {graph, compared, net::Keeps::nothing, 1, beside}};
  net::require_memory(passes);
}

}  // namespace numemu::experiments
