// The training loop: one step is forward, loss, backward, and every moment of the numerics in a
// fixed order.
#include "emu/net/train/train.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>

#include "emu/net/ops/cross_entropy.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/schedule.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/stats/pairwise.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"

namespace numemu::net {
namespace {

void require(bool condition, const char* key, const char* expected) {
  if (!condition) throw Error(std::string("training option ") + key + ": expected " + expected);
}

void check(const TrainOptions& o, const Graph& graph, const Dataset& data) {
  require(std::isfinite(o.learning_rate) && o.learning_rate >= 0, "learning_rate",
          "a finite number >= 0");
  require(o.momentum >= 0 && o.momentum < 1, "momentum", "a number in [0, 1)");
  require(o.beta1 >= 0 && o.beta1 < 1, "beta1", "a number in [0, 1)");
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2", "a number in [0, 1)");
  require(std::isfinite(o.epsilon) && o.epsilon > 0, "epsilon", "a finite number > 0");
  require(std::isfinite(o.weight_decay) && o.weight_decay >= 0, "weight_decay",
          "a finite number >= 0");
  require(o.epochs >= 0 && o.epochs <= 1'000'000, "epochs", "a number in 0 to 1000000");
  require(o.batch >= 1, "batch", "at least 1");
  if (graph.input_shape != data.input_shape()) {
    throw Error("network " + graph.name + " takes images " + to_string(graph.input_shape) +
                ", data set " + data.name() + " has " + to_string(data.input_shape()));
  }
}

// One worker's gradients and what it saw.
struct StepResult {
  Classified classified;
  std::vector<Tensor> gradients;
};

StepResult compute_gradients(const Graph& graph, const Tensor& x,
                             const std::vector<std::uint8_t>& labels, Numerics& numerics) {
  const float scale = numerics.loss_scale();
  Tape tape = forward_training(graph, x, numerics);
  StepResult result;
  Tensor grad_output;
  result.classified = cross_entropy(tape.output, labels, &grad_output, scale);
  result.gradients = backward(graph, std::move(tape), std::move(grad_output), numerics);
  if (scale == 1) return result;
  for (Tensor& gradient : result.gradients) {
    float* const g = gradient.data.data();
    for_each_element(gradient.size(), [=](std::int64_t i) { g[i] = neutral(g[i] / scale); });
  }
  return result;
}

// Exchange among the workers (here one), penalties, update.
void apply(const std::vector<Parameter*>& parameters, std::vector<Tensor> gradients,
           double learning_rate, Optimizer& optimizer, Numerics& numerics) {
  std::vector<std::vector<Tensor>> workers;
  workers.push_back(std::move(gradients));
  gradients = numerics.exchange(std::move(workers));
  optimizer.begin_step(learning_rate);
  std::vector<float> delta;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    Parameter& parameter = *parameters[p];
    numerics.penalty(parameter.name, parameter.value, gradients.at(p));
    optimizer.step(p, parameter, gradients[p], delta);
    numerics.update({parameter.name, &parameter.value, &gradients[p], &delta});
  }
}

}  // namespace

std::vector<EpochMetrics> train(Graph& graph, const Dataset& data, const TrainOptions& options,
                                Numerics& numerics, const TrainHooks& hooks) {
  const FloatGuard guard;
  check(options, graph, data);
  const Schedule schedule = find_schedule(options.schedule);
  const std::vector<Parameter*> parameters = graph.parameters();
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(options, parameters.size());
  const std::int64_t count = data.train_count();
  const std::int64_t batches = (count + options.batch - 1) / options.batch;
  Progress progress{0, batches * options.epochs, 0, options.epochs};
  std::vector<EpochMetrics> history;
  for (; progress.epoch < options.epochs; ++progress.epoch) {
    const std::vector<std::int64_t> order = shuffled(count, options.seed, progress.epoch);
    EpochMetrics metrics{.epoch = progress.epoch};
    std::int64_t right = 0;
    for (std::int64_t first = 0; first < count; first += options.batch, ++progress.step) {
      const std::int64_t size = std::min(options.batch, count - first);
      const std::vector<std::int64_t> ids(order.begin() + first, order.begin() + first + size);
      std::vector<std::uint8_t> labels;
      const Tensor x = data.train_batch(ids, labels);
      const Step step{Phase::training, progress.step, &ids};
      numerics.begin_step(step);
      StepResult result = compute_gradients(graph, x, labels, numerics);
      if (numerics.accept_gradients(result.gradients)) {
        apply(parameters, std::move(result.gradients), options.learning_rate * schedule(progress),
              *optimizer, numerics);
      }
      numerics.end_step(step);
      const Classified& seen = result.classified;
      const double loss = stats::pairwise_sum(size, [&](std::int64_t i) { return seen.loss[i]; });
      metrics.train_loss += loss;
      right += std::accumulate(seen.right.begin(), seen.right.end(), std::int64_t{0});
      if (hooks.on_step)
        hooks.on_step(progress.step, progress.steps, loss / static_cast<double>(size));
    }
    metrics.train_loss /= static_cast<double>(count);
    metrics.train_top1 = static_cast<double>(right) / static_cast<double>(count);
    const Evaluation validation = evaluate(graph, data, Split::validation, 0, numerics);
    metrics.validation_loss = validation.loss;
    if (validation.n > 0)
      metrics.validation_top1 =
          static_cast<double>(validation.correct) / static_cast<double>(validation.n);
    history.push_back(metrics);
    if (hooks.on_epoch) hooks.on_epoch(metrics);
  }
  return history;
}

}  // namespace numemu::net
