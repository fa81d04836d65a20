#include "emu/net/train/step.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/memory.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/profile.hpp"
#include "emu/net/tied.hpp"
#include "emu/net/train/gradient_norm.hpp"
#include "emu/net/train/lockstep.hpp"
#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/options.hpp"
#include "emu/net/train/ranks.hpp"
#include "formats/error.hpp"

namespace numemu::net {

namespace {

// A run of the batch's samples: one micro-batch.
struct Part {
  std::int64_t first = 0, count = 0;
  float weight = 1;  // of its mean loss
};

// The micro-batches of a worker, of which the first `taken` take part in the step.
struct Worker {
  std::int64_t number = 0;
  std::vector<Part> parts;
  std::int64_t taken = 0;
};

std::vector<Worker> workers_of(std::int64_t samples, const TrainOptions& options) {
  const std::int64_t each = options.micro_batches, all = options.workers * each;
  const std::int64_t present = std::clamp<std::int64_t>(samples, 1, all);  // the others are empty
  const std::int64_t count = (present + each - 1) / each;
  std::vector<Worker> workers;
  std::int64_t first = 0;
  for (std::int64_t number = 0; number < present; ++number) {
    if (number % each == 0) workers.push_back({.number = number / each, .parts = {}});
    Part part{.first = first};
    part.count = samples / all + (number < samples % all ? 1 : 0);
    // The exchange divides by the worker's parts and by the workers.
    const std::int64_t of_worker = std::min(each, present - workers.back().number * each);
    part.weight = static_cast<float>(static_cast<double>(part.count * count * of_worker) /
                                     static_cast<double>(samples));
    first += part.count;
    workers.back().parts.push_back(part);
  }
  return workers;
}

// Asks which micro-batches take part. Returns the share of samples that do not.
double choose_parts(std::vector<Worker>& workers, const Step& step, Numerics& numerics) {
  std::int64_t all = 0, taken = 0;
  bool realised = false;
  for (Worker& worker : workers) {
    const auto parts = static_cast<std::int64_t>(worker.parts.size());
    const Participation answer = numerics.participation(step, worker.number, parts);
    worker.taken = std::clamp<std::int64_t>(answer.micro_batches, 0, parts);
    realised = realised || answer.realised;
    for (std::int64_t m = 0; m < parts; ++m) {
      all += worker.parts[m].count;
      taken += m < worker.taken ? worker.parts[m].count : 0;
    }
  }
  if (realised && taken > 0 && taken < all) {
    for (Worker& worker : workers) {
      for (Part& part : worker.parts)
        part.weight *= static_cast<float>(static_cast<double>(all) / static_cast<double>(taken));
    }
  }
  return static_cast<double>(all - taken) / static_cast<double>(all);
}

void append(Classified& all, const Classified& more) {
  all.loss.insert(all.loss.end(), more.loss.begin(), more.loss.end());
  all.right.insert(all.right.end(), more.right.begin(), more.right.end());
  all.answers.insert(all.answers.end(), more.answers.begin(), more.answers.end());
  all.counted += more.counted;
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
  for (const Targets& further : input.targets.further) {
    Targets& of = own.targets.further.emplace_back();
    piece(further.classes, of.classes);
    piece(further.values, of.values);
  }
  own.further = input.further;
  piece(input.samples, own.samples);
  return own;
}

// One part's gradients without the loss scale; `result` gets what it saw.
std::vector<Tensor> part_gradients(Graph& graph, const StepInput& input, const Step& step,
                                   float weight, const Objective& objective, std::uint64_t seed,
                                   float scale, Numerics& numerics, WorkerResult& result) {
  // Gradients enter at every output with a loss.
  std::vector<int> ends = {static_cast<int>(graph.value_count()) - 1};
  for (const FurtherOutput& output : input.further) ends.push_back(output.value);
  const BackwardPlan plan = plan_backward(graph, ends, {});
  std::vector<std::vector<Tensor>> parts(graph.value_count());
  const auto take_loss = [&](int value, const Tensor& made) {
    for (std::size_t o = 0; o < input.further.size(); ++o) {
      if (input.further[o].value != value) continue;
      find_objective(input.further[o].objective)
          .evaluate(made, input.targets.further[o], &parts[value].emplace_back(), scale * weight);
    }
  };
  std::vector<Tensor> inputs;
  if (graph.inputs.size() > 1) inputs = unpacked(input.x, graph.inputs);
  Tape tape = forward_training(
      graph, inputs.empty() ? std::span(&input.x, 1) : std::span<const Tensor>(inputs), numerics,
      step, seed, plan, take_loss);
  std::ranges::move(std::exchange(tape.buffers, {}), std::back_inserter(result.buffers));
  const Classified seen =
      objective.evaluate(tape.output, input.targets, &parts.back().emplace_back(), scale * weight);
  append(result.seen, seen);
  if (parts.back().back().shape != tape.output.shape)
    throw Error("network " + graph.name + ": the gradient does not fit the output");
  std::vector<Tensor> gradients =
      backward(graph, std::move(tape), std::move(parts), numerics, plan);
  if (scale == 1) return gradients;
  for (Tensor& gradient : gradients) {
    float* const g = gradient.data.data();
    for_each_element(gradient.size(), [=](std::int64_t i) { g[i] = neutral(g[i] / scale); });
  }
  return gradients;
}

// Adds a part's gradients to those of the parts before it.
void add_up(std::vector<Tensor>& sum, std::vector<Tensor> part) {
  if (sum.empty()) {
    sum = std::move(part);
    return;
  }
  for (std::size_t p = 0; p < sum.size(); ++p) {
    float* const total = sum[p].data.data();
    const float* const x = part[p].data.data();
    for_each_element(sum[p].size(), [=](std::int64_t i) { total[i] += x[i]; });
  }
}

std::vector<Tensor> no_gradients(const Graph& graph) {
  std::vector<Tensor> zeros;
  for (const Parameter* parameter : graph.parameters())
    zeros.push_back(parameter->trained ? Tensor(parameter->value.shape) : Tensor());
  return zeros;
}

/// Whether a layer shares its statistics over the workers.
bool synchronises(const Graph& graph, const Step& step, Numerics& numerics) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return node.op->kind() == "batch_norm" && numerics.norm(step, node.name).synchronised;
  });
}

