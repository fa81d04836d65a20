// numemu train: a network from scratch to a checkpoint, the same bytes for the same options
// anywhere, interrupted or not.
#include "emu/net/train/train.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/profile_table.hpp"
#include "cli/progress.hpp"
#include "cli/talk.hpp"
#include "cli/train_options.hpp"
#include "cli/train_report.hpp"
#include "emu/net/kept_bytes.hpp"
#include "emu/net/model/folded_checkpoint.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx_checkpoint.hpp"
#include "emu/net/model/tuned_from.hpp"
#include "experiments/report/decimals.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/file_lock.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/output_folder.hpp"
#include "formats/storage/utf8.hpp"
#include "formats/version.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/recipe/canonical_json.hpp"
#include "policies/recipe/staged_numerics.hpp"

namespace numemu::cli {
namespace {

net::StorageType storage(const std::string& name) {
  return name == "f16"    ? net::StorageType::f16
         : name == "bf16" ? net::StorageType::bf16
                          : net::StorageType::f32;
}

std::int64_t steps_of(const net::Dataset& dataset, const net::TrainOptions& train) {
  return train.epochs * ((dataset.train_count() + train.batch - 1) / train.batch);
}

/// What made the weights, sorted by key; nothing that differs between machines.
net::Checkpoint described(const net::LoadedNetwork& network, const net::Dataset& dataset,
                          const TrainCommand& options) {
  const net::Graph& graph = network.graph;
  net::Checkpoint checkpoint = net::parameters_of(graph);
  checkpoint.metadata = {{"data", dataset.name()},
                         {"net", graph.name},
                         {"numerics", kNumericsVersion},
                         {"training", training_text(options.train)}};
  if (const std::string view = to_string(options.view); !view.empty())
    checkpoint.metadata.emplace_back("view", fmt::format("{} digest {}", view, dataset.digest()));
  if (!options.recipe.empty()) {
    checkpoint.metadata.insert(checkpoint.metadata.begin() + 3,
                               {"recipe", policies::canonical_json(options.numerics.json())});
  }
  if (network.before) net::add_tuned_from(checkpoint, *network.before);
  if (network.folded) net::mark_folded(checkpoint);
  if (!network.onnx.empty()) net::add_graph(checkpoint, network.onnx);
  return checkpoint;
}

/// The network that training begins with. Training under a recipe fits weights to the recipe: the
/// network before it stays what accuracy is compared with, also through several runs.
net::LoadedNetwork load(const TrainCommand& options, const net::Dataset& dataset) {
  net::LoadedNetwork network = net::load_network(options.net, dataset);
  if (!network.has_weights) {
    net::initialize(network.graph, options.train.seed);
  } else if (options.recipe.empty()) {
    network.before.reset();
  } else if (!network.before) {
    network.before = net::load_network(options.net, dataset).graph;
  }
  return network;
}

/// The test split is read here for the first time, with the weights as stored and the recipe (its
/// last stage) as inference uses it.
net::Evaluation test(net::Graph& graph, const net::Dataset& dataset,
                     const policies::Recipe& recipe) {
  policies::RecipeNumerics numerics(recipe.last_stage(), graph);
  numerics.freeze(graph, dataset.calibration_count(), [&](std::int64_t first, std::int64_t count) {
    net::Targets targets;
    return std::vector<net::Tensor>{dataset.calibration_batch(first, count, targets)};
  });
  return net::evaluate(graph, dataset, net::Split::test, 0, numerics, net::scores_for(dataset, {}));
}

net::RunFile run_file(const TrainCommand& options, const net::LoadedNetwork& network) {
  net::RunFile file;
  file.path = options.out + "/state.safetensors";
  file.every = options.save_every;
  file.fresh = options.fresh;
  file.identity = {{"recipe", options.recipe.empty()
                                  ? "float32"
                                  : policies::canonical_json(options.numerics.json())}};
  if (network.has_weights) file.identity.emplace_back("starting file", file_sha256(options.net));
  return file;
}

/// By stage, what is stored of each parameter; empty where it is all float32.
std::vector<policies::ParameterBytes> stored_bytes(const net::Graph& graph,
                                                   const TrainCommand& options) {
  std::vector<policies::Recipe> stages;
  for (std::size_t i = 0; i <= options.numerics.stages().size(); ++i)
    stages.push_back(options.numerics.in_stage(i));
  std::vector<policies::ParameterBytes> stored;
  const bool few = std::ranges::any_of(stages, [&](const policies::Recipe& recipe) {
    return policies::stores_few_bits(recipe, graph);
  });
  if (!few) return stored;
  for (const policies::Recipe& recipe : stages)
    stored.push_back(policies::parameter_bytes(recipe, graph, options.train));
  return stored;
}

/// Runs or resumes the training, showing how far it is, and gives the number of its last epoch.
/// `staged`: the numerics where their recipe has stages, else null. `checkpoint`: removed where
/// there is something left to train.
std::int64_t train(net::LoadedNetwork& network, const net::Dataset& dataset,
                   net::KeptBytes& numerics, const policies::StagedNumerics* staged,
                   const TrainCommand& options, const std::string& checkpoint,
                   const std::vector<policies::ParameterBytes>& stored) {
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  MetricsFile metrics(options.out + "/metrics.jsonl", dataset, staged, numerics, stored);
  std::unique_ptr<Progress> progress;
  std::int64_t behind = 0;
  net::TrainHooks hooks;
  hooks.on_start = [&](const net::RunState& state) {
    // If this run is killed, that of another would stay beside its metrics.
    std::error_code error;
    if (!state.finished) std::filesystem::remove(checkpoint, error);
    if (error) throw Error(fmt::format("{}: cannot be removed ({})", checkpoint, error.message()));
    metrics.begin(state.history);
    behind = state.step;
    if (behind > 0 && !options.quiet) {
      say("{} after {}, {} (--fresh starts over)", state.finished ? "finished" : "resumed",
          counted(behind, "step"), counted(state.epoch, "epoch"));
    }
    progress = std::make_unique<Progress>("train", steps_of(dataset, options.train), "steps",
                                          options.quiet);
  };
  hooks.on_step = [&](std::int64_t step, std::int64_t, double loss) {
    progress->show(step + 1, "loss " + experiments::decimal_text(loss, 4), behind);
  };
  hooks.on_epoch = [&](const net::EpochMetrics& epoch) {
    if (!std::isfinite(epoch.train_loss)) {
      throw Error(
          fmt::format("training diverged: the loss of epoch {} is not finite; use a smaller --lr",
                      epoch.epoch));
    }
    metrics.append(epoch);
    if (options.quiet) return;
    if (terminal) write_talk("\r\033[K");
    say_line(epoch_line(epoch, dataset) +
             (staged ? fmt::format("  stage {}", staged->stage(epoch.epoch)) : ""));
  };
  return net::train(network.graph, dataset, options.train, numerics, hooks,
                    run_file(options, network))
      .back()
      .epoch;
}

int run_train(TrainCommand options) {
  const ProfiledRun profiled(options.profile);
  require_writable_folder(options.out);
  const net::Dataset dataset =
      net::view_of(net::load_dataset(options.data, cache_folder()), options.view);
  // The recommended warm-up is for long runs; a short one would end before its full rate.
  if (!options.warmup)
    options.train.warmup = std::min(options.train.warmup, steps_of(dataset, options.train) / 10);
  net::LoadedNetwork network = load(options, dataset);
  net::Graph& graph = network.graph;
  net::Numerics float32;
  std::unique_ptr<policies::StagedNumerics> quantized;
  if (!options.recipe.empty()) {
    quantized = std::make_unique<policies::StagedNumerics>(options.numerics, graph, options.recipe);
  }
  const std::size_t stages = options.numerics.stages().size();
  if (quantized && !options.quiet) note_short_names_in(options.recipe);
  net::KeptBytes numerics(quantized ? *quantized : float32);

  const std::vector<policies::StageStart>& starts = options.numerics.stages();
  if (dataset.validation_count() == 0 && !options.quiet &&
      std::ranges::any_of(starts, [](const auto& start) { return start.epoch == 0; }))
    say("note: {} has no validation samples, so the plateaus of the stages are those of the "
        "training loss",
        dataset.name());

  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error) throw Error(fmt::format("{}: cannot be created ({})", options.out, error.message()));
  // Two runs in one folder would mix their rows.
  const FileLock lock(options.out + "/.train.lock",
                      options.out + ": another training run is writing to it");
  const std::string path =
      fmt::format("{}/{}-{}.safetensors", options.out, graph.name, dataset.name());
  for (const std::string& file :
       {path, options.out + "/metrics.jsonl", run_file(options, network).path})
    require_replaceable(file);
  // The same command again would go on from the weights that the first one left.
  std::error_code none;
  if (std::filesystem::equivalent(path, options.net.substr(options.net.find('=') + 1), none))
    throw Error(fmt::format("--out {}: expected another folder than that of --net {}", options.out,
                            options.net));
  const std::vector<policies::ParameterBytes> bytes = stored_bytes(graph, options);
  const std::int64_t last = train(network, dataset, numerics,
                                  stages > 0 ? quantized.get() : nullptr, options, path, bytes);
  if (stages > 0 && quantized->stage(last) < stages && !options.quiet) {
    say("note: training ended in stage {}; the test uses the last one, stage {}, as eval does",
        quantized->stage(last), stages);
  }

