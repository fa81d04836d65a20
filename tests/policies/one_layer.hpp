// One operator named "layer" under a recipe, and what its products read below all policies.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "emu/net/graph.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::policies::test {

/// The graph of one operator with the numerics of a recipe {"seed": 7, KEYS}.
class OneLayer {
 public:
  OneLayer(const std::string& keys, std::unique_ptr<net::Op> op, const net::Shape& input,
           std::size_t inputs = 1);

  net::Op& op() { return *graph_.nodes[0].op; }
  const net::Graph& graph() const { return graph_; }
  RecipeNumerics& numerics() { return numerics_; }
  /// The same numerics, which take every call as one of a step of training.
  net::Numerics& in_training(std::int64_t index) {
    at_.step = {net::Phase::training, index};
    return at_;
  }
  /// `heard` gets every product as its unit computed it, D included.
  void hear(std::function<void(const net::Product&)> heard) {
    numerics_.roles().hear_units(std::move(heard));
  }

 private:
  static net::Graph of(std::unique_ptr<net::Op> op, const net::Shape& input, std::size_t inputs);

  struct AtStep final : net::Forwarding {
    using Forwarding::Forwarding;
    void product(const net::Step&, const net::Product& p) override { Forwarding::product(step, p); }
    net::Step step;
  };

  net::Graph graph_;
  RecipeNumerics numerics_;
  AtStep at_;
};

}  // namespace numemu::policies::test
