#include "emu/net/train/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "api/networks.hpp"
#include "api/task_metrics.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/onnx/checkpoint.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/run_context.hpp"
#include "emu/net/tied.hpp"
#include "emu/net/train/learned_constants.hpp"
#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/ranks.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/file_lock.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/utf8.hpp"
#include "formats/version.hpp"
#include "policies/canonical_json.hpp"
#include "policies/notes/notes.hpp"
#include "policies/numerics/staged_numerics.hpp"
#include "policies/recipe/checkpoint.hpp"
#include "policies/recipe/update_json.hpp"

namespace numemu::api {
namespace {

/// A request with what recipe, network and optimizer decide.
struct Settled {
  Recipe recipe;
  net::TrainOptions train;
  net::DataView view;
  bool float32 = false;  ///< no recipe was given

  std::string identity() const {
    return float32 ? "float32" : policies::canonical_json(recipe.json());
  }
};

/// Throws Error where recipe and request contradict each other.
Settled settle(const TrainRequest& asked) {
  Settled out{{}, asked.train, asked.view, asked.recipe.empty()};
  net::TrainOptions& train = out.train;
  train.optimizer = net::recommended_optimizer(asked.net);
  if (!out.float32) {
    const std::string file = recipe_where(asked.recipe);
    Json recipe = recipe_json(asked.recipe);
    // A recipe that names no optimizer has the one asked for.
    if (asked.optimizer && recipe.is_object()) {
      const Json* const update = recipe.find_path("/update");
      if (update == nullptr || update->is_null()) recipe["update"] = Json::object();
      if (recipe["update"].is_object() && !recipe["update"].contains("optimizer"))
        recipe["update"]["optimizer"] = *asked.optimizer;
    }
    out.recipe = Recipe::parse(recipe, file);
    const std::string named = out.recipe.update().optimizer;
    if (asked.optimizer && net::canonical_optimizer(*asked.optimizer) != named) {
      throw Error(fmt::format("{}: update.optimizer: '{}' contradicts --optimizer {}", file, named,
                              *asked.optimizer));
    }
    train.optimizer = named;
  }
  if (asked.optimizer) train.optimizer = net::canonical_optimizer(*asked.optimizer);
  net::use_recommended_rates(train, asked.net);
  if (asked.learning_rate) train.learning_rate = *asked.learning_rate;
  if (asked.weight_decay) train.weight_decay = *asked.weight_decay;
  if (asked.warmup) train.warmup = *asked.warmup;
  if (asked.clip) train.clip = *asked.clip;
  if (asked.augment) train.augment = *asked.augment;
  for (std::string& objective : train.objectives) objective = net::canonical_objective(objective);
  if (!out.float32) policies::use_objectives(out.recipe, recipe_where(asked.recipe), train);
  train.seed = static_cast<std::uint64_t>(asked.seed);
  out.view.seed = train.seed;
  net::check(train);
  return out;
}

/// The options in a line, those left at their usual value only where older checkpoints name them.
std::string training_text(const net::TrainOptions& t) {
  const net::TrainOptions usual;
  std::string text = fmt::format("{} {} lr {} ", t.optimizer, t.schedule, t.learning_rate);
  if (t.optimizer == "sgd")
    text += fmt::format("{}momentum {} ", t.nesterov ? "nesterov " : "", t.momentum);
  text += fmt::format("weight decay {} epochs {} batch {} seed {}", t.weight_decay, t.epochs,
                      t.batch, t.seed);
  if (t.optimizer != "sgd" &&
      (t.beta1 != usual.beta1 || t.beta2 != usual.beta2 || t.epsilon != usual.epsilon))
    text += fmt::format(" betas {} {} epsilon {}", t.beta1, t.beta2, t.epsilon);
  if (t.warmup > 0) text += fmt::format(" warmup {}", t.warmup);
  if (t.clip > 0) text += fmt::format(" clip {}", t.clip);
  if (t.objectives != usual.objectives)
    text += fmt::format(" objectives {}", joined(t.objectives, " "));
  for (const auto& [objective, optimizer] : t.objective_optimizers)
    text += fmt::format(" {} of {}", optimizer, objective);
  if (t.workers > 1) text += fmt::format(" workers {}", t.workers);
  if (t.micro_batches > 1) text += fmt::format(" micro-batches {}", t.micro_batches);
  if (t.local_steps > 0) text += fmt::format(" local steps {}", t.local_steps);
  if (t.copies > 1) text += fmt::format(" copies {}", t.copies);
  if (!t.sizes.shares.empty()) text += " image sizes " + to_string(t.sizes);
  if (t.patience > 0) text += fmt::format(" patience {}", t.patience);
  if (t.augment.shift > 0) text += fmt::format(" shift {}", t.augment.shift);
  if (t.augment.crop > 0) text += fmt::format(" crop {}", t.augment.crop);
  if (t.augment.flip) text += " flip";
  return text;
}

net::StorageType storage(const std::string& name) {
  return name == "f16"    ? net::StorageType::f16
         : name == "bf16" ? net::StorageType::bf16
                          : net::StorageType::f32;
}

/// What made the weights, sorted by key; nothing that differs between machines.
net::Checkpoint described(const net::LoadedNetwork& network, const Dataset& dataset,
                          const Settled& settled, const policies::FixedRanges& ranges) {
  net::Checkpoint checkpoint = net::parameters_of(network.graph);
  checkpoint.metadata = {{"data", dataset.name()},
                         {"net", network.graph.name},
                         {"numerics", kNumericsVersion},
                         {"training", training_text(settled.train)}};
  if (const std::string view = to_string(settled.view); !view.empty())
    checkpoint.metadata.emplace_back("view", fmt::format("{} digest {}", view, dataset.digest()));
  if (!settled.float32)
    checkpoint.metadata.insert(checkpoint.metadata.begin() + 3, {"recipe", settled.identity()});
  policies::add_ranges(checkpoint, ranges);
  if (network.before) net::add_tuned_from(checkpoint, *network.before);
  if (network.folded) net::mark_folded(checkpoint);
  if (!network.onnx.empty()) net::add_graph(checkpoint, network.onnx);
  net::store_ties(checkpoint, network.graph);
  return checkpoint;
}

/// "2 tensors of the file stay untrained, 160 of 5,123 numbers: pos, cls"; "" without any.
std::string note_on_untrained(const Graph& graph) {
  constexpr std::size_t kNamed = 3;
  const net::UntrainedTensors found = net::untrained_tensors(graph);
  const std::size_t count = found.names.size();
  if (count == 0) return {};
  const auto number = [](std::int64_t n) { return experiments::grouped(static_cast<double>(n)); };
  return fmt::format("{} tensor{} of the file stay{} untrained, {} of {} numbers: {}", count,
                     count == 1 ? "" : "s", count == 1 ? "s" : "", number(found.elements),
                     number(found.of), joined_first(found.names, ", ", kNamed));
}

/// Throws Error where no parameter would change.
void require_trained(const Graph& graph) {
  if (graph.parameter_count() > 0) return;
  const std::string untrained = note_on_untrained(graph);
  throw Error(fmt::format(
      "network {}: expected a parameter that training changes, found none{}", graph.name,
      untrained.empty() ? ""
                        : fmt::format("; what its operators read may be buffers ({})", untrained)));
}

/// The network that training begins with. Training under a recipe fits weights to the recipe: the
/// network before it stays what accuracy is compared with, also through several runs.
net::LoadedNetwork load(const TrainRequest& asked, const Settled& settled, const Dataset& dataset) {
  net::LoadedNetwork network = net::load_network(asked.net, dataset);
  if (!network.has_weights) {
    net::initialize(network.graph, settled.train.seed);
  } else if (settled.float32) {
    network.before.reset();
  } else if (!network.before) {
    network.before = net::load_network(asked.net, dataset).graph;
  }
  net::train_learned_constants(network.graph);
  require_trained(network.graph);
  return network;
}

/// The test split is read here for the first time, with the weights as stored and the recipe (its
/// last stage) as inference uses it.
Evaluation test(const Graph& graph, const Dataset& dataset, const Recipe& recipe) {
  policies::RecipeNumerics numerics(recipe, graph);
  experiments::freeze(numerics, graph, dataset);
  return net::evaluate(graph, dataset, net::Split::test, 0, numerics, task_scores(dataset));
}

/// A trained network before and after it went on under a recipe, and the original one.
Trained::Compared compare(const net::LoadedNetwork& network, const TrainRequest& asked,
                          const Dataset& dataset, const Settled& settled, const Evaluation& after) {
  const std::vector<net::OutputScore> scores = task_scores(dataset);
  net::Numerics float32;
  const Evaluation original =
      net::evaluate(*network.before, dataset, net::Split::test, 0, float32, scores);
  const std::string path = net::name_and_file(asked.net).second;
  const std::string where = recipe_where(asked.recipe);
  const Evaluation before =
      test(net::load_network(asked.net, dataset).graph, dataset,
           policies::with_checkpoint_ranges(settled.recipe.last_stage(), path, where));
  const auto metrics = [&](const Evaluation& own) {
    return metrics_of(dataset, scores, own, original);
  };
  return {metrics(original), metrics(before), metrics(after),
          experiments::judged_of(dataset, scores, after, before)};
}

/// Which parameters are one, and which layers begin with the same numbers all the same.
std::vector<std::string> notes_on_shared_weights(const Graph& graph) {
  std::vector<std::string> notes;
  for (const std::vector<std::string>& names : net::tied_groups(graph))
    notes.push_back(fmt::format("{} are one tensor, which is trained once.", joined(names, ", ")));
  std::vector<std::pair<const net::Tensor*, std::vector<std::string>>> groups;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight == nullptr || !net::sharing(graph, *layer.node).empty()) continue;
    const auto same = std::ranges::find_if(groups, [&](const auto& group) {
      return group.first->shape == layer.weight->shape && group.first->data == layer.weight->data;
    });
    if (same != groups.end()) {
      same->second.push_back(layer.name);
    } else {
      groups.push_back({layer.weight, {layer.name}});
    }
  }
  for (const auto& [weight, names] : groups) {
    if (names.size() > 1)
      notes.push_back(
          fmt::format("Layers {} begin with the same weight, but are not tied; training changes "
                      "that of each layer for itself.",
                      joined(names, ", ")));
  }
  return notes;
}