  net::write_safetensors(path, described(network, dataset, options), storage(options.store));
  net::Graph stored = net::load_network(path, dataset).graph;
  const net::Evaluation tested = test(stored, dataset, options.numerics);
  if (options.json) {
    Json result = {{"checkpoint", utf8_text(path)},
                   {"recipe", options.numerics.json()},
                   {"metrics", test_json(tested, dataset)},
                   {"kept", kept_json(numerics.of_epoch(last))}};
    if (!bytes.empty()) result["stored"] = stored_json(bytes.back());
    if (stages > 0) {
      result["stage"] = quantized->stage(last);
      result["test_stage"] = stages;
    }
    fmt::print("{}\n", result.dump(2));
  } else {
    const std::string in_stage = stages > 0 ? fmt::format(", stage {}", stages) : "";
    fmt::print("{}, {}\n{}{}{}\n", test_line(tested, dataset),
               options.recipe.empty() ? "float32 on neutral.f32.sequential"
                                      : "numerics of " + harmless(options.recipe) + in_stage,
               kept_line(numerics.of_epoch(last)),
               bytes.empty()
                   ? ""
                   : stored_line(bytes.back(), policies::parameter_bytes(policies::Recipe(), graph,
                                                                         options.train)),
               harmless(path));
  }
  return kFine;
}

}  // namespace

void add_train(Program& program) {
  auto options = std::make_shared<TrainCommand>();
  Command& command = program.command("train", [options] {
    settle(*options);
    return run_train(*options);
  });
  add_train_options(command, *options);
}

}  // namespace numemu::cli
