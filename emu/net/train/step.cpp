#include "emu/net/train/step.hpp"

#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/profile.hpp"
#include "emu/net/train/clip.hpp"

namespace numemu::net {
namespace {

// One worker's gradients, unscaled; `result` gets what it saw.
std::vector<Tensor> compute_gradients(Graph& graph, const StepInput& input, const Step& step,
                                      std::uint64_t seed, Numerics& numerics, StepResult& result) {
  const float scale = numerics.loss_scale(step);
  Tape tape = forward_training(graph, input.x, numerics, step, seed);
  apply_buffers(graph, std::exchange(tape.buffers, {}));
  Tensor grad_output;
  result.loss_scale = scale;
  result.seen = cross_entropy(tape.output, input.labels, &grad_output, scale);
  std::vector<Tensor> gradients =
      backward(graph, std::move(tape), std::move(grad_output), numerics);
  if (scale == 1) return gradients;
  for (Tensor& gradient : gradients) {
    float* const g = gradient.data.data();
    for_each_element(gradient.size(), [=](std::int64_t i) { g[i] = neutral(g[i] / scale); });
  }
  return gradients;
}

// Exchange among the workers (here one), penalties, clipping, update. Returns the norm.
double apply(Graph& graph, const Step& step, std::vector<Tensor> gradients, double learning_rate,
             double clip, Optimizer& optimizer, Numerics& numerics) {
  std::vector<WorkerGradient> workers;
  workers.push_back({.parameters = std::move(gradients)});
  gradients = numerics.exchange(step, std::move(workers));
  const Section section(SectionKind::update, "", "update");
  const std::vector<Parameter*> parameters = graph.parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p]->trained)
      numerics.penalty(step, parameters[p]->name, parameters[p]->value, gradients.at(p));
  }
  const double norm = global_norm(gradients);
  if (clip > 0) clip_to_norm(gradients, norm, clip);
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
  return norm;
}

}  // namespace

StepResult training_step(Graph& graph, const StepInput& input, const TrainOptions& options,
                         Optimizer& optimizer, Numerics& numerics) {
  const Step step{Phase::training, input.index, &input.samples};
  numerics.begin_step(step);
  StepResult result;
  std::vector<Tensor> gradients =
      compute_gradients(graph, input, step, options.seed, numerics, result);
  result.accepted = numerics.accept_gradients(step, gradients);
  if (result.accepted) {
    result.gradient_norm = apply(graph, step, std::move(gradients), input.learning_rate,
                                 options.clip, optimizer, numerics);
  }
  numerics.end_step(step);
  return result;
}

}  // namespace numemu::net
