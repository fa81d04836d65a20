// The table of optimizers, made from the files of emu/net/train/optimizers/.
#include "emu/net/train/optimizer.hpp"

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

Found find(std::string_view name) {
  for (const OptimizerKind* kind : kKinds) {
    for (const OptimizerName& known : kind->names) {
      if (known.name == name) return {*kind, known};
    }
  }
  throw Error(unknown_name("optimizer", name, optimizer_names()));
}

}  // namespace

std::vector<Tensor> zero_state(std::span<const Parameter* const> parameters) {
  std::vector<Tensor> state;
  for (const Parameter* parameter : parameters)
    state.push_back(parameter->trained ? Tensor(parameter->value.shape) : Tensor());
  return state;
}

std::unique_ptr<Optimizer> make_optimizer(const TrainOptions& options,
                                          std::span<const Parameter* const> parameters) {
  return find(options.optimizer).kind.make(options, parameters);
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerKind* kind : kKinds) {
    for (const OptimizerName& name : kind->names) names.emplace_back(name.name);
  }
  return names;
}

const OptimizerName& find_optimizer(std::string_view name) { return find(name).name; }

void require_optimizer(std::string_view name) { find(name); }

}  // namespace numemu::net