/// Where an unsigned format meets negative numbers of a trained network: training begins from what
/// that leaves. By a few samples, each once.
std::vector<std::string> lost_signs(const Graph& graph, const Dataset& dataset,
                                    const Recipe& recipe) {
  constexpr std::int64_t kNoted = 32;
  const std::int64_t samples = std::min(kNoted, dataset.calibration_count());
  if (samples == 0) return {};
  net::Targets targets;
  const std::vector<policies::Note> notes =
      policies::recipe_notes(policies::BoundRecipe(recipe, graph),
                             dataset.inputs_of(dataset.calibration_batch(0, samples, targets)));
  std::vector<std::string> texts;
  for (const policies::Note& note : notes)
    if (note.kind == policies::NoteKind::lost_signs) texts.push_back(note.text);
  return texts;
}

/// By stage, what is stored of each parameter; empty where it is all float32.
std::vector<policies::ParameterBytes> stored_bytes(const Graph& graph, const Settled& settled) {
  std::vector<policies::BoundRecipe> stages;
  for (std::size_t i = 0; i <= settled.recipe.stages().size(); ++i)
    stages.emplace_back(settled.recipe.in_stage(i), graph);
  std::vector<policies::ParameterBytes> stored;
  if (std::ranges::none_of(stages, policies::stores_few_bits)) return stored;
  for (const policies::BoundRecipe& recipe : stages)
    stored.push_back(policies::parameter_bytes(recipe, settled.train));
  return stored;
}

