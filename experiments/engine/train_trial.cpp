// Training trials: data cut to size, a network trained and evaluated under one recipe; gradients of
// its layers.
#include "experiments/engine/train_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/ops/losses.hpp"
#include "emu/net/train/evaluate.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "policies/numerics/staged_numerics.hpp"
#include "policies/recipe/update_json.hpp"

namespace numemu::experiments {
namespace {

constexpr std::size_t kDigestDigits = 16;  // of data sets

/// The first samples of another set.
class FirstSamples final : public net::Samples {
 public:
  FirstSamples(const net::Dataset& whole, const net::SplitSizes& sizes) : whole_(whole.samples()) {
    facts_ = whole_->facts();
    facts_.sizes = sizes;
    facts_.digest =
        sha256_hex(fmt::format("{} first {} {}", whole.digest(), sizes.train, sizes.validation))
            .substr(0, kDigestDigits);
  }

  void read(net::Part part, std::int64_t id, const net::AugmentDraw* draw, float* x,
            net::TargetSpan targets) const override {
    whole_->read(part, id, draw, x, targets);
  }

 private:
  std::shared_ptr<const net::Samples> whole_;
};

Json whole_recipe(const TrainTrial& trial) {
  Json recipe = trial.recipe;
  if (!recipe.is_object()) throw Error("recipe of a training trial: expected an object");
  const Json* const optimizer = recipe.find_path("/update/optimizer");
  if (optimizer != nullptr && *optimizer != trial.options.optimizer) {
    throw Error(
        fmt::format("recipe of a training trial: update.optimizer: {} contradicts the trial's '{}'",
                    optimizer->dump(), trial.options.optimizer));
  }
  // Objectives without an optimizer of their own have the trial's.
  if (optimizer == nullptr && recipe.contains("objectives"))
    recipe["update"]["optimizer"] = trial.options.optimizer;
  return recipe;
}

net::TrainOptions options_of(const TrainTrial& trial, const policies::Recipe& recipe) {
  net::TrainOptions options = trial.options;
  options.seed = trial.seed;
  policies::use_objectives(recipe, "recipe of a training trial", options);
  return options;
}

std::string digest_of(const std::vector<net::NamedTensor>& start) {
  std::string text;
  for (const net::NamedTensor& tensor : start) {
    text += fmt::format("{} {} {}\n", tensor.name, net::to_string(tensor.value.shape),
                        sha256_hex({reinterpret_cast<const char*>(tensor.value.data.data()),
                                    tensor.value.data.size() * sizeof(float)}));
  }
  return sha256_hex(text).substr(0, kDigestDigits);
}

/// As inference uses the recipe: its last stage, weights once, activation scales from calibration.
net::Evaluation test(const net::Graph& graph, const net::Dataset& data,
                     const policies::Recipe& recipe, std::int64_t samples) {
  policies::RecipeNumerics numerics(recipe.last_stage(), graph);
  freeze(numerics, graph, data);
  return net::evaluate(graph, data, net::Split::test, samples, numerics);
}

}  // namespace

net::Dataset restricted(const net::Dataset& data, std::int64_t train_samples, bool validation) {
  if (train_samples < 0 || train_samples > data.train_count()) {
    throw Error(fmt::format("{}: expected at most its {} training samples, not {}", data.name(),
                            data.train_count(), train_samples));
  }
  const std::int64_t train = train_samples == 0 ? data.train_count() : train_samples;
  return {data.name(),
          std::make_shared<FirstSamples>(
              data, net::SplitSizes{.train = train,
                                    .validation = validation ? data.validation_count() : 0,
                                    .calibration = std::min(train, data.calibration_count()),
                                    .test = data.test_count()})};
}

void require_trainable(const TrainTrial& trial, net::Graph graph, const std::string& where) {
  const policies::Recipe recipe = parsed_recipe(trial);
  policies::StagedNumerics(recipe, graph, where).require_options(where, options_of(trial, recipe));
}

TrainOutcome run_train_trial(const TrainTrial& trial, const net::Dataset& whole) {
  const policies::Recipe recipe = parsed_recipe(trial);
  const net::TrainOptions options = options_of(trial, recipe);
  const net::Dataset data = restricted(whole, trial.train_samples, options.patience > 0);
  net::Graph graph = initial_network(trial, data);
  if (!trial.start.empty())
    net::load_parameters(graph, {.tensors = trial.start, .metadata = {}},
                         "start of a training trial");
  const std::string where = "recipe of a training trial";
  policies::StagedNumerics staged(recipe, graph, where);
  staged.require_options(where, options);
  const auto around = trial.around.make ? trial.around.make(staged) : nullptr;
  net::Observing numerics(around ? *around : staged,
                          {.before = [&](const net::Step& step, const net::Product& p) {
                            if (trial.before && step.phase == net::Phase::training)
                              trial.before(p, step.index);
                          }});
  const bool text = data.kind() == net::DataKind::text;
  const auto metric_of = [text](const net::Evaluation& tested) {
    return text ? net::bits_per_character(tested.loss)
                : static_cast<double>(tested.correct) / static_cast<double>(tested.n);
  };
  TrainOutcome outcome{.accuracy = !text};
  // The training refuses a batch below 1.
  const std::int64_t batch = std::max<std::int64_t>(1, options.batch),
                     all_updates = (data.train_count() + batch - 1) / batch * options.epochs;
  net::TrainHooks hooks;
  hooks.on_rate = [&](double rate) { staged.set_learning_rate(rate); };
  std::int64_t updates = 0;
  std::optional<std::int64_t>& diverged = outcome.diverged;
  hooks.on_step = [&](std::int64_t step, std::int64_t, double loss) {
    ++updates;
    if (std::isfinite(loss))
      diverged.reset();
    else if (!diverged)
      diverged = updates;
    if (trial.on_step) trial.on_step(graph, step);
    if (trial.on_loss) trial.on_loss(loss);
    // The test behind update u is number floor(u tests / updates).
    if (updates * trial.tests / all_updates == (updates - 1) * trial.tests / all_updates) return;
    outcome.at.push_back(static_cast<double>(updates));
    outcome.reached.push_back(metric_of(test(graph, data, recipe, trial.eval_samples)));
  };
  if (trial.on_epoch) {
    hooks.on_epoch = [&](const net::EpochMetrics& epoch) {
      trial.on_epoch(epoch, staged.stage(epoch.epoch));
    };
  }
  const std::vector<net::EpochMetrics> epochs = net::train(graph, data, options, numerics, hooks);
  const net::Evaluation tested = test(graph, data, recipe, trial.eval_samples);
  outcome.metric = diverged ? NAN : metric_of(tested);
  outcome.correct = tested.correct;
  outcome.n = tested.n;
  outcome.train_loss = epochs.empty() ? NAN : epochs.back().train_loss;
  return outcome;
}

policies::Recipe parsed_recipe(const TrainTrial& trial) {
  return policies::Recipe::make(whole_recipe(trial), "recipe of a training trial", trial.seed);
}

net::Graph initial_network(const TrainTrial& trial, const net::Dataset& data) {
  net::LoadedNetwork network = net::load_network(trial.net, data);
  if (!network.has_weights) net::initialize(network.graph, trial.seed);
  return std::move(network.graph);
}

bool has_weights(const TrainTrial& trial, const net::Dataset& data) {
  return net::load_network(trial.net, data).has_weights;
}

void train_under(net::Numerics& numerics, net::Graph& graph, const TrainTrial& trial,
                 const net::Dataset& data) {
  net::TrainOptions options = trial.options;
  options.seed = trial.seed;
  net::train(graph, restricted(data, trial.train_samples, false), options, numerics);
}

net::Graph trained_in_float32(const TrainTrial& trial, const net::Dataset& data) {
  net::Graph graph = initial_network(trial, data);
  net::Numerics float32;
  train_under(float32, graph, trial, data);
  return graph;
}

double test_top1(const net::Graph& graph, const net::Dataset& data, std::int64_t samples,
                 net::Numerics& numerics) {
  const net::Evaluation tested = net::evaluate(graph, data, net::Split::test, samples, numerics);
  return static_cast<double>(tested.correct) / static_cast<double>(tested.n);
}

Json point_of(const TrainTrial& trial, const net::Dataset& data) {
  Json options = Json::object();
  const policies::Recipe recipe = parsed_recipe(trial);
  for (const auto& [name, value] : net::described(options_of(trial, recipe))) options[name] = value;
  Json point{{"net", trial.net},
             {"data", data.name()},
             {"samples", data.digest()},
             {"seed", trial.seed},
             {"train_samples", trial.train_samples},
             {"eval_samples", trial.eval_samples},
             {"options", options},
             {"recipe", recipe.json()}};
  if (net::names_onnx_file(trial.net) || trial.net.ends_with(".safetensors"))
    point["network"] = net::digest_of(net::load_network(trial.net, data).graph);
  if (trial.tests > 0) point["tests"] = trial.tests;
  if (!trial.around.name.empty()) point["around"] = trial.around.name;
  if (!trial.start.empty()) point["start"] = digest_of(trial.start);
  return point;
}

net::Graph briefly_trained(const std::string& name, const net::Dataset& data, std::int64_t samples,
                           std::uint64_t seed) {
  TrainTrial trial;
  trial.net = name;
  trial.seed = seed;
  trial.train_samples = samples;
  trial.options.optimizer = net::recommended_optimizer(name);
  net::use_recommended_rates(trial.options, name);
  trial.options.epochs = 1;
  trial.options.batch = 32;
  return trained_in_float32(trial, data);
}

TrainingPass training_pass(const net::Graph& graph, const net::Tensor& x,
                           const std::vector<std::int32_t>& classes, net::Numerics& numerics,
                           std::int64_t index, std::uint64_t seed) {
  const FloatGuard guard;
  const net::Step step{.phase = net::Phase::training, .index = index};
  numerics.begin_step(step);
  TrainingPass pass{.gradients = {}, .scale = numerics.loss_scale(step)};
  net::Tape tape = net::forward_training(graph, x, numerics, step, seed);
  net::Tensor grad_output;
  net::cross_entropy(tape.output, classes, &grad_output, pass.scale);
  pass.gradients = net::backward(graph, std::move(tape), std::move(grad_output), numerics);
  numerics.end_step(step);
  return pass;
}

std::vector<LayerGradient> layer_gradients(const net::Graph& graph, const net::Dataset& data,
                                           std::int64_t batch, std::int64_t steps,
                                           std::uint64_t seed) {
  if (batch < 1 || batch > data.train_count() || steps < 1) {
    throw Error(
        fmt::format("gradients of {}: expected a batch of 1 to {} and at least one step, "
                    "not {} and {}",
                    graph.name, data.train_count(), batch, steps));
  }
  const FloatGuard guard;
  const std::int64_t per_epoch = data.train_count() / batch;
  std::map<std::string, LayerGradient> read;
  net::Observing numerics({.before = [&](const net::Step&, const net::Product& p) {
    if (p.kind != net::GemmKind::wgrad) return;
    const net::Tensor& source = *p.a.source;
    LayerGradient& layer = read[std::string(p.layer)];
    // [outer, rows, inner, width]: the channels of all inner matrices of a row lie together.
    layer.channels = p.a.stack.inner * p.a.stack.width;
    layer.rows += source.size() / layer.channels;
    layer.g.insert(layer.g.end(), source.data.begin(), source.data.end());
  }});
  std::vector<std::int64_t> order;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t place = step % per_epoch;
    if (place == 0) order = net::shuffled(data.train_count(), seed, step / per_epoch);
    const auto first = order.begin() + place * batch;
    net::Targets targets;
    const net::Tensor x = data.train_batch({first, first + batch}, targets);
    training_pass(graph, x, targets.classes, numerics, step, seed);
  }
  std::vector<LayerGradient> gradients;
  for (const std::string& name : net::gemm_layer_names(graph)) {
    LayerGradient& layer = read[name];
    layer.layer = name;
    gradients.push_back(std::move(layer));
  }
  return gradients;
}

}  // namespace numemu::experiments
