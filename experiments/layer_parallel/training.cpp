#include "experiments/layer_parallel/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/tied.hpp"
#include "emu/net/train/gradient_norm.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/schedule.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/step.hpp"
#include "experiments/delayed_weights/partition.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::layer_parallel {
namespace {

struct Place {
  std::string value;      ///< where a stage may end
  std::int64_t cost = 0;  ///< of all before
};

/// Places in order; the last is the output.
std::vector<Place> places_of(const net::Graph& graph) {
  std::map<std::string, std::int64_t> costs;
  for (const delayed_weights::LayerCost& layer : delayed_weights::layer_costs(graph, 1))
    costs[layer.name] = layer.forward + layer.backward;
  const std::vector<int> last = net::last_readers(graph);
  std::vector<Place> places;
  std::int64_t cost = 0;
  int before = -1;  // the last reader of all values before this one
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) before = std::max(before, last[i]);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto found = costs.find(graph.nodes[i].name);
    if (found != costs.end()) cost += found->second;
    const bool end = i + 1 == graph.nodes.size();
    const bool multiplies = !end && !graph.nodes[i + 1].op->products().empty();
    if (end || (multiplies && cost > 0 && before <= static_cast<int>(i)))
      places.push_back({graph.nodes[i].name, cost});
    before = std::max(before, last[static_cast<std::size_t>(graph.value_of(i))]);
  }
  return places;
}

}  // namespace

Stages cut_into_stages(net::Graph& graph, std::int64_t count) {
  const std::vector<Place> places = places_of(graph);
  const auto n = std::ssize(places);
  if (count < 2 || count > n)
    throw usage_error(fmt::format("{}: expected 2 to {} stages, not {}", graph.name, n, count));
  // least[s][p]: the largest cost of s stages that end at place p, and where the one before ends.
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  const auto size = static_cast<std::size_t>(n), stages = static_cast<std::size_t>(count);
  std::vector<std::vector<std::int64_t>> least(stages + 1, std::vector<std::int64_t>(size, kNever));
  std::vector<std::vector<std::size_t>> from(stages + 1, std::vector<std::size_t>(size));
  for (std::size_t p = 0; p < size; ++p) least[1][p] = places[p].cost;
  for (std::size_t s = 2; s <= stages; ++s) {
    for (std::size_t p = s - 1; p < size; ++p) {
      for (std::size_t q = s - 2; q < p; ++q) {
        const std::int64_t most = std::max(least[s - 1][q], places[p].cost - places[q].cost);
        if (most < least[s][p]) {
          least[s][p] = most;
          from[s][p] = q;
        }
      }
    }
  }
  Stages cut;
  std::vector<std::size_t> ends = {size - 1};
  for (std::size_t s = stages; s > 1; --s) ends.push_back(from[s][ends.back()]);
  std::reverse(ends.begin(), ends.end());
  std::string start = graph.inputs.at(0).name;
  std::int64_t before = 0;
  for (const std::size_t end : ends) {
    cut.parts.push_back(net::subgraph(graph, {&start, 1}, places[end].value));
    cut.ends.push_back(places[end].value);
    cut.costs.push_back(places[end].cost - std::exchange(before, places[end].cost));
    start = places[end].value;
  }
  return cut;
}

LocalGradients local_gradients(const Stages& stages, const StageVariables& variables,
                               const std::vector<std::int32_t>& classes, net::Numerics& numerics,
                               const net::Step& step, std::uint64_t seed) {
  const std::size_t count = stages.parts.size();
  const auto samples = static_cast<float>(variables.lambda[0].dim(0));
  const auto beta = static_cast<float>(variables.beta);
  LocalGradients local;
  local.lambda.resize(count);
  std::vector<net::Tensor> pulls(count);  // beta (lambda - F) + kappa, at the stage's input
  for (std::size_t k = 0; k < count; ++k) {
    const auto at_output = [&](const net::Tensor& y) {
      net::Tensor gradient(y.shape);
      if (k + 1 == count) {
        local.seen = net::cross_entropy(y, classes, &gradient);
        return gradient;
      }
      const net::Tensor& next = variables.lambda[k + 1];
      const net::Tensor* const kappa = variables.kappa.empty() ? nullptr : &variables.kappa[k + 1];
      net::Tensor pull(y.shape);
      for (std::size_t i = 0; i < y.data.size(); ++i) {
        pull.data[i] = beta * (next.data[i] - y.data[i]) + (kappa ? kappa->data[i] : 0.0f);
        gradient.data[i] = -pull.data[i] / samples;
      }
      pulls[k + 1] = std::move(pull);
      return gradient;
    };
    const net::Injection injection{stages.ends[k], at_output};
    std::vector<std::string> want;
    if (k > 0) want.push_back(stages.parts[k].inputs[0].name);
    net::Gradients gradients = net::gradients(stages.parts[k], {&variables.lambda[k], 1}, numerics,
                                              step, want, {&injection, 1}, seed);
    local.parameters.push_back(std::move(gradients.parameters));
    local.outputs.push_back(std::move(gradients.output));
    if (k == 0) continue;
    net::Tensor& own = gradients.values[0];
    for (std::size_t i = 0; i < own.data.size(); ++i)
      own.data[i] = samples * own.data[i] + pulls[k].data[i];
    local.lambda[k] = std::move(own);
  }
  return local;
}

