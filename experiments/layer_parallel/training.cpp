#include "experiments/layer_parallel/training.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/schedule.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/step.hpp"
#include "formats/quantize.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::layer_parallel {
namespace {

bool filters(const Method& method, const net::Tensor& x) {
  return method.filtered && x.shape.size() == 4 && x.dim(1) % 2 == 0 && x.dim(2) % 2 == 0;
}

/// Every pixel becomes the mean of its 2 x 2.
void filter(net::Tensor& x) {
  const std::int64_t width = x.dim(2), channels = x.dim(3), row = width * channels;
  for (std::int64_t y = 0; y < x.dim(0) * x.dim(1); y += 2) {
    for (std::int64_t i = 0; i < row; i += 2 * channels) {
      for (std::int64_t c = 0; c < channels; ++c) {
        float* const first = x.data.data() + y * row + i + c;
        const float mean = (first[0] + first[channels] + first[row] + first[row + channels]) / 4;
        first[0] = first[channels] = first[row] = first[row + channels] = mean;
      }
    }
  }
}

std::vector<net::Tensor> backpropagated(const net::Graph& graph, const net::Tensor& x,
                                        const net::Targets& targets, net::Numerics& numerics,
                                        const net::Step& step, std::uint64_t seed,
                                        net::Classified& seen) {
  const net::Injection injection{graph.nodes.back().name, [&](const net::Tensor& logits) {
                                   net::Tensor gradient(logits.shape);
                                   seen = net::cross_entropy(logits, targets.classes, &gradient);
                                   return gradient;
                                 }};
  return net::gradients(graph, {&x, 1}, numerics, step, {}, {&injection, 1}, seed).parameters;
}

bool finite(const net::Classified& seen) {
  return std::ranges::all_of(seen.loss, [](double loss) { return std::isfinite(loss); });
}

}  // namespace

void store(const Method& method, net::Tensor& lambda) {
  if (filters(method, lambda)) filter(lambda);
  if (method.format.empty()) return;
  const Format& format = find_format(method.format);
  float largest = 0;
  for (const float x : lambda.data) largest = std::max(largest, std::fabs(x));
  const auto scale = static_cast<float>(largest / largest_value(format));
  if (!(scale > 0) || !std::isfinite(scale)) return;  // zeros, or a training that diverged
  quantize_values({.format = &format}, lambda.data.data(), lambda.size(), scale,
                  lambda.data.data());
}

double stored_bytes(const Method& method, const StageVariables& variables) {
  const double bits = method.format.empty() ? 32 : find_format(method.format).bits;
  double bytes = 0;
  for (std::size_t k = 1; k < variables.lambda.size(); ++k) {
    const net::Tensor& x = variables.lambda[k];
    bytes += static_cast<double>(x.size() / x.dim(0)) * bits / 8 / (filters(method, x) ? 4 : 1);
  }
  return bytes;
}

double Trained::score() const { return diverged ? NAN : top1; }

Trained train_stages(const TrainTrial& trial, const net::Dataset& whole, const Method& method,
                     std::int64_t count, double beta) {
  const net::Dataset data = restricted(whole, trial.train_samples, false);
  net::TrainOptions options = trial.options;
  options.seed = trial.seed;
  net::Graph graph = initial_network(trial, data);
  Stages stages = cut_into_stages(graph, count);
  policies::RecipeNumerics numerics(parsed_recipe(trial), graph);
  const std::vector<net::Parameter*> parameters = graph.parameters();
  const auto optimizer = net::make_optimizer(options, std::as_const(graph).parameters());
  const std::int64_t samples = data.train_count(), batch = std::min(options.batch, samples),
                     each = samples / batch, steps = each * options.epochs;
  Trained trained;
  std::vector<float> delta;
  for (std::int64_t index = 0; index < steps; ++index) {
    const std::int64_t epoch = index / each, first = index % each * batch;
    const std::vector<std::int64_t> order = net::shuffled(samples, trial.seed, epoch);
    const std::vector<std::int64_t> ids(order.begin() + first, order.begin() + first + batch);
    net::Targets targets;
    const net::Tensor x = data.train_batch(ids, targets);
    const net::Step step{.phase = net::Phase::training, .index = index, .samples = &ids};
    numerics.begin_step(step);
    net::Classified seen;
    std::vector<net::Tensor> gradients;
    const bool serial = method.serial_every > 0 && (index + 1) % method.serial_every == 0;
    StageVariables variables = feasible(stages, x, beta, numerics, step, trial.seed);
    if (method.rounds == 0 || serial) {
      gradients = backpropagated(graph, x, targets, numerics, step, trial.seed, seen);
    } else {
      if (method.augmented) {
        for (const net::Tensor& lambda : variables.lambda)
          variables.kappa.emplace_back(lambda.shape);
      }
      const auto store_all = [&] {
        for (std::size_t k = 1; k < variables.lambda.size(); ++k)
          store(method, variables.lambda[k]);
      };
      const auto local = [&] {
        return local_gradients(stages, variables, targets.classes, numerics, step, trial.seed);
      };
      store_all();
      for (std::int64_t round = 0; round < method.rounds; ++round) {
        step_variables(variables, local(), 1);
        store_all();
      }
      LocalGradients last = local();
      seen = std::move(last.seen);
      for (std::vector<net::Tensor>& part : last.parameters)
        std::move(part.begin(), part.end(), std::back_inserter(gradients));
    }
    if (!trained.diverged && !finite(seen)) trained.diverged = index + 1;
    trained.bytes = method.rounds == 0 ? 0 : stored_bytes(method, variables);
    if (options.clip > 0) net::clip_to_norm(gradients, net::global_norm(gradients), options.clip);
    const net::Progress progress{index, steps, epoch, options.epochs};
    optimizer->begin_step(
        options.learning_rate *
        net::rate_factor(net::find_schedule(options.schedule), progress, options.warmup));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i]->trained) continue;
      optimizer->step(i, *parameters[i], gradients[i], delta);
      numerics.update(step, {parameters[i]->name, &parameters[i]->value, &gradients[i], &delta});
    }
    numerics.end_step(step);
  }
  trained.top1 = 100 * test_top1(graph, data, trial.eval_samples, numerics);
  return trained;
}

}  // namespace numemu::experiments::layer_parallel
