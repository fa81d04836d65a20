#include "emu/net/train/step.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "emu/net/memory.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/profile.hpp"
#include "emu/net/train/objective.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {

namespace {

constexpr std::int64_t kBlock = 4096, kLanes = 8;

double block_sum(const float* x, std::int64_t n) {
  std::array<double, kLanes> lanes{};
  for (std::int64_t i = 0; i < n; ++i) lanes[i % kLanes] += double{x[i]} * double{x[i]};
  return pairwise_sum(kLanes, [&](std::int64_t lane) { return lanes[lane]; });
}

double sum_of_squares(const Tensor& tensor) {
  const std::int64_t blocks = (tensor.size() + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<std::size_t>(blocks));
  const float* const x = tensor.data.data();
  double* const out = sums.data();
  for_each_row(blocks, kBlock, [=, n = tensor.size()](std::int64_t b) {
    out[b] = block_sum(x + b * kBlock, std::min(kBlock, n - b * kBlock));
  });
  return pairwise_sum(blocks, [&](std::int64_t b) { return sums[b]; });
}

}  // namespace

double global_norm(std::span<const Tensor> tensors) {
  std::vector<double> sums;
  for (const Tensor& tensor : tensors) sums.push_back(sum_of_squares(tensor));
  return std::sqrt(pairwise_sum(static_cast<std::int64_t>(sums.size()),
                                [&](std::int64_t t) { return sums[t]; }));
}

void clip_to_norm(std::span<Tensor> tensors, double norm, double limit) {
  if (!(norm > limit)) return;
  const float factor = static_cast<float>(limit / norm);
  for (Tensor& tensor : tensors) {
    float* const x = tensor.data.data();
    for_each_element(tensor.size(), [=](std::int64_t i) { x[i] = neutral(x[i] * factor); });
  }
}

namespace {

// A run of the batch's samples, which one worker handles at a time.
struct Part {
  std::int64_t worker = 0, micro_batch = 0;
  std::int64_t first = 0, count = 0;
  float weight = 1;  // of its mean loss
};

std::vector<Part> parts_of(std::int64_t samples, const TrainOptions& options) {
  const std::int64_t each = options.micro_batches, all = options.workers * each;
  const std::int64_t present = std::clamp<std::int64_t>(samples, 1, all);  // the others are empty
  std::vector<Part> parts;
  std::int64_t first = 0;
  for (std::int64_t number = 0; number < present; ++number) {
    Part part{.worker = number / each, .micro_batch = number % each, .first = first};
    part.count = samples / all + (number < samples % all ? 1 : 0);
    // The default exchange divides by the worker's parts and by the workers.
    const std::int64_t workers = (present + each - 1) / each,
                       of_worker = std::min(each, present - part.worker * each);
    part.weight = static_cast<float>(static_cast<double>(part.count * workers * of_worker) /
                                     static_cast<double>(samples));
    first += part.count;
    parts.push_back(part);
  }
  return parts;
}

// The samples of a part alone.
StepInput cut(const StepInput& input, const Part& part) {
  const std::int64_t samples = input.x.dim(0);
  const auto piece = [&](const auto& all, auto& own) {
    const std::int64_t each = static_cast<std::int64_t>(all.size()) / samples;
    own.assign(all.begin() + part.first * each, all.begin() + (part.first + part.count) * each);
  };
  StepInput own;
  own.index = input.index;
  own.x.shape = input.x.shape;
  own.x.shape[0] = part.count;
  piece(input.x.data, own.x.data);
  piece(input.targets.classes, own.targets.classes);
  piece(input.targets.values, own.targets.values);
  piece(input.samples, own.samples);
  return own;
}

// One part's gradients without the loss scale, behind those of the parts before; `result` gets what
// it saw.
void compute_gradients(Graph& graph, const StepInput& input, const Step& step, float weight,
                       const Objective& objective, std::uint64_t seed, Numerics& numerics,
                       StepResult& result, std::vector<Tensor>& gradients) {
  const float scale = result.loss_scale;
  Tape tape = forward_training(graph, input.x, numerics, step, seed);
  apply_buffers(graph, std::exchange(tape.buffers, {}));
  Tensor grad_output;
  const Classified seen =
      objective.evaluate(tape.output, input.targets, &grad_output, scale * weight);
  result.seen.loss.insert(result.seen.loss.end(), seen.loss.begin(), seen.loss.end());
  result.seen.right.insert(result.seen.right.end(), seen.right.begin(), seen.right.end());
  result.seen.counted += seen.counted;
  for (Tensor& gradient : backward(graph, std::move(tape), std::move(grad_output), numerics)) {
    if (scale != 1) {
      float* const g = gradient.data.data();
      for_each_element(gradient.size(), [=](std::int64_t i) { g[i] = neutral(g[i] / scale); });
    }
    gradients.push_back(std::move(gradient));
  }
}

// Each part's gradients, taken from those of all.
std::vector<WorkerGradient> by_part(const std::vector<Part>& parts, std::vector<Tensor> all) {
  std::vector<WorkerGradient> gradients;
  const auto each = static_cast<std::ptrdiff_t>(all.size() / parts.size());
  auto next = std::make_move_iterator(all.begin());
  for (const Part& part : parts) {
    gradients.push_back({part.worker, part.micro_batch, {next, next + each}});
    next += each;
  }
  return gradients;
}

// Exchange, penalties, clipping, update.
void apply(Graph& graph, const Step& step, std::vector<WorkerGradient> sent, double learning_rate,
           double clip, Optimizer& optimizer, Numerics& numerics, StepResult& result) {
  std::vector<Tensor> gradients = numerics.exchange(step, std::move(sent));
  const Section section(SectionKind::update, "", "update");
  const std::vector<Parameter*> parameters = graph.parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!parameters[p]->trained) continue;
    result.penalty +=
        numerics.penalty(step, parameters[p]->name, parameters[p]->value, gradients.at(p));
  }
  result.gradient_norm = global_norm(gradients);
  if (clip > 0) clip_to_norm(gradients, result.gradient_norm, clip);
  optimizer.begin_step(learning_rate);
  std::vector<float> delta;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    Parameter& parameter = *parameters[p];
    if (!parameter.trained) continue;
    optimizer.step(p, parameter, gradients[p], delta);
    numerics.update(step, {parameter.name, &parameter.value, &gradients[p], &delta});
    for (const StateTensor& state : optimizer.state(p))
      numerics.optimizer_state(step, parameter.name, state.name, *state.value);
  }
}