// The gradients are the float32 mean of the worker's micro-batches, those that take no part as 0.
WorkerResult run_worker(Graph& graph, const StepInput& input, const Step& step,
                        const TrainOptions& options, const Worker& worker, bool whole,
                        const Objective& objective, float scale, Numerics& numerics) {
  WorkerResult result;
  std::optional<MemoryClaim> second;  // a micro-batch's gradients beside the sum
  if (worker.taken > 1) second.emplace(graph.parameter_count(), "gradients of micro-batches");
  for (std::int64_t m = 0; m < worker.taken; ++m) {
    const Part& part = worker.parts[m];
    const StepInput own = whole ? StepInput{} : cut(input, part);
    Step of_part = step;
    of_part.part = worker.number * options.micro_batches + m;
    if (!whole) of_part.samples = &own.samples;
    add_up(result.gradients, part_gradients(graph, whole ? input : own, of_part, part.weight,
                                            objective, options.seed, scale, numerics, result));
  }
  if (worker.taken == 0) result.gradients = no_gradients(graph);
  if (worker.parts.size() == 1) return result;
  const auto count = static_cast<float>(worker.parts.size());
  for (Tensor& tensor : result.gradients) {
    float* const g = tensor.data.data();
    for_each_element(tensor.size(), [=](std::int64_t i) { g[i] = neutral(g[i] / count); });
  }
  return result;
}

// Penalties, clipping, update.
void update(Graph& graph, const Step& step, std::vector<Tensor> gradients, double learning_rate,
            double clip, Optimizer& optimizer, Numerics& numerics, StepResult& result) {
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
  follow_tied(graph);
}