/// The run of one network: its numerics, and what they count.
struct Run {
  const Graph& graph;
  const Dataset& dataset;
  policies::StagedNumerics* quantized;     ///< null in float32
  const policies::StagedNumerics* staged;  ///< null without stages
  net::KeptBytes numerics;
  std::vector<policies::ParameterBytes> stored;  ///< by stage; empty where all of it is float32

  std::optional<std::size_t> stage(std::int64_t epoch) const {
    return staged == nullptr ? std::optional<std::size_t>() : staged->stage(epoch);
  }
  /// A line of metrics.jsonl, numbers with six digits. Rows of a text have perplexity and bits of
  /// the validation; without validation samples its figures are null.
  std::string row(const net::EpochMetrics&) const;
  /// Bits that a worker sends and gets back in a step, and each parameter's share of what is sent.
  Json exchange_json(const std::vector<net::WireBits>&) const;
};

Json Run::exchange_json(const std::vector<net::WireBits>& wire) const {
  net::WireBits all;
  for (const net::WireBits& bits : wire) {
    all.sent += bits.sent;
    all.returned += bits.returned;
  }
  Json shares = Json::object();
  const std::vector<const net::Parameter*> parameters = std::as_const(graph).parameters();
  for (std::size_t p = 0; p < wire.size(); ++p) {
    if (wire[p].sent > 0)
      shares[parameters[p]->name] = policies::significant(wire[p].sent / all.sent, 6);
  }
  return {{"sent_bits", policies::significant(all.sent, 9)},
          {"returned_bits", policies::significant(all.returned, 9)},
          {"sent_shares", std::move(shares)}};
}

