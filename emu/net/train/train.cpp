// The training loop: epochs of steps, then validation; everything it carries from step to step is
// in a RunState.
#include "emu/net/train/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "emu/net/data/dataset.hpp"
#include "emu/net/data/view.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/profile.hpp"
#include "emu/net/train/evaluate.hpp"
#include "emu/net/train/image_sizes.hpp"
#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/ranks.hpp"
#include "emu/net/train/schedule.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/size_smoothing.hpp"
#include "emu/net/train/step.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/version.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kCheckedSteps = 3;  ///< of a run, after which ranks are compared
constexpr std::int64_t kMostSizedCopies = 1024;

[[noreturn]] void refuse_sizes(const std::string& why) {
  throw Error("training option image_sizes: " + why);
}

void require_square_images(const Dataset& data) {
  if (data.kind() == DataKind::images && data.input_shape()[0] == data.input_shape()[1]) return;
  refuse_sizes(fmt::format("expected square images, data set {} has {} of {}", data.name(),
                           to_string(data.kind()), to_string(data.input_shape())));
}

/// The operators and parameters of a network serve several image sizes where no shape of theirs
/// depends on one.
void require_sizes_fit(const Graph& graph, const Dataset& data, const TrainOptions& options) {
  if (options.sizes.shares.empty()) return;
  require_square_images(data);
  const Shape expected = value_shapes(graph, batch_shapes(graph, 1)).back();
  for (const auto& [size, share] : options.sizes.shares) {
    std::string why;
    try {
      const Shape input{1, size, size, data.input_shape().back()};
      if (value_shapes(graph, std::span(&input, 1)).back() != expected)
        why = "its results have another shape";
    } catch (const Error& error) {
      why = error.what();
    }
    if (!why.empty()) {
      refuse_sizes(fmt::format("network {} does not take images of {} x {} pixels: {}", graph.name,
                               size, size, why));
    }
    const PlannedStep step = sized_step(options, data.input_shape()[0], size);
    if (step.copies > kMostSizedCopies)
      refuse_sizes(fmt::format("expected at most {} copies, not {} at {} pixels", kMostSizedCopies,
                               step.copies, size));
    if (step.samples < options.workers * options.micro_batches)
      refuse_sizes(
          fmt::format("expected at least as many samples of a step as parts, {}, not {} at {} "
                      "pixels",
                      options.workers * options.micro_batches, step.samples, size));
  }
}

// Structure and first values: a network that has another name for the same thing is the same.
std::string digest_of_weights(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) {
    text += fmt::format("{} {}", node.name, node.op->kind());
    for (const int input : node.inputs) text += fmt::format(" {}", input);
    text += '\n';
  }
  for (const Parameter* parameter : graph.parameters()) {
    text += fmt::format("{} {} {} ", parameter->name, to_string(parameter->value.shape),
                        parameter->trained);
    text += sha256_hex({reinterpret_cast<const char*>(parameter->value.data.data()),
                        parameter->value.data.size() * sizeof(float)});
  }
  return sha256_hex(text).substr(0, 16);
}

RunIdentity identity_of(const Graph& graph, const Dataset& data, const TrainOptions& options,
                        const RunIdentity& given) {
  RunIdentity identity{{"net", graph.name},
                       {"data", data.name()},
                       {"data digest", data.digest()},
                       {"numerics version", kNumericsVersion}};
  for (const auto& pair : described(options)) identity.push_back(pair);
  identity.insert(identity.end(), given.begin(), given.end());
  identity.emplace_back("network and first weights", digest_of_weights(graph));
  return identity;
}

/// Each number `copies` times, as the rows of a batch are.
void repeat(std::vector<std::int64_t>& samples, std::int64_t copies) {
  std::vector<std::int64_t> rows;
  for (const std::int64_t id : samples) rows.insert(rows.end(), copies, id);
  samples = std::move(rows);
}

/// The outputs behind the first one that the data set has targets for.
std::vector<FurtherOutput> further_outputs(const Graph& graph, const Dataset& data) {
  std::vector<FurtherOutput> further;
  for (std::size_t o = 1; o < data.outputs(); ++o) {
    const TargetFacts& facts = data.targets_of(o);
    if (facts.target == TargetKind::none) continue;
    const auto found = std::ranges::find(graph.outputs, facts.output, &GraphOutput::name);
    if (found == graph.outputs.end())
      throw Error("training: network " + graph.name + ": expected an output " + facts.output +
                  ", of which data set " + data.name() + " has targets");
    further.push_back(
        {found->value, facts.target == TargetKind::classes ? "cross_entropy" : "squared_error"});
  }
  return further;
}

/// Leaves the elements of targets.further that further_outputs() are of.
void drop_untargeted(const Dataset& data, Targets& targets) {
  std::size_t output = 0;
  std::erase_if(targets.further, [&](const Targets&) {
    return data.targets_of(++output).target == TargetKind::none;
  });
}

std::string text_of(const RunIdentity& identity) {
  std::string text;
  for (const auto& [name, value] : identity) text += fmt::format("{}: {}\n", name, value);
  return text;
}

