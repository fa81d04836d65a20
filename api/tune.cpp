#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "api/networks.hpp"
#include "api/options.hpp"
#include "api/task_metrics.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx/checkpoint.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/run_context.hpp"
#include "experiments/engine/bench/bench_memory.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/file_lock.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/utf8.hpp"
#include "formats/version.hpp"
#include "policies/canonical_json.hpp"
#include "policies/notes/notes.hpp"
#include "policies/recipe/checkpoint.hpp"
#include "policies/tune/base/run_steps.hpp"
#include "policies/tune/base/tune_step.hpp"
#include "policies/tune/base/tuned_layers.hpp"

namespace numemu::api {
namespace {

constexpr std::int64_t kImages = 1000, kNoiseSamples = 64;

/// The network as the steps see it, and what a checkpoint needs besides its parameters.
struct Source {
  Graph graph;
  std::optional<Graph> before;  ///< the first run, where a tuned checkpoint is tuned again
  std::string path, digest;
  net::RunIdentity identity;  ///< of all that the file gives
  std::string onnx;           ///< the graph where an ONNX file gave it
  bool folded = false;        ///< its batch normalisation is in the weights
};

Source load(const TuneRequest& asked, const Dataset& dataset, const Folders& folders) {
  TrainedNet trained = experiments::load_trained_net(asked.net, dataset, folders);
  if (!asked.keep_batch_norm) experiments::fold_batch_norm(trained);
  net::RunIdentity identity = experiments::run_identity(trained);
  identity.emplace_back("starting file", file_sha256(trained.path));
  Source source{std::move(trained.graph),
                std::move(trained.before),
                trained.path,
                trained.digest,
                std::move(identity),
                {},
                true};
  if (!trained.source.empty()) source.onnx = net::load_network(asked.net, dataset).onnx;
  if (asked.keep_batch_norm) {
    source.folded =
        trained.path.ends_with(".safetensors") && net::is_folded(net::read_weights(trained.path));
  }
  return source;
}

/// What made the weights, sorted by key; nothing that differs between machines.
net::Checkpoint described(const policies::Tuning& tuning, const Source& source,
                          const Dataset& dataset, const std::string& steps) {
  net::Checkpoint checkpoint = net::parameters_of(tuning.graph);
  const Json made = {{"steps", steps},
                     {"seed", tuning.seed},
                     {"weights", source.digest},
                     {"calibration_samples", tuning.calibration.samples},
                     {"data_digest", dataset.digest()}};
  checkpoint.metadata = {{"data", dataset.name()},
                         {"net", tuning.graph.name},
                         {"numerics", kNumericsVersion},
                         {"recipe", policies::canonical_json(tuning.recipe.json())},
                         {"tuning", made.dump()}};
  net::add_tuned_from(checkpoint, *source.before);
  if (source.folded) net::mark_folded(checkpoint);
  policies::add_ranges(checkpoint, tuning.ranges);
  if (!source.onnx.empty()) net::add_graph(checkpoint, source.onnx);
  net::store_ties(checkpoint, tuning.graph);
  return checkpoint;
}

/// Runs or resumes the steps, telling how far they are.
policies::TunePosition run_steps(policies::Tuning& tuning,
                                 const std::vector<policies::TuneStepChoice>& steps,
                                 const policies::TuneFile& file, const Context& context) {
  double behind = 0;
  const auto tell = [&](double done, const std::string& what) {
    if (context.on_work) context.on_work({what, done, static_cast<double>(steps.size()), behind});
  };
  policies::TuneHooks hooks;
  hooks.on_start = [&](const policies::TunePosition& at) {
    behind = static_cast<double>(at.step);
    if (at.step > 0 || at.part > 0)
      context.say(fmt::format("{} after step {}, part {} (--fresh starts over)",
                              at.finished(steps.size()) ? "finished" : "resumed", at.step,
                              at.part));
  };
  hooks.on_work = [&](const policies::TunePosition& at, double share) {
    if (share == 0 && at.part == at.parts) return;  // on_step says so
    tell(static_cast<double>(at.step) +
             (static_cast<double>(at.part) + share) / static_cast<double>(at.parts),
         fmt::format("{} {}/{}", steps[at.step].kind->name, at.part + 1, at.parts));
  };
  hooks.on_step = [&](const policies::TunePosition& at) {
    tell(static_cast<double>(at.step), steps[at.step - 1].text);
  };
  return policies::run_tune_steps(tuning, steps, file, hooks);
}

/// Measures networks on samples that no step reads: of the validation split, or of the calibration
/// split where that has none.
class Measured {
 public:
  /// Throws Error where memory does not hold the measurement of `images` and `beside` elements.
  Measured(const Graph&, const Dataset&, std::int64_t images, std::int64_t beside, Tuned&);
  /// float32 and the network under the recipe before the first step.
  void before(const policies::Tuning&);
  /// The network of the checkpoint, loaded again as eval reads it, under the recipe.
  void after(const policies::Tuning&);

