#include "emu/net/train/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emu/net/backward.hpp"
#include "emu/net/memory.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/profile.hpp"
#include "emu/net/run_context.hpp"
#include "emu/net/tied.hpp"
#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/options.hpp"
#include "emu/net/train/ranks.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {

class Lockstep::Place final : public Meeting {
 public:
  Place(Lockstep& all, std::int64_t worker) : all_(all), worker_(worker) {}
  std::vector<std::vector<double>> gather(std::vector<double> own) override {
    return all_.gather(worker_, std::move(own));
  }

 private:
  Lockstep& all_;
  std::int64_t worker_;
};

Lockstep::Lockstep(std::int64_t workers)
    : ended_(static_cast<std::size_t>(workers), false), given_(static_cast<std::size_t>(workers)) {}

void Lockstep::wait_for_turn(std::unique_lock<std::mutex>& lock, std::int64_t worker) {
  changed_.wait(lock, [&] { return turn_ == worker || failure_ != nullptr; });
  if (failure_ != nullptr) throw Abandoned();
}

void Lockstep::pass_on(std::int64_t worker) {
  const auto workers = std::ssize(ended_);
  for (std::int64_t next = worker + 1; next <= 2 * workers; ++next) {
    if (next == workers) {
      round_.clear();
      for (std::optional<std::vector<double>>& given : given_) {
        if (given) round_.push_back(*std::exchange(given, std::nullopt));
      }
    }
    if (ended_[static_cast<std::size_t>(next % workers)]) continue;
    turn_ = next % workers;
    break;
  }
  changed_.notify_all();
}

std::vector<std::vector<double>> Lockstep::gather(std::int64_t worker, std::vector<double> own) {
  std::unique_lock lock(mutex_);
  given_[static_cast<std::size_t>(worker)] = std::move(own);
  pass_on(worker);
  wait_for_turn(lock, worker);
  return round_;
}

void Lockstep::run(const std::function<void(std::int64_t, Meeting&)>& body) {
  RunContext& context = RunScope::current();
  std::vector<std::thread> threads;
  for (std::int64_t worker = 0; worker < std::ssize(ended_); ++worker) {
    threads.emplace_back([&, worker] {
      const RunScope scope(context);
      const FloatGuard guard;
      Place place(*this, worker);
      try {
        {
          std::unique_lock lock(mutex_);
          wait_for_turn(lock, worker);
        }
        body(worker, place);
        const std::lock_guard lock(mutex_);
        ended_[static_cast<std::size_t>(worker)] = true;
        pass_on(worker);
      } catch (const Abandoned&) {
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        changed_.notify_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

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

namespace {

constexpr double kSmoothingKept = 0.9;  // of a weight, at each measurement (published)
constexpr std::string_view kSmoothingState = "image_sizes/smoothing/";

double gradient_norm_of(const Graph& graph, const Tensor& x, const Targets& targets,
                        const StepInput& input, const TrainOptions& options) {
  Numerics float32;
  const Step step{Phase::training, input.index};
  Tape tape = forward_training(graph, x, float32, step, options.seed);
  Tensor grad_output;
  find_objective(options.objectives.at(0)).evaluate(tape.output, targets, &grad_output, 1);
  return global_norm(backward(graph, std::move(tape), std::move(grad_output), float32));
}

template <class All>
auto rows_of_copy(const All& all, std::int64_t rows, std::int64_t copy, std::int64_t copies) {
  const std::int64_t each = static_cast<std::int64_t>(all.size()) / rows;
  std::vector<typename All::value_type> own;
  for (std::int64_t row = copy; row < rows; row += copies)
    own.insert(own.end(), all.begin() + row * each, all.begin() + (row + 1) * each);
  return own;
}

}  // namespace

CopyNorms copy_norms(const Graph& graph, const StepInput& input, std::int64_t copies,
                     const TrainOptions& options) {
  const std::int64_t rows = input.x.dim(0);
  CopyNorms norms{.all = gradient_norm_of(graph, input.x, input.targets, input, options)};
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    Tensor x;
    x.shape = input.x.shape;
    x.shape[0] = rows / copies;
    x.data = rows_of_copy(input.x.data, rows, copy, copies);
    Targets targets;
    targets.classes = rows_of_copy(input.targets.classes, rows, copy, copies);
    targets.values = rows_of_copy(input.targets.values, rows, copy, copies);
    norms.one += gradient_norm_of(graph, x, targets, input, options) / static_cast<double>(copies);
  }
  return norms;
}

double SizeSmoothing::weight(const Graph& graph, const StepInput& input,
                             const PlannedStep& planned) {
  const std::int64_t every = options_->sizes.smoothing;
  if (every == 0 || planned.copies == 1) return 1;
  const auto known = weights_.find(planned.image);
  if (known != weights_.end() && input.index % every != 0) return known->second;
  const CopyNorms norms = copy_norms(graph, input, planned.copies, *options_);
  const double ratio = norms.one / norms.all;
  if (!std::isfinite(ratio) || ratio == 0) return known == weights_.end() ? 1 : known->second;
  const double weight = known == weights_.end()
                            ? ratio
                            : kSmoothingKept * known->second + (1 - kSmoothingKept) * ratio;
  weights_[planned.image] = weight;
  return weight;
}

void SizeSmoothing::save_state(NamedState& state) const {
  for (const auto& [size, weight] : weights_) {
    std::string bytes(sizeof weight, '\0');
    std::memcpy(bytes.data(), &weight, sizeof weight);
    state.emplace_back(fmt::format("{}{}", kSmoothingState, size), std::move(bytes));
  }
  Forwarding::save_state(state);
}

void SizeSmoothing::load_state(const NamedState& state) {
  NamedState others;
  std::map<std::int64_t, double> weights;
  for (const auto& [name, bytes] : state) {
    if (!name.starts_with(kSmoothingState)) {
      others.emplace_back(name, bytes);
      continue;
    }
    const char *const first = name.data() + kSmoothingState.size(), *const end =
                                                                        name.data() + name.size();
    std::int64_t size = 0;
    double weight = 0;
    const bool number = std::from_chars(first, end, size).ptr == end && first != end;
    if (number && bytes.size() == sizeof weight) std::memcpy(&weight, bytes.data(), sizeof weight);
    if (!(std::isfinite(weight) && weight > 0))
      throw Error(fmt::format("state {}: expected the 8 bytes of a number above 0", name));
    weights[size] = weight;
  }
  Forwarding::load_state(others);
  weights_ = std::move(weights);
}

}  // namespace numemu::net