std::string Run::row(const net::EpochMetrics& epoch) const {
  const auto digits = [](double value) { return policies::significant(value, 6); };
  Json row{{"epoch", epoch.epoch},
           {"step", epoch.step},
           {"learning_rate", digits(epoch.learning_rate)},
           {"train_loss", digits(epoch.train_loss)},
           {"train_top1", nullptr},
           {"validation_loss", nullptr},
           {"validation_top1", nullptr}};
  const bool validated = dataset.validation_count() > 0;
  const bool classes = dataset.target() == net::TargetKind::classes;
  if (classes) row["train_top1"] = digits(epoch.train_top1);
  if (validated) row["validation_loss"] = digits(epoch.validation_loss);
  if (validated && classes) row["validation_top1"] = digits(epoch.validation_top1);
  if (validated && dataset.kind() == net::DataKind::text) {
    row["perplexity"] = digits(net::perplexity(epoch.validation_loss));
    row[fmt::format("bits_per_{}", dataset.text_unit())] =
        digits(net::bits_per_character(epoch.validation_loss));
  }
  if (epoch.dropped) row["dropped_samples"] = digits(*epoch.dropped);
  if (!epoch.wire.empty()) row["exchange"] = exchange_json(epoch.wire);
  row["gradient_norm"] = digits(epoch.gradient_norm);
  row["skipped_steps"] = epoch.skipped;
  row["loss_scale"] = epoch.loss_scale;  // powers of two keep their digits
  if (const net::KeptBytes::Sums* const kept = numerics.of_epoch(epoch.epoch)) {
    row["kept_bytes_per_sample"] = digits(kept->per_sample());
    row["kept_bytes_per_sample_float32"] = digits(kept->float32_per_sample());
  }
  if (!stored.empty()) {
    const policies::ParameterBytes& bytes = stored.at(stage(epoch.epoch).value_or(0));
    row["master_bytes_per_parameter"] = digits(bytes.master);
    row["state_bytes_per_parameter"] = digits(bytes.state);
  }
  if (staged != nullptr) row["stage"] = staged->stage(epoch.epoch);
  return row.dump() + "\n";
}

/// Runs or resumes the training and gives the number of its last epoch. `checkpoint`: removed where
/// there is something left to train. metrics.jsonl gets a row per epoch, none of an epoch without
/// samples; a resumed run leaves the file of an uninterrupted one.
std::int64_t run(Graph& graph, Run& of, const net::TrainOptions& options, const net::RunFile& file,
                 const std::string& metrics, const std::string& checkpoint, std::int64_t steps,
                 net::Ranks* ranks, const TrainHooks& told) {
  const bool writes = ranks == nullptr || ranks->rank() == 0;
  net::TrainHooks hooks{
      .ranks = ranks, .on_start = {}, .on_rate = {}, .on_step = {}, .on_epoch = {}};
  if (of.quantized != nullptr)
    hooks.on_rate = [&](double rate) { of.quantized->set_learning_rate(rate); };
  hooks.on_start = [&](const net::RunState& state) {
    if (!writes) return;
    // If this run is killed, that of another would stay beside its metrics.
    std::error_code error;
    if (!state.finished) std::filesystem::remove(checkpoint, error);
    if (error)
      throw file_error(fmt::format("{}: cannot be removed ({})", checkpoint, error.message()));
    std::string rows;
    for (const net::EpochMetrics& epoch : state.history) rows += of.row(epoch);
    if (rows.empty()) {
      std::filesystem::remove(metrics, error);  // no file before the first epoch has ended
      if (error)
        throw file_error(fmt::format("{}: cannot be removed ({})", metrics, error.message()));
    } else {
      write_atomically(metrics, {rows});
    }
    told.on_start(state, steps);
  };
  hooks.on_step = [&](std::int64_t step, std::int64_t, double loss) {
    if (writes) told.on_step(step, loss);
  };
  hooks.on_epoch = [&](const net::EpochMetrics& epoch) {
    if (epoch.dropped.value_or(0) == 1)
      throw Error(fmt::format("drop: no sample took part in epoch {}", epoch.epoch));
    if (!std::isfinite(epoch.train_loss)) {
      throw Error(
          fmt::format("training diverged: the loss of epoch {} is not finite; use a smaller --lr",
                      epoch.epoch));
    }
    if (!writes) return;
    append_text(metrics, of.row(epoch));
    told.on_epoch(epoch, of.dataset, of.stage(epoch.epoch));
  };
  const std::int64_t last =
      net::train(graph, of.dataset, options, of.numerics, hooks, file).back().epoch;
  if (writes) told.on_end();
  return last;
}

