// The table of optimizers.
#include "emu/net/train/optimizer.hpp"

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Optimizer> (*make)(const TrainOptions&, std::size_t parameters);
};
constexpr Row kRows[] = {{"sgd", make_sgd}, {"adam", make_adam}};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const TrainOptions& options, std::size_t parameters) {
  for (const Row& row : kRows) {
    if (row.name == options.optimizer) return row.make(options, parameters);
  }
  throw Error(unknown_name("optimizer", options.optimizer, optimizer_names()));
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

}  // namespace numemu::net