/// A network takes the images of a step while this lives.
class ResizedInput {
 public:
  ResizedInput(Graph& graph, const Shape& batch) : shape_(graph.inputs[0].shape), before_(shape_) {
    // A packed batch of several inputs has one size.
    if (graph.inputs.size() == 1) shape_.assign(batch.begin() + 1, batch.end());
  }
  ~ResizedInput() { shape_ = std::move(before_); }
  ResizedInput(const ResizedInput&) = delete;
  ResizedInput& operator=(const ResizedInput&) = delete;

 private:
  Shape& shape_;
  Shape before_;
};

/// One call of train().
class Loop {
 public:
  Loop(Graph& graph, const Dataset& data, const TrainOptions& options, Numerics& numerics,
       const TrainHooks& hooks, const RunFile& file)
      : graph_(graph),
        data_(data),
        options_(options),
        numerics_(numerics, options),
        hooks_(hooks),
        file_(file),
        ranks_(hooks.ranks == nullptr ? alone_ : *hooks.ranks),
        schedule_(find_schedule(options.schedule)),
        parameters_(graph.parameters()),
        optimizer_(make_optimizer(
            options, std::vector<const Parameter*>(parameters_.begin(), parameters_.end()))),
        steps_(planned_steps(options, data)),
        further_(further_outputs(graph, data)) {
    for (const auto& [size, share] : options.sizes.shares)
      views_.emplace(size, view_of(data, {.image_size = size}));
  }

  std::vector<EpochMetrics> run() {
    if (!file_.path.empty() || ranks_.count() > 1)
      identity_ = identity_of(graph_, data_, options_, file_.identity);
    if (!file_.path.empty()) {
      if (!file_.fresh) read_run_state(file_.path, identity_, parts());
    }
    require_equal(ranks_, fmt::format("{} step {}", text_of(identity_), state_.step),
                  "network, data set, options or recipe");
    if (hooks_.on_start) hooks_.on_start(state_);
    while (!state_.finished && state_.epoch < options_.epochs) run_epoch();
    if (!state_.finished) finish();
    return state_.history;
  }

 private:
  Run parts() { return {graph_, *optimizer_, numerics_, state_}; }
  void store() {
    if (!file_.path.empty() && ranks_.rank() == 0) write_run_state(file_.path, identity_, parts());
  }

  void run_epoch() {
    const std::vector<std::int64_t> order =
        shuffled(data_.train_count(), options_.seed, state_.epoch);
    const std::vector<PlannedStep> plan = epoch_steps(options_, data_, state_.epoch);
    const std::int64_t steps = std::ssize(plan);
    while (state_.sums.steps < steps) {
      run_step(order, plan);
      const bool last = state_.sums.steps == steps;
      if (!last && file_.every > 0 && state_.step % file_.every == 0) store();
    }
    end_epoch();
  }

  void run_step(const std::vector<std::int64_t>& order, const std::vector<PlannedStep>& plan) {
    const PlannedStep& planned = plan.at(static_cast<std::size_t>(state_.sums.steps));
    const Progress progress{state_.step, steps_, state_.epoch, options_.epochs};
    StepInput input;
    input.index = state_.step;
    const auto first = order.begin() + planned.first;
    input.samples.assign(first, first + planned.samples);
    input.learning_rate =
        options_.learning_rate * rate_factor(schedule_, progress, options_.warmup);
    if (hooks_.on_rate) hooks_.on_rate(input.learning_rate);
    const std::int64_t place = state_.sums.steps + 1;
    input.exchange =
        options_.local_steps == 0 || place % options_.local_steps == 0 || place == std::ssize(plan);
    {
      const Section section(SectionKind::data, "", "batch");
      const Dataset& data = planned.image == 0 ? data_ : views_.at(planned.image);
      input.further = further_;
      input.x = data.train_batch(input.samples, input.targets,
                                 options_.augments() ? &options_.augment : nullptr, options_.seed,
                                 state_.epoch, planned.copies);
      drop_untargeted(data, input.targets);
      repeat(input.samples, planned.copies);
    }
    const StepResult result = trained(input, planned);
    const double loss = state_.sums.add(result, input.learning_rate);
    ++state_.step;
    if (state_.step <= kCheckedSteps) check_ranks();
    if (hooks_.on_step) hooks_.on_step(state_.step - 1, steps_, loss);
  }

  StepResult trained(StepInput& input, const PlannedStep& planned) {
    const ResizedInput resized(graph_, input.x.shape);
    input.loss_weight = numerics_.weight(graph_, input, planned);
    return training_step(graph_, input, options_, *optimizer_, numerics_, &ranks_);
  }

  /// Ranks that differ would go on with other weights.
  void check_ranks() {
    if (ranks_.count() == 1) return;
    NamedState state;
    numerics_.save_state(state);
    Sha256 digest;
    for (const Parameter* parameter : parameters_)
      digest.add(parameter->value.data.data(), parameter->value.data.size() * sizeof(float));
    for (const auto& [name, bytes] : state) digest.add(bytes.data(), bytes.size());
    require_equal(
        ranks_, digest.hex(),
        fmt::format("what a recipe keeps between the parts of a step (delayed scales) needs "
                    "one process: weights or the state of the numerics after step {}",
                    state_.step));
  }