/// What a user should know of the network, the data and the recipe before the first step.
void say_notes(const Context& context, const net::LoadedNetwork& network, const Dataset& dataset,
               const Settled& settled) {
  const Graph& graph = network.graph;
  if (dataset.validation_count() == 0 &&
      std::ranges::any_of(settled.recipe.stages(),
                          [](const auto& start) { return start.epoch == 0; }))
    context.say(fmt::format(
        "note: {} has no validation samples, so the plateaus of the stages are those of the "
        "training loss",
        dataset.name()));

  if (network.has_weights) {
    for (const std::string& note : notes_on_shared_weights(graph)) context.say("note: " + note);
  }
  if (const std::string note = note_on_untrained(graph); !note.empty())
    context.say("note: " + note);
  if (network.has_weights && !settled.float32) {
    for (const std::string& note : lost_signs(graph, dataset, settled.recipe.in_stage(0)))
      context.say("note: " + note);
  }
}

/// Where the state of the run is kept, and what makes it the state of this run.
net::RunFile run_file(const TrainRequest& asked, const Settled& settled, bool has_weights) {
  net::RunFile file{asked.out + "/state.safetensors",
                    asked.save_every,
                    asked.fresh,
                    {{"recipe", settled.identity()}}};
  if (has_weights) {
    const auto [model, weights] = net::name_and_file(asked.net);
    file.identity.emplace_back("starting file", file_sha256(weights));
    if (model.ends_with(".onnx")) file.identity.emplace_back("its network", file_sha256(model));
  }
  return file;
}

void require_other_checkpoint(const TrainRequest& asked, const std::string& checkpoint) {
  // The same command again would go on from the weights that the first one left.
  std::error_code none;
  if (std::filesystem::equivalent(checkpoint, net::name_and_file(asked.net).second, none))
    throw usage_error(fmt::format("--out {}: expected another folder than that of --net {}",
                                  asked.out, asked.net));
}

/// The checkpoint as it is stored, on the test split under the recipe's last stage.
void test_checkpoint(Trained& out, const TrainRequest& asked, const Settled& settled,
                     const net::LoadedNetwork& network, const policies::FixedRanges& ranges) {
  const Dataset& dataset = out.dataset;
  const Graph stored = net::load_network(out.checkpoint, dataset).graph;
  Recipe tested = settled.recipe.last_stage();
  if (!ranges.empty()) tested = policies::with_ranges(tested, ranges, recipe_where(asked.recipe));
  out.tested = test(stored, dataset, tested);
  const std::vector<net::OutputScore> scores = task_scores(dataset);
  out.top1 =
      experiments::top1_intervals(dataset, out.tested, out.tested,
                                  experiments::scores_of(dataset, scores, out.tested, out.tested))
          .top1;
  if (dataset.target() != net::TargetKind::classes)
    out.figure = experiments::judged_of(dataset, scores, out.tested, out.tested);
  if (network.before) out.compared = compare(network, asked, dataset, settled, out.tested);
}

}  // namespace

