// The table of optimizers, made from the files of emu/net/train/optimizers/.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/train/optimizer.hpp"

#include <fmt/format.h>

#include <set>

#include "emu/net/train/replicas.hpp"
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

}  // namespace numemu::net
