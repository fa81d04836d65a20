// One matrix whose gradient simulated workers exchange under a rule.
#pragma once
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/ops/linear.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace numemu::policies::test {

class OneMatrix {
 public:
  /// `rule`: the text or object of the recipe's `exchange`, as JSON.
  OneMatrix(const std::string& rule, std::int64_t rows, std::int64_t columns)
      : numerics_(Recipe::parse_text(R"({"numemu_recipe": 1, "exchange": )" + rule + "}", "r"),
                  graph_of(graph_, rows, columns)) {}

  /// What comes back of one gradient for each worker.
  std::vector<float> exchange(std::int64_t step, const std::vector<std::vector<float>>& gradients) {
    std::vector<net::WorkerGradient> sent;
    for (const std::vector<float>& own : gradients) {
      net::Tensor tensor(graph_.parameters()[0]->value.shape);
      tensor.data = own;
      sent.push_back({std::ssize(sent), {std::move(tensor)}});
    }
    net::Exchanged result =
        net::exchange_all(numerics_, {net::Phase::training, step}, std::move(sent));
    bits = result.wire[0];
    return std::move(result.gradients[0].data);
  }

  /// What a worker keeps under the prefix recipe/exchange/RULE, zeros before the first step.
  std::vector<float> kept(const std::string& rule, std::int64_t worker = 0) const {
    StateTensors tensors;
    load_tensors("recipe/exchange/" + rule, state(), tensors);
    const std::string name = fmt::format("worker{}/matrix.weight", worker);
    if (!tensors.contains(name))
      return std::vector<float>(graph_.parameters()[0]->value.data.size());
    return tensors.at(name);
  }
  net::NamedState state() const {
    net::NamedState state;
    numerics_.save_state(state);
    return state;
  }
  void load(const net::NamedState& state) { numerics_.load_state(state); }

  net::WireBits bits;  ///< of the last exchange

 private:
  static net::Graph& graph_of(net::Graph& graph, std::int64_t rows, std::int64_t columns) {
    graph.name = "one";
    graph.inputs = {{"input", {columns}}};
    graph.add("matrix", std::make_unique<net::Linear>(columns, rows, /*bias=*/false), {0});
    return graph;
  }

  net::Graph graph_;
  RecipeNumerics numerics_;
};

/// Noise of each worker in a step.
inline std::vector<std::vector<float>> noisy_gradients(int workers, std::int64_t n, int step) {
  std::vector<std::vector<float>> all;
  for (int w = 0; w < workers; ++w) {
    const net::Tensor drawn = noise({n}, static_cast<std::uint32_t>(100 * step + w));
    all.push_back(drawn.data);
  }
  return all;
}

}  // namespace numemu::policies::test
