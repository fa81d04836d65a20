// The table of optimizers, made from the files of emu/net/train/optimizers/.
#include "emu/net/train/optimizer.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/tied.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {

#define NUMEMU_OPTIMIZER(stem) extern const OptimizerKind optimizer_##stem;
#include "emu/net/train/optimizers/table.inc"
#undef NUMEMU_OPTIMIZER

namespace {

#define NUMEMU_OPTIMIZER(stem) &optimizer_##stem,
constexpr const OptimizerKind* kKinds[] = {
#include "emu/net/train/optimizers/table.inc"
};
#undef NUMEMU_OPTIMIZER

struct Found {
  const OptimizerKind& kind;
  const OptimizerName& name;
};

Found find(std::string_view text) {
  const std::string name = parse_call(text).name;
  for (const OptimizerKind* kind : kKinds) {
    for (const OptimizerName& known : kind->names) {
      if (known.name == name) return {*kind, known};
    }
  }
  throw Error(unknown_name("optimizer", name, optimizer_names()));
}

std::unique_ptr<Optimizer> make_of(const std::string& objective, const TrainOptions& options,
                                   std::span<const Parameter* const> parameters) {
  TrainOptions own = options;
  const auto found = options.objective_optimizers.find(objective);
  if (found != options.objective_optimizers.end()) own.optimizer = found->second;
  require_optimizer(own.optimizer);
  return find(own.optimizer).kind.make(own, parameters);
}

/// One state per objective; steps that are not taken through of_objective() are the first one's.
class PerObjective final : public Optimizer {
 public:
  PerObjective(const TrainOptions& options, std::span<const Parameter* const> parameters) {
    for (const std::string& objective : options.objectives)
      parts_.push_back({parse_call(objective).name, make_of(objective, options, parameters)});
  }

  void begin_step(double learning_rate) override { first().begin_step(learning_rate); }
  void step(std::size_t index, const Parameter& parameter, const Tensor& gradient,
            std::vector<float>& delta) override {
    first().step(index, parameter, gradient, delta);
  }
  std::vector<StateTensor> state(std::size_t index) override {
    std::vector<StateTensor> all = first().state(index);
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      for (const StateTensor& part : parts_[i].optimizer->state(index))
        all.push_back({*names_.insert(fmt::format("{}/{}", parts_[i].objective, part.name)).first,
                       part.value});
    }
    return all;
  }
  std::vector<double*> scalars() override {
    std::vector<double*> all;
    for (const Part& part : parts_) {
      const std::vector<double*> own = part.optimizer->scalars();
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
  Optimizer& of_objective(std::size_t place) override { return *parts_.at(place).optimizer; }

 private:
  struct Part {
    std::string objective;
    std::unique_ptr<Optimizer> optimizer;
  };
  Optimizer& first() { return *parts_[0].optimizer; }

  std::vector<Part> parts_;
  std::set<std::string> names_;  // that StateTensor refers to
};

}  // namespace

std::vector<Tensor> zero_state(std::span<const Parameter* const> parameters) {
  std::vector<Tensor> state;
  for (const Parameter* parameter : parameters)
    state.push_back(parameter->trained ? Tensor(parameter->value.shape) : Tensor());
  return state;
}

std::unique_ptr<Optimizer> make_optimizer(const TrainOptions& options,
                                          std::span<const Parameter* const> parameters) {
  if (options.local_steps > 0) {
    return std::make_unique<Replicas>(options.workers, parameters, [&] {
      return make_of(options.objectives.at(0), options, parameters);
    });
  }
  if (options.objectives.size() > 1) return std::make_unique<PerObjective>(options, parameters);
  return make_of(options.objectives.at(0), options, parameters);
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerKind* kind : kKinds) {
    for (const OptimizerName& name : kind->names) names.emplace_back(name.name);
  }
  return names;
}

const OptimizerName& find_optimizer(std::string_view text) {
  require_optimizer(text);
  return find(text).name;
}

void require_optimizer(std::string_view text) { canonical_optimizer(text); }