Trained train(const TrainRequest& request, const Context& context, const TrainHooks& hooks) {
  const net::RunScope scope(context.run);
  TrainRequest asked = request;
  asked.recipe = recipe_path(asked.recipe, context.folders);
  Settled settled = settle(asked);
  require_writable_folder(asked.out);
  const Dataset loaded =
      net::view_of(net::load_dataset(asked.data, context.folders.cache), settled.view);
  const std::int64_t steps = net::planned_steps(settled.train, loaded);
  // The recommended warm-up is for long runs; a short one would end before its full rate.
  if (!asked.warmup) settled.train.warmup = std::min(settled.train.warmup, steps / 10);
  net::LoadedNetwork network = load(asked, settled, loaded);
  Graph& graph = network.graph;
  const Dataset dataset = experiments::at_outputs_of(graph, loaded);
  if (dataset.target() == net::TargetKind::values &&
      settled.train.objectives == net::TrainOptions().objectives)
    settled.train.objectives = {"squared_error"};
  net::Numerics float32;
  std::unique_ptr<policies::StagedNumerics> quantized;
  if (!settled.float32)
    quantized = std::make_unique<policies::StagedNumerics>(settled.recipe, graph,
                                                           recipe_where(asked.recipe));
  if (quantized) quantized->require_options(recipe_where(asked.recipe), settled.train);
  context.on_checked();
  say_notes(context, network, dataset, settled);

  make_folder(asked.out);
  const bool writes = asked.ranks == nullptr || asked.ranks->rank() == 0;
  // Two runs in one folder would mix their rows.
  std::optional<FileLock> lock;
  if (writes) {
    lock.emplace(asked.out + "/.train.lock", asked.out + ": another training run is writing to it");
  }
  const std::string metrics = asked.out + "/metrics.jsonl";
  const net::RunFile file = run_file(asked, settled, network.has_weights);
  const std::vector<policies::StageStart>& starts = settled.recipe.stages();
  Trained out{
      .checkpoint = fmt::format("{}/{}-{}.safetensors", asked.out, graph.name, dataset.name()),
      .recipe = settled.recipe,
      .dataset = dataset,
      .stages = starts.size()};
  for (const std::string& path : {out.checkpoint, metrics, file.path}) require_replaceable(path);
  require_other_checkpoint(asked, out.checkpoint);
  Run training{graph,
               dataset,
               quantized.get(),
               starts.empty() ? nullptr : quantized.get(),
               net::KeptBytes(quantized ? static_cast<net::Numerics&>(*quantized) : float32),
               stored_bytes(graph, settled)};
  const std::int64_t last =
      run(graph, training, settled.train, file, metrics, out.checkpoint, steps, asked.ranks, hooks);
  if (!writes) return out;
  out.stage = training.stage(last);
  if (out.stage && *out.stage < out.stages)
    context.say(fmt::format(
        "note: training ended in stage {}; the test uses the last one, stage {}, as eval does",
        *out.stage, out.stages));

  const policies::FixedRanges ranges =
      quantized ? quantized->learned_ranges(asked.train.patience > 0) : policies::FixedRanges();
  net::write_safetensors(out.checkpoint, described(network, dataset, settled, ranges),
                         storage(asked.store));
  test_checkpoint(out, asked, settled, network, ranges);
  if (const net::KeptBytes::Sums* const kept = training.numerics.of_epoch(last)) out.kept = *kept;
  if (!training.stored.empty()) {
    out.stored = training.stored.back();
    out.stored_float32 = policies::parameter_bytes({Recipe(), graph}, settled.train);
  }
  return out;
}

namespace {

/// The same numbers of the test split as in a row.
Json test_json(const Trained& trained) {
  const net::Evaluation& tested = trained.tested;
  Json metrics{{"top1", trained.accuracy()},
               {"n", tested.n},
               {"ci95", {nullptr, nullptr}},
               {"loss", tested.loss}};
  if (std::isfinite(trained.top1.low)) metrics["ci95"] = {trained.top1.low, trained.top1.high};
  if (trained.figure) {
    metrics["top1"] = nullptr;
    metrics["metric"] = trained.figure->measure->name;
    metrics["value"] = trained.figure->value.value_or(NAN);
  }
  if (trained.dataset.kind() == net::DataKind::text) {
    metrics["perplexity"] = net::perplexity(tested.loss);
    metrics[fmt::format("bits_per_{}", trained.dataset.text_unit())] =
        net::bits_per_character(tested.loss);
  }
  return metrics;
}

}  // namespace

Json json_of(const Trained& trained) {
  const auto digits = [](double value) { return policies::significant(value, 6); };
  Json json = {{"checkpoint", utf8_text(trained.checkpoint)},
               {"recipe", trained.recipe.json()},
               {"metrics", test_json(trained)},
               {"kept", nullptr}};
  if (trained.compared)
    json["compared"] = {{"original", metrics_json(trained.compared->original, true)},
                        {"before", metrics_json(trained.compared->before, false)},
                        {"after", metrics_json(trained.compared->after, false)}};
  if (trained.kept)
    json["kept"] = {{"bytes_per_sample", digits(trained.kept->per_sample())},
                    {"float32_bytes_per_sample", digits(trained.kept->float32_per_sample())}};
  if (trained.stored)
    json["stored"] = {{"master_bytes_per_parameter", digits(trained.stored->master)},
                      {"state_bytes_per_parameter", digits(trained.stored->state)}};
  if (trained.stage) {
    json["stage"] = *trained.stage;
    json["test_stage"] = trained.stages;
  }
  return json;
}

}  // namespace numemu::api