/// The pieces that steps of gradients and local steps share.
class TrainingStep {
 public:
  TrainingStep(Graph& graph, const StepInput& input, const TrainOptions& options, std::size_t place,
               Numerics& numerics, Ranks& ranks)
      : graph_(graph),
        input_(input),
        options_(options),
        objective_(find_objective(options.objectives.at(place))),
        numerics_(numerics),
        ranks_(ranks),
        step_{Phase::training,
              input.index * std::ssize(options.objectives) + static_cast<std::int64_t>(place),
              &input.samples} {}

  StepResult run(Optimizer& optimizer) {
    numerics_.begin_step(step_);
    result_.loss_scale = numerics_.loss_scale(step_);
    workers_ = workers_of(input_.x.dim(0), options_);
    result_.dropped = choose_parts(workers_, step_, numerics_);
    if (input_.loss_weight != 1) {
      for (Worker& worker : workers_) {
        for (Part& part : worker.parts)
          part.weight = static_cast<float>(double{part.weight} * input_.loss_weight);
      }
    }
    Replicas* const replicas = optimizer.replicas();
    replicas == nullptr ? exchange_gradients(optimizer) : step_apart(*replicas);
    numerics_.end_step(step_);
    return std::move(result_);
  }

 private:
  void exchange_gradients(Optimizer& optimizer) {
    const std::unique_ptr<Exchange> exchange = new_exchange();
    for_each_result(nullptr, [&](const Worker& worker, std::vector<Tensor> gradients) {
      exchange->add({worker.number, std::move(gradients)});
    });
    if (!accepted()) return;
    update(graph_, step_, finish(*exchange), input_.learning_rate, options_.clip, optimizer,
           numerics_, result_);
  }

  void step_apart(Replicas& replicas) {
    const MemoryClaim waiting(std::ssize(workers_) * graph_.parameter_count(),
                              "gradients of simulated workers");
    std::vector<std::vector<Tensor>> all;
    for_each_result(&replicas, [&](const Worker&, std::vector<Tensor> gradients) {
      all.push_back(std::move(gradients));
    });
    if (accepted()) {
      StepResult sums;
      for (std::size_t w = 0; w < workers_.size(); ++w) {
        const std::int64_t worker = workers_[w].number;
        Step own = step_;
        own.part = worker * options_.micro_batches;
        replicas.with(worker, graph_, [&] {
          const bool check = input_.index == 0 && w == 0;
          NamedState before, after;
          if (check) numerics_.save_state(before);
          update(graph_, own, std::move(all[w]), input_.learning_rate, options_.clip,
                 replicas.optimizer(worker), numerics_, sums);
          if (check) numerics_.save_state(after);
          if (before != after) {
            throw Error(
                "local steps: the numerics keep state of an update (update.rule, "
                "update.master), of which workers with weights of their own need one "
                "each");
          }
        });
        result_.gradient_norm += std::exchange(sums.gradient_norm, 0);
      }
      const auto count = static_cast<double>(workers_.size());
      result_.gradient_norm /= count;
      result_.penalty = sums.penalty / count;
    }
    if (!input_.exchange) return;
    const std::unique_ptr<Exchange> exchange = new_exchange();
    for (std::int64_t w = 0; w < replicas.workers(); ++w) exchange->add({w, replicas.change(w)});
    replicas.exchanged(graph_, finish(*exchange));
  }

  std::unique_ptr<Exchange> new_exchange() {
    return numerics_.exchange(step_, {.workers = options_.workers, .order = {}});
  }
  std::vector<Tensor> finish(Exchange& exchange) {
    Exchanged exchanged = exchange.finish();
    if (options_.workers > 1) result_.wire = std::move(exchanged.wire);
    return std::move(exchanged.gradients);
  }
  bool accepted() {
    result_.accepted = numerics_.accept_gradients(step_) && result_.dropped < 1;
    return result_.accepted;
  }

