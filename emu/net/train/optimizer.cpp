// The table of optimizers.
#include "emu/net/train/optimizer.hpp"

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Optimizer> (*make)(const TrainOptions&, std::size_t parameters);
  double learning_rate, weight_decay;  // what serves on the reference networks at batch 128
};
constexpr Row kRows[] = {{"sgd", make_sgd, 0.05, 5e-4}, {"adam", make_adam, 0.002, 0.01}};

const Row& find_row(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row;
  }
  throw Error(unknown_name("optimizer", name, optimizer_names()));
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const TrainOptions& options, std::size_t parameters) {
  return find_row(options.optimizer).make(options, parameters);
}

void use_recommended_rates(TrainOptions& options) {
  const Row& row = find_row(options.optimizer);
  options.learning_rate = row.learning_rate;
  options.weight_decay = row.weight_decay;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

}  // namespace numemu::net
