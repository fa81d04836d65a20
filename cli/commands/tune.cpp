// numemu tune: a trained network made fit for a recipe by a chain of steps; a checkpoint with
// ranges, the same bytes anywhere, interrupted or not.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>

#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/memory_option.hpp"
#include "cli/network_option.hpp"
#include "cli/progress.hpp"
#include "cli/recipe_option.hpp"
#include "cli/talk.hpp"
#include "cli/tune_report.hpp"
#include "emu/net/data/view.hpp"
#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/model/folded_checkpoint.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx_checkpoint.hpp"
#include "emu/net/model/tuned_from.hpp"
#include "experiments/engine/bench_memory.hpp"
#include "experiments/engine/network_identity.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/file_lock.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_folder.hpp"
#include "formats/storage/utf8.hpp"
#include "formats/version.hpp"
#include "policies/recipe/canonical_json.hpp"
#include "policies/recipe/silent_notes.hpp"
#include "policies/tuning/checkpoint.hpp"
#include "policies/tuning/run_steps.hpp"

namespace numemu::cli {
namespace {

struct TuneOptions {
  std::string net, data, calibrate_on, recipe, steps = "calibrate,batch_norm", out = "out/tune";
  std::int64_t samples = 512, images = 0, seed = 0;  // images 0: kImages, or all of fewer
  bool keep_batch_norm = false, fresh = false, quiet = false, json = false;
};

constexpr std::int64_t kMostImages = 100'000'000, kImages = 1000;

/// The network as the steps see it, and what a checkpoint needs besides its parameters.
struct Source {
  net::Graph graph;
  std::optional<net::Graph> before;  ///< the first run, where a tuned checkpoint is tuned again
  std::string path, digest;
  net::RunIdentity identity;  ///< of all that the file gives
  std::string onnx;           ///< the graph where an ONNX file gave it
  bool folded = false;        ///< its batch normalisation is in the weights
};

Source load(const TuneOptions& options, const net::Dataset& dataset,
            const experiments::Folders& folders) {
  experiments::TrainedNet trained = experiments::load_trained_net(options.net, dataset, folders);
  if (!options.keep_batch_norm) experiments::fold_batch_norm(trained);
  net::RunIdentity identity = experiments::identity_of(trained);
  identity.emplace_back("starting file", file_sha256(trained.path));
  Source source{std::move(trained.graph),
                std::move(trained.before),
                trained.path,
                trained.digest,
                std::move(identity),
                {},
                true};
  if (!trained.source.empty()) source.onnx = net::load_network(trained.path, dataset).onnx;
  if (options.keep_batch_norm) {
    source.folded = trained.path.ends_with(".safetensors") &&
                    net::is_folded(net::read_safetensors(trained.path, true));
  }
  return source;
}

policies::CalibrationBatch calibration_of(const net::Dataset& dataset) {
  return [&dataset](std::int64_t first, std::int64_t count) {
    net::Targets targets;
    return std::vector<net::Tensor>{dataset.calibration_batch(first, count, targets)};
  };
}

/// What made the weights, sorted by key; nothing that differs between machines.
net::Checkpoint described(const policies::Tuning& tuning, const Source& source,
                          const net::Dataset& dataset, const std::string& steps) {
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
  return checkpoint;
}

/// Runs or resumes the steps, showing how far they are.
policies::TunePosition run_steps(policies::Tuning& tuning,
                                 const std::vector<policies::TuneStepChoice>& steps,
                                 const policies::TuneFile& file, const TuneOptions& options) {
  Progress progress("tune", static_cast<std::int64_t>(steps.size()), "", options.quiet);
  double behind = 0;
  const auto done = [](const policies::TunePosition& at, double share) {
    return static_cast<double>(at.step) +
           (static_cast<double>(at.part) + share) / static_cast<double>(at.parts);
  };
  policies::TuneHooks hooks;
  hooks.on_start = [&](const policies::TunePosition& at) {
    behind = static_cast<double>(at.step);
    if (!options.quiet && (at.step > 0 || at.part > 0))
      say("{} after step {}, part {} (--fresh starts over)",
          at.finished(steps.size()) ? "finished" : "resumed", at.step, at.part);
  };
  hooks.on_work = [&](const policies::TunePosition& at, double share) {
    if (share == 0 && at.part == at.parts) return;  // on_step says so
    progress.show(done(at, share),
                  fmt::format("{} {}/{}", steps[at.step].kind->name, at.part + 1, at.parts),
                  behind);
  };
  hooks.on_step = [&](const policies::TunePosition& at) {
    progress.show(static_cast<double>(at.step), steps[at.step - 1].text, behind);
  };
  return policies::run_tune_steps(tuning, steps, file, hooks);
}

int run_tune(const TuneOptions& options) {
  require_writable_folder(options.out);
  const policies::Recipe given =
      policies::Recipe::parse_text(read_text(options.recipe), options.recipe).last_stage();
  const policies::Recipe recipe = policies::with_ranges(given, {}, options.recipe);
  auto steps = policies::parse_tune_steps(options.steps, "--steps");
  const experiments::Folders folders{data_folder(), cache_folder()};
  net::Dataset dataset = net::load_dataset(options.data, folders.cache);
  if (!options.calibrate_on.empty())
    dataset = net::calibrated_on(dataset, net::load_dataset(options.calibrate_on, folders.cache));
  if (dataset.calibration_count() == 0)
    throw Error("data set " + dataset.name() + ": expected samples to tune with, it has none");
  std::vector<std::string> notes;
  if (options.samples > dataset.calibration_count())
    notes.push_back(fmt::format("{} has {} calibration samples, fewer than the {} asked for.",
                                dataset.name(), dataset.calibration_count(), options.samples));
  if (options.images > 0 && dataset.validation_count() == 0)
    throw Error(fmt::format("--images: {} has no validation samples, of which it is the number",
                            options.data));
  if (options.images > dataset.validation_count())
    throw Error(fmt::format("--images: expected at most {}, the validation samples of {}, not {}",
                            dataset.validation_count(), options.data, options.images));
  if (dataset.target() == net::TargetKind::values)
    std::ranges::move(policies::leave_out_class_steps(steps, "--steps"), std::back_inserter(notes));
  Source source = load(options, dataset, folders);
  std::ranges::move(policies::notes_on_quantizers(source.graph, source.path),
                    std::back_inserter(notes));
  if (source.before)
    notes.emplace_back(
        "The checkpoint was tuned or fine-tuned before: float32 is its weights, not the network "
        "before that.");
  net::Graph reference = load(options, dataset, folders).graph;
  if (!source.before) source.before = load(options, dataset, folders).graph;
  TuneSamples measured =
      tune_samples(source.graph, dataset, options.images > 0 ? options.images : kImages,
                   experiments::calibration_elements(recipe, source.graph));
  measured.unread = options.calibrate_on.empty();
  if (!options.quiet) note_short_names_in(options.recipe);

  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error) throw Error(fmt::format("{}: cannot be created ({})", options.out, error.message()));
  const FileLock lock(options.out + "/.tune.lock",
                      options.out + ": another tuning run is writing to it");
  const std::string path =
      fmt::format("{}/{}-{}.safetensors", options.out, source.graph.name, dataset.name());
  policies::TuneFile file{options.out + "/tuning.safetensors", source.identity, options.fresh};
  for (const auto& [key, value] :
       {std::pair("data", fmt::format("{} {}", dataset.name(), dataset.digest())),
        {"recipe", policies::canonical_json(given.json())},
        {"samples", fmt::format("{}", options.samples)},
        {"numerics", std::string(kNumericsVersion)}})
    file.identity.emplace_back(key, value);
  for (const std::string& written : {path, file.path}) require_replaceable(written);
  std::error_code none;
  if (std::filesystem::equivalent(path, source.path, none))
    throw Error(fmt::format("--out {}: expected another folder than that of --net {}", options.out,
                            options.net));