  bool owns(const Worker& worker) const {
    return ranks_.owner(worker.number, options_.workers) == ranks_.rank();
  }
  /// All of them at once, where their passes meet.
  std::vector<WorkerResult> run_together() {
    if (ranks_.count() > 1) {
      throw Error("norm: synchronised statistics need all workers in one process, there are " +
                  std::to_string(ranks_.count()) + " ranks");
    }
    std::vector<WorkerResult> results(workers_.size());
    Lockstep(std::ssize(workers_)).run([&](std::int64_t w, Meeting& meeting) {
      Step own = step_;
      own.meeting = &meeting;
      results[w] = run_worker(graph_, input_, own, options_, workers_[w], /*whole=*/false,
                              objective_, result_.loss_scale, numerics_);
    });
    // All have the same statistics: the first of those with the most micro-batches gives them.
    const auto most =
        std::ranges::max_element(workers_, {}, [](const Worker& worker) { return worker.taken; });
    for (std::size_t w = 0; w < results.size(); ++w) {
      if (static_cast<std::ptrdiff_t>(w) != most - workers_.begin()) results[w].buffers.clear();
    }
    return results;
  }

  WorkerResult run_one(const Worker& worker, Replicas* replicas) {
    const bool whole = workers_.size() == 1 && workers_[0].parts.size() == 1;
    const std::vector<std::int64_t> before = numerics_.counts();
    WorkerResult own;
    const auto work = [&] {
      own = run_worker(graph_, input_, step_, options_, worker, whole, objective_,
                       result_.loss_scale, numerics_);
    };
    replicas == nullptr ? work() : replicas->with(worker.number, graph_, work);
    own.counts = numerics_.counts();
    for (std::size_t i = 0; i < before.size(); ++i) own.counts[i] -= before[i];
    return own;
  }

  /// Calls use(worker, gradients) for each worker in order, whichever rank computes it.
  template <class Use>
  void for_each_result(Replicas* replicas, const Use& use) {
    // Other processes wait for what this one computes, so that all of it comes first.
    std::vector<WorkerResult> ready;
    const bool shared = ranks_.count() > 1;
    const auto own = [this](const Worker& worker) { return owns(worker); };
    const bool together = workers_.size() > 1 && synchronises(graph_, step_, numerics_);
    const std::int64_t kept = shared || together ? std::ranges::count_if(workers_, own) : 0;
    const MemoryClaim waiting(kept * graph_.parameter_count(), "gradients of workers that wait");
    if (together && replicas != nullptr)
      throw Error("norm: synchronised statistics contradict local steps: expected equal weights");
    if (together) ready = run_together();
    for (const Worker& worker : workers_) {
      if (shared && owns(worker)) ready.push_back(run_one(worker, replicas));
    }
    auto next = ready.begin();
    for (const Worker& worker : workers_) {
      WorkerResult result = !owns(worker)        ? WorkerResult()
                            : shared || together ? std::move(*next++)
                                                 : run_one(worker, replicas);
      share(ranks_, ranks_.owner(worker.number, options_.workers), result);
      if (!owns(worker)) numerics_.add_counts(result.counts);
      const auto renew = [&] { apply_buffers(graph_, result.buffers); };
      replicas == nullptr ? renew() : replicas->with(worker.number, graph_, renew);
      append(result_.seen, result.seen);
      numerics_.worker_gradients(step_, result.gradients);
      use(worker, std::move(result.gradients));
    }
  }

  Graph& graph_;
  const StepInput& input_;
  const TrainOptions& options_;
  const Objective objective_;
  Numerics& numerics_;
  Ranks& ranks_;
  const Step step_;
  std::vector<Worker> workers_;
  StepResult result_;
};

}  // namespace

StepResult training_step(Graph& graph, const StepInput& input, const TrainOptions& options,
                         Optimizer& optimizer, Numerics& numerics, Ranks* shared) {
  Ranks alone;
  Ranks& ranks = shared == nullptr ? alone : *shared;
  const auto run = [&](std::size_t place) {
    return TrainingStep(graph, input, options, place, numerics, ranks)
        .run(optimizer.of_objective(place));
  };
  StepResult first = run(0);
  for (std::size_t i = 1; i < options.objectives.size(); ++i) run(i);
  return first;
}

}  // namespace numemu::net