// The step of objective number `place`.
StepResult objective_step(Graph& graph, const StepInput& input, const TrainOptions& options,
                          std::size_t place, Optimizer& optimizer, Numerics& numerics) {
  const auto count = static_cast<std::int64_t>(options.objectives.size());
  const Step step{Phase::training, input.index * count + static_cast<std::int64_t>(place),
                  &input.samples};
  const Objective& objective = find_objective(options.objectives.at(place));
  numerics.begin_step(step);
  StepResult result;
  result.loss_scale = numerics.loss_scale(step);
  const std::vector<Part> parts = parts_of(input.x.dim(0), options);
  const MemoryClaim waiting(static_cast<std::int64_t>(parts.size() - 1) * graph.parameter_count(),
                            "gradients of simulated workers");
  std::vector<Tensor> gradients;
  for (const Part& part : parts) {
    const bool whole = parts.size() == 1;
    const StepInput own = whole ? StepInput{} : cut(input, part);
    Step of_part = step;
    of_part.part = part.worker * options.micro_batches + part.micro_batch;
    if (!whole) of_part.samples = &own.samples;
    compute_gradients(graph, whole ? input : own, of_part, part.weight, objective, options.seed,
                      numerics, result, gradients);
  }
  result.accepted = numerics.accept_gradients(step, gradients);
  if (result.accepted) {
    apply(graph, step, by_part(parts, std::move(gradients)), input.learning_rate, options.clip,
          optimizer, numerics, result);
  }
  numerics.end_step(step);
  return result;
}

}  // namespace

StepResult training_step(Graph& graph, const StepInput& input, const TrainOptions& options,
                         Optimizer& optimizer, Numerics& numerics) {
  StepResult first = objective_step(graph, input, options, 0, optimizer.of_objective(0), numerics);
  for (std::size_t i = 1; i < options.objectives.size(); ++i)
    objective_step(graph, input, options, i, optimizer.of_objective(i), numerics);
  return first;
}

}  // namespace numemu::net