 private:
  struct Figures {
    std::optional<Evaluation> metrics;
    experiments::LayerMeasurement noise;
  };
  std::optional<Evaluation> evaluated(const Graph&, net::Numerics&) const;
  Figures measure(const Graph& graph, policies::RecipeNumerics& numerics) const {
    Figures out{evaluated(graph, numerics),
                experiments::measure_layers(graph, numerics, reference_)};
    experiments::withhold_fused(out.noise, numerics);
    return out;
  }
  void refer_to(const Graph&);

  const Dataset& dataset_;
  Tuned& out_;
  std::vector<net::OutputScore> scores_;  ///< what the figures need
  net::Split split_ = net::Split::validation;
  policies::FloatReference reference_;
  std::optional<Evaluation> float32_;
  Figures before_;
};

Measured::Measured(const Graph& graph, const Dataset& dataset, std::int64_t images,
                   std::int64_t beside, Tuned& out)
    : dataset_(dataset), out_(out) {
  experiments::require_bench_memory(graph, graph, dataset, images, beside, kNoiseSamples);
  const std::int64_t most = std::min(kNoiseSamples, experiments::reference_count(graph, dataset));
  const std::int64_t available = dataset.validation_count();
  out.validation = available > 0;
  if (!out.validation) split_ = net::Split::calibration;
  out.noise_samples = std::min(most, out.validation ? available : dataset.calibration_count());
  if (dataset.target() != net::TargetKind::none) out.samples = std::min(images, available);
  scores_ = task_scores(dataset);
}

std::optional<Evaluation> Measured::evaluated(const Graph& graph, net::Numerics& numerics) const {
  if (out_.samples == 0) return std::nullopt;
  return net::evaluate(graph, dataset_, split_, out_.samples, numerics, scores_);
}

void Measured::refer_to(const Graph& reference) {
  net::Targets targets;
  reference_ = {};  // not beside the new one
  reference_ = policies::float_reference(
      reference, out_.validation ? dataset_.validation_batch(0, out_.noise_samples, targets)
                                 : dataset_.calibration_batch(0, out_.noise_samples, targets));
}

void Measured::before(const policies::Tuning& tuning) {
  refer_to(tuning.reference);
  net::Numerics float32;
  float32_ = evaluated(tuning.reference, float32);
  before_ = measure(tuning.graph, *policies::tuned_numerics(tuning));
  for (const std::string& layer : net::gemm_layer_names(tuning.graph))
    out_.layers.push_back({layer, net::at_layer(before_.noise.db, layer)});
}

void Measured::after(const policies::Tuning& tuning) {
  const Graph graph = net::load_network(out_.checkpoint, dataset_).graph;
  policies::RecipeNumerics numerics(
      policies::with_checkpoint_ranges(tuning.recipe, out_.checkpoint, tuning.where), graph,
      tuning.where);
  numerics.freeze(graph, dataset_.calibration_count(), tuning.calibration.batch);
  refer_to(tuning.reference);  // whose layers a step may have scaled or rotated
  const Figures after = measure(graph, numerics);
  for (Tuned::Decibels& layer : out_.layers)
    layer.after = net::at_layer(after.noise.db, layer.layer);
  out_.output = {"output", before_.noise.output.db, after.noise.output.db};
  if (!float32_) return;
  const auto metrics = [&](const Evaluation& own) {
    return metrics_of(dataset_, scores_, own, *float32_);
  };
  out_.float32 = metrics(*float32_);
  out_.before = metrics(*before_.metrics);
  out_.after = metrics(*after.metrics);
  out_.gain = experiments::judged_of(dataset_, scores_, *after.metrics, *before_.metrics);
}

}  // namespace

Tuned tune(const TuneRequest& request, const Context& context) {
  const net::RunScope scope(context.run);
  TuneRequest asked = request;
  asked.recipe = recipe_path(asked.recipe, context.folders);
  require_writable_folder(asked.out);
  const Recipe given = open_recipe(asked.recipe, context.folders).last_stage();
  const Recipe recipe = policies::with_ranges(given, {}, recipe_where(asked.recipe));
  auto steps = policies::parse_tune_steps(asked.steps, "--steps");
  Dataset dataset = open_data(
      {.net = asked.net, .data = asked.data, .calibrate_on = asked.calibrate_on}, context);
  if (dataset.calibration_count() == 0)
    throw Error("data set " + dataset.name() + ": expected samples to tune with, it has none");
  Tuned out;
  out.recipe = given;
  if (asked.samples > dataset.calibration_count())
    out.notes.push_back(fmt::format("{} has {} calibration samples, fewer than the {} asked for.",
                                    dataset.name(), dataset.calibration_count(), asked.samples));
  if (asked.images > 0 && dataset.validation_count() == 0)
    throw usage_error(fmt::format(
        "--images: {} has no validation samples, of which it is the number", asked.data));
  if (asked.images > dataset.validation_count())
    throw usage_error(
        fmt::format("--images: expected at most {}, the validation samples of {}, not {}",
                    dataset.validation_count(), asked.data, asked.images));
  Source source = load(asked, dataset, context.folders);
  dataset = experiments::at_outputs_of(source.graph, dataset);
  if (dataset.target() == net::TargetKind::values)
    std::ranges::move(policies::leave_out_class_steps(steps, "--steps"),
                      std::back_inserter(out.notes));
  std::ranges::move(policies::notes_on_quantizers(source.graph, source.path),
                    std::back_inserter(out.notes));
  std::ranges::move(policies::notes_on_outputs(
                        source.graph, "so are the probabilities that bias and distill follow"),
                    std::back_inserter(out.notes));
  if (std::string note = policies::note_on_recurrent(steps, source.graph, recipe); !note.empty())
    out.notes.push_back(std::move(note));
  if (source.before)
    out.notes.emplace_back(
        "The checkpoint was tuned or fine-tuned before: float32 is its weights, not the network "
        "before that.");
  Graph reference = load(asked, dataset, context.folders).graph;
  if (!source.before) source.before = load(asked, dataset, context.folders).graph;
  out.unread = asked.calibrate_on.empty();
  Measured measured(source.graph, dataset, asked.images > 0 ? asked.images : kImages,
                    experiments::calibration_elements({recipe, source.graph}), out);
  context.on_checked();

  make_folder(asked.out);
  const FileLock lock(asked.out + "/.tune.lock",
                      asked.out + ": another tuning run is writing to it");
  out.checkpoint =
      fmt::format("{}/{}-{}.safetensors", asked.out, source.graph.name, dataset.name());
  policies::TuneFile file{asked.out + "/tuning.safetensors", source.identity, asked.fresh};
  for (const auto& [key, value] :
       {std::pair("data", fmt::format("{} {}", dataset.name(), dataset.digest())),
        {"recipe", policies::canonical_json(given.json())},
        {"samples", fmt::format("{}", asked.samples)},
        {"numerics", std::string(kNumericsVersion)}})
    file.identity.emplace_back(key, value);
  for (const std::string& written : {out.checkpoint, file.path}) require_replaceable(written);
  std::error_code none;
  if (std::filesystem::equivalent(out.checkpoint, source.path, none))
    throw usage_error(fmt::format("--out {}: expected another folder than that of --net {}",
                                  asked.out, asked.net));

  policies::FixedRanges ranges = policies::ranges_of(given);
  if (ranges.empty()) ranges = policies::checkpoint_ranges(source.path);
  out.calibration_samples = std::min(asked.samples, dataset.calibration_count());
  policies::Tuning tuning{std::move(source.graph),
                          std::move(reference),
                          std::move(ranges),
                          recipe,
                          recipe_where(asked.recipe),
                          {out.calibration_samples, experiments::calibration_of(dataset)},
                          static_cast<std::uint64_t>(asked.seed)};
  policies::complete_ranges(tuning);
  context.say("measuring before the first step");
  measured.before(tuning);
  const policies::TunePosition position = run_steps(tuning, steps, file, context);
  net::write_safetensors(out.checkpoint,
                         described(tuning, source, dataset, policies::tune_steps_text(steps)));
  context.say("measuring the checkpoint");
  measured.after(tuning);
  for (std::size_t i = 0; i < steps.size(); ++i)
    out.steps.emplace_back(steps[i].text, position.summaries[i]);
  return out;
}

namespace {

Json number(double value) {
  constexpr int kDigits = 6;
  if (!std::isfinite(value)) return nullptr;
  return policies::significant(value, kDigits);
}

}  // namespace

Json json_of(const Tuned& tuned) {
  Json json;
  for (const auto& [text, summary] : tuned.steps)
    json["steps"].push_back({{"step", text}, {"done", summary}});
  json["notes"] = tuned.notes;
  json["split"] = tuned.validation ? "validation" : "calibration";
  json["noise_samples"] = tuned.noise_samples;
  json["metrics"] = {{"float32", metrics_json(tuned.float32, true)},
                     {"before", metrics_json(tuned.before, false)},
                     {"after", metrics_json(tuned.after, false)}};
  json["output_db"] = {{"before", number(tuned.output.before)},
                       {"after", number(tuned.output.after)}};
  json["layers"] = Json::array();
  for (const Tuned::Decibels& layer : tuned.layers)
    json["layers"].push_back({{"name", layer.layer},
                              {"before_db", number(layer.before)},
                              {"after_db", number(layer.after)}});
  json["checkpoint"] = utf8_text(tuned.checkpoint);
  json["recipe"] = tuned.recipe.json();
  json["calibration_samples"] = tuned.calibration_samples;
  return json;
}

std::vector<Option> options_of(TuneRequest& r) {
  constexpr std::int64_t kMostImages = 100'000'000;
  std::vector<std::string> steps;
  for (const policies::TuneStepKind* kind : policies::all_tune_steps())
    steps.emplace_back(kind->name);
  for (const policies::TunePipeline& pipeline : policies::tune_pipelines())
    steps.emplace_back(pipeline.name);
  OpenRequest open;
  std::vector<Option> all = options_of(open);  // of net and data
  all.erase(all.begin() + 2, all.end());
  all[0].target = &r.net;
  all[1].target = &r.data;
  std::vector<Option> own = {
      Option("calibrate_on SET", &r.calibrate_on,
             "Steps read the samples of another data set, such as those that `experiment "
             "data-free` makes"),
      Option("recipe NAME|R.json", &r.recipe, "Recipe, or the name of a shipped one")
          .needed()
          .or_json(),
      Option("steps LIST", &r.steps,
             "Steps with their options, separated by commas (docs/tune.md): " + joined(steps, ", "))
          .shown(),
      Option("out DIR", &r.out, "Folder for the checkpoint and the state of the run").shown(),
      Option("samples N", &r.samples, "Use the first N calibration samples")
          .from(1, kMostImages)
          .shown(),
      Option("images N", &r.images,
             "Measure on the first N validation samples, which no step reads (default 1000, or "
             "all of fewer)")
          .from(1, kMostImages),
      Option("seed", &r.seed, "Seed of what steps draw").from(0, std::int64_t{1} << 53).shown(),
      Option("keep_batch_norm", &r.keep_batch_norm,
             "Do not fold batch normalisation into the weights before it"),
      Option("fresh", &r.fresh, "Ignore the state in the folder and start over"),
  };
  std::ranges::move(own, std::back_inserter(all));
  return all;
}

}  // namespace numemu::api