  policies::FixedRanges ranges = policies::ranges_of(given);
  if (ranges.empty()) ranges = policies::checkpoint_ranges(source.path);
  policies::Tuning tuning{
      std::move(source.graph),
      std::move(reference),
      std::move(ranges),
      recipe,
      options.recipe,
      {std::min(options.samples, dataset.calibration_count()), calibration_of(dataset)},
      static_cast<std::uint64_t>(options.seed)};
  TuneReport report(dataset, measured, options.quiet);
  for (const std::string& note : notes) report.note(note);
  policies::complete_ranges(tuning);
  report.before(tuning);
  const policies::TunePosition position = run_steps(tuning, steps, file, options);
  net::write_safetensors(path,
                         described(tuning, source, dataset, policies::tune_steps_text(steps)));
  report.after(tuning, path);
  for (std::size_t i = 0; i < steps.size(); ++i) report.step(steps[i].text, position.summaries[i]);
  if (options.json) {
    Json json = report.json();
    json["checkpoint"] = utf8_text(path);
    json["recipe"] = given.json();
    json["calibration_samples"] = tuning.calibration.samples;
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}{}\n", report.text(), harmless(path));
  }
  return kFine;
}

std::string step_names() {
  std::vector<std::string> names;
  for (const policies::TuneStepKind* kind : policies::all_tune_steps())
    names.emplace_back(kind->name);
  for (const policies::TunePipeline& pipeline : policies::tune_pipelines())
    names.emplace_back(pipeline.name);
  return joined(names, ", ");
}

}  // namespace

void add_tune(Program& program) {
  auto options = std::make_shared<TuneOptions>();
  Command& command = program.command("tune", [options] { return run_tune(*options); });
  add_trained_net(command, options->net);
  add_data_set(command, options->data);
  command.option("--calibrate-on SET", options->calibrate_on,
                 "Steps read the samples of another data set, such as those that `experiment "
                 "data-free` makes");
  command.option("--recipe NAME|R.json", options->recipe, "Recipe, or the name of a shipped one")
      .required();
  command.before_run([options] { options->recipe = recipe_path(options->recipe); });
  command
      .option("--steps LIST", options->steps,
              "Steps with their options, separated by commas (docs/tune.md): " + step_names())
      .show_default();
  command.option("--out DIR", options->out, "Folder for the checkpoint and the state of the run")
      .show_default();
  command.option("--samples N", options->samples, "Use the first N calibration samples")
      .show_default()
      .whole(1, kMostImages);
  command
      .option("--images N", options->images,
              "Measure on the first N validation samples, which no step reads (default 1000, or "
              "all of fewer)")
      .whole(1, kMostImages);
  command.option("--seed", options->seed, "Seed of what steps draw")
      .show_default()
      .whole(0, std::int64_t{1} << 53);
  command.flag("--keep-batch-norm", options->keep_batch_norm,
               "Do not fold batch normalisation into the weights before it");
  command.flag("--fresh", options->fresh, "Ignore the state in the folder and start over");
  command.flag("--json", options->json, "Print JSON");
  command.flag("--quiet", options->quiet, "No progress");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
