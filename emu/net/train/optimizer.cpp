// The table of optimizers.
#include "emu/net/train/optimizer.hpp"

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Optimizer> (*make)(const TrainOptions&, std::span<const Parameter* const>);
};
// "adam" has been the decoupled one since the first checkpoints; the one of Kingma and Ba with an
// L2 term goes by what sets it apart.
constexpr Row kRows[] = {
    {"sgd", make_sgd}, {"adam", make_adamw}, {"adamw", make_adamw}, {"adam-l2", make_adam_l2}};

const Row& find_row(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row;
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
  return find_row(options.optimizer).make(options, parameters);
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

void require_optimizer(std::string_view name) { find_row(name); }

}  // namespace numemu::net