  void end_epoch() {
    check_ranks();
    EpochMetrics metrics = state_.sums.metrics(state_.epoch, state_.step);
    const Evaluation validation = evaluate(graph_, data_, Split::validation, 0, numerics_);
    metrics.validation_loss = validation.loss;
    if (validation.n > 0)
      metrics.validation_top1 =
          static_cast<double>(validation.correct) / static_cast<double>(validation.n);
    numerics_.end_epoch(
        {metrics.epoch, metrics.train_loss,
         validation.n > 0 ? validation.loss : std::numeric_limits<double>::quiet_NaN()});
    state_.history.push_back(metrics);
    state_.sums = {};
    ++state_.epoch;
    if (options_.patience > 0) keep_best(metrics);
    if (hooks_.on_epoch) hooks_.on_epoch(metrics);
    if (state_.epoch < options_.epochs && !out_of_patience()) {
      store();
    } else {
      finish();
    }
  }

  void keep_best(const EpochMetrics& metrics) {
    BestEpoch& best = state_.best;
    if (best.epoch >= 0 && !(metrics.validation_loss < best.loss)) return;
    best = {metrics.epoch, metrics.validation_loss, {}};
    for (const Parameter* parameter : parameters_) best.values.push_back(parameter->value);
  }

  bool out_of_patience() const {
    return options_.patience > 0 && state_.epoch - 1 - state_.best.epoch >= options_.patience;
  }

  void finish() {
    for (std::size_t p = 0; p < state_.best.values.size(); ++p)
      parameters_[p]->value = state_.best.values[p];
    state_.finished = true;
    store();
  }

  Graph& graph_;
  const Dataset& data_;
  const TrainOptions& options_;
  SizeSmoothing numerics_;
  const TrainHooks& hooks_;
  const RunFile& file_;
  Ranks alone_;
  Ranks& ranks_;
  Schedule schedule_;
  std::vector<Parameter*> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::int64_t steps_;
  std::map<std::int64_t, Dataset> views_;  ///< by image size
  std::vector<FurtherOutput> further_;
  RunIdentity identity_;
  RunState state_;
};

}  // namespace

void require_fit(const Graph& graph, const Dataset& data, const TrainOptions& options) {
  check(options);
  if (data.target() == TargetKind::none)
    throw Error("training: expected a data set with targets, " + data.name() + " has none");
  for (const std::string& name : options.objectives) {
    if (find_objective(name).target == data.target()) continue;
    const bool classes = data.target() == TargetKind::classes;
    throw Error(fmt::format("training: objective {}: expected a data set of {}, {} has {}", name,
                            classes ? "numbers" : "classes", data.name(),
                            classes ? "classes" : "numbers (objective squared_error)"));
  }
  const bool several = data.inputs().size() > 1;
  if (several ? !std::ranges::equal(graph.inputs, data.inputs(), {}, &GraphInput::shape,
                                    &NamedShape::shape)
              : graph.inputs.size() != 1 || graph.inputs[0].shape != data.input_shape()) {
    throw Error("network " + graph.name + " takes " +
                (graph.inputs.empty() ? "nothing" : to_string(graph.inputs[0].shape)) +
                ", data set " + data.name() + " has " + to_string(data.input_shape()));
  }
  if (data.train_count() == 0)
    throw Error("data set " + data.name() +
                " has no training samples (npy: test=N keeps the last N samples for the test)");
  if (options.patience > 0 && data.validation_count() == 0)
    throw Error("training option patience: data set " + data.name() + " has no validation split");
  require_sizes_fit(graph, data, options);
}

std::int64_t planned_steps(const TrainOptions& options, const Dataset& data) {
  if (options.sizes.shares.empty())
    return options.epochs * ((data.train_count() + options.batch - 1) / options.batch);
  check(options);
  require_square_images(data);
  std::int64_t steps = 0;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch)
    steps += std::ssize(epoch_steps(options, data, epoch));
  return steps;
}

std::vector<EpochMetrics> train(Graph& graph, const Dataset& data, const TrainOptions& options,
                                Numerics& numerics, const TrainHooks& hooks, const RunFile& file) {
  const FloatGuard guard;
  require_fit(graph, data, options);
  if (hooks.ranks != nullptr && hooks.ranks->count() > options.workers) {
    throw Error(
        fmt::format("training option workers: expected at least as many as there are "
                    "ranks, {}, not {}",
                    hooks.ranks->count(), options.workers));
  }
  if (data.validation_count() > 0) {  // beside gradients and two tensors of an optimizer
    const PlannedPass validation =
        evaluation_pass(graph, data.validation_count(), 3 * graph.parameter_count());
    require_memory(std::span(&validation, 1));
  }
  return Loop(graph, data, options, numerics, hooks, file).run();
}

}  // namespace numemu::net