std::string canonical_optimizer(std::string_view text) {
  const std::string_view name = find(text).name.name;
  const auto given = options_of_optimizer(name), usual = options_of_optimizer(name);
  read_arguments(parse_call(text), given->list(), fmt::format("optimizer {}", name));
  return call_text(name, *given, *usual);
}

std::unique_ptr<OptionSet> options_of_optimizer(std::string_view name) {
  const OptimizerKind& kind = find(name).kind;
  return kind.options == nullptr ? std::make_unique<OptionSet>() : kind.options();
}

Replicas::Replicas(std::int64_t workers, std::span<const Parameter* const> parameters,
                   const Make& make) {
  for (const Parameter* parameter : parameters) {
    exchanged_.push_back(parameter->value);
    trained_.push_back(parameter->trained);
  }
  for (std::int64_t w = 0; w < workers; ++w) workers_.push_back({make(), exchanged_});
}

void Replicas::with(std::int64_t worker, Graph& graph, const std::function<void()>& work) {
  const std::vector<Parameter*> parameters = graph.parameters();
  const auto swap = [&] {
    for (std::size_t p = 0; p < parameters.size(); ++p)
      std::swap(parameters[p]->value, at(worker).weights[p]);
  };
  swap();
  try {
    work();
  } catch (...) {
    swap();
    throw;
  }
  swap();
}

std::vector<Tensor> Replicas::change(std::int64_t worker) const {
  std::vector<Tensor> change;
  const std::vector<Tensor>& weights = workers_.at(static_cast<std::size_t>(worker)).weights;
  for (std::size_t p = 0; p < exchanged_.size(); ++p) {
    if (!trained_[p]) {
      change.emplace_back();
      continue;
    }
    float* const out = change.emplace_back(exchanged_[p].shape).data.data();
    const float *const old = exchanged_[p].data.data(), *const now = weights[p].data.data();
    for_each_element(exchanged_[p].size(),
                     [=](std::int64_t i) { out[i] = neutral(old[i] - now[i]); });
  }
  return change;
}

void Replicas::exchanged(Graph& graph, const std::vector<Tensor>& change) {
  for (std::size_t p = 0; p < exchanged_.size(); ++p) {
    float* const x = exchanged_[p].data.data();
    if (trained_[p]) {
      const float* const lost = change[p].data.data();
      for_each_element(exchanged_[p].size(),
                       [=](std::int64_t i) { x[i] = neutral(x[i] - lost[i]); });
      continue;
    }
    const std::unique_ptr<Exchange> mean = make_exchange(workers());
    for (std::int64_t w = 0; w < workers(); ++w) mean->add({w, {at(w).weights[p]}});
    exchanged_[p] = std::move(mean->finish().gradients[0]);
  }
  const std::vector<Parameter*> parameters = graph.parameters();
  for (std::size_t p = 0; p < exchanged_.size(); ++p) parameters[p]->value = exchanged_[p];
  follow_tied(graph);
  for (std::size_t p = 0; p < exchanged_.size(); ++p) {
    exchanged_[p] = parameters[p]->value;
    for (Worker& worker : workers_) worker.weights[p] = exchanged_[p];
  }
}

std::vector<StateTensor> Replicas::state(std::size_t index) {
  std::vector<StateTensor> all;
  const auto add = [&](std::string name, Tensor* value) {
    all.push_back({*names_.insert(std::move(name)).first, value});
  };
  for (std::int64_t w = 0; w < workers(); ++w) {
    for (const StateTensor& own : at(w).optimizer->state(index))
      add(fmt::format("worker{}/{}", w, own.name), own.value);
    add(fmt::format("worker{}/weights", w), &at(w).weights[index]);
  }
  add("exchanged", &exchanged_[index]);
  return all;
}

std::vector<double*> Replicas::scalars() {
  std::vector<double*> all;
  for (Worker& worker : workers_) {
    const std::vector<double*> own = worker.optimizer->scalars();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace numemu::net