StageVariables feasible(Stages& stages, const net::Tensor& x, double beta, net::Numerics& numerics,
                        const net::Step& step, std::uint64_t seed) {
  StageVariables variables{{x}, {}, beta};
  for (std::size_t k = 0; k + 1 < stages.parts.size(); ++k) {
    net::Tape tape =
        net::forward_training(stages.parts[k], variables.lambda[k], numerics, step, seed);
    net::apply_buffers(stages.parts[k], tape.buffers);
    variables.lambda.push_back(std::move(tape.output));
  }
  return variables;
}

void step_variables(StageVariables& variables, const LocalGradients& local, double rate) {
  const auto beta = static_cast<float>(variables.beta),
             size = static_cast<float>(rate / variables.beta);
  for (std::size_t k = 1; k < variables.lambda.size(); ++k) {
    net::Elements& lambda = variables.lambda[k].data;
    for (std::size_t i = 0; i < lambda.size(); ++i) {
      lambda[i] -= size * local.lambda[k].data[i];
      if (!variables.kappa.empty())
        variables.kappa[k].data[i] += beta * (lambda[i] - local.outputs[k - 1].data[i]);
    }
  }
}

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
    net::follow_tied(graph);
    numerics.end_step(step);
  }
  trained.top1 = 100 * test_top1(graph, data, trial.eval_samples, numerics);
  return trained;
}

using delayed_weights::Stage;

Ticks Rounds::serial() const {
  Ticks sum = 0;
  for (const Stage& stage : stages) sum += stage.forward + stage.backward;
  return sum;
}

double Rounds::period() const {
  double longest = 0;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    const auto own = static_cast<double>(stages[k].forward + stages[k].backward);
    longest = std::max(longest, own);
    if (k + 1 == stages.size()) break;
    const auto next = static_cast<double>(stages[k + 1].forward + stages[k + 1].backward);
    longest = std::max(longest, (own + next) / 2 + static_cast<double>(stages[k].link));
  }
  return longest;
}

double Rounds::step_time() const {
  const double parallel = static_cast<double>(rounds) * period();
  if (serial_every == 0) return parallel;
  auto through = static_cast<double>(serial());
  for (std::size_t k = 0; k + 1 < stages.size(); ++k)
    through += 2 * static_cast<double>(stages[k].link);
  const auto every = static_cast<double>(serial_every);
  return ((every - 1) * parallel + through) / every;
}

Ticks simulated_time(const Rounds& of, std::int64_t steps) {
  const std::vector<Stage>& stages = of.stages;
  const std::size_t count = stages.size();
  std::vector<Ticks> free(count, 0);  // when a stage has ended its last pass
  for (std::int64_t step = 1; step <= steps; ++step) {
    if (of.serial_every > 0 && step % of.serial_every == 0) {
      Ticks arrived = 0;
      for (std::size_t k = 0; k < count; ++k) {
        free[k] = std::max(free[k], arrived) + stages[k].forward;
        arrived = free[k] + stages[k].link;
      }
      for (std::size_t k = count; k-- > 0;) {
        const Ticks gradient = k + 1 == count ? 0 : free[k + 1] + stages[k].link;
        free[k] = std::max(free[k], gradient) + stages[k].backward;
      }
      continue;
    }
    for (std::int64_t round = 0; round < of.rounds; ++round) {
      std::vector<Ticks> ends(count);
      for (std::size_t k = 0; k < count; ++k) {
        Ticks begin = free[k];
        if (k > 0) begin = std::max(begin, free[k - 1] + stages[k - 1].link);
        if (k + 1 < count) begin = std::max(begin, free[k + 1] + stages[k].link);
        ends[k] = begin + stages[k].forward + stages[k].backward;
      }
      free = std::move(ends);
    }
  }
  return *std::max_element(free.begin(), free.end());
}

}  // namespace numemu::experiments::layer_parallel
