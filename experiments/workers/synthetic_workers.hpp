// Simulated workers whose gradients are drawn from a known law, exchanged under a recipe.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/exchange.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/numerics.hpp"
#include "formats/storage/json.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::workers {

/// One vector per worker.
using Gradients = std::vector<std::vector<float>>;

/// Of `workers` in one step: element i of worker w is sqrt(rho) c_i + sqrt(1 - rho) e_wi of
/// independent standard normal numbers, a function of the seed, the step, w and i.
Gradients correlated_normals(std::int64_t workers, std::int64_t elements, double rho,
                             std::uint64_t seed, std::int64_t step);

/// Their mean in float64, rounded once.
std::vector<float> mean_of(const Gradients&);

/// Workers that exchange the gradient of one matrix [rows, columns] under a rule.
class SyntheticWorkers {
 public:
  /// `rule`: the recipe's `exchange`. Throws Error for one that is none.
  SyntheticWorkers(const Json& rule, std::int64_t rows, std::int64_t columns, std::uint64_t seed);

  struct Result {
    std::vector<float> mean;  ///< what every worker gets
    net::WireBits bits;       ///< of the matrix
  };
  /// The exchange of a step; each gradient has rows x columns elements.
  Result exchange(std::int64_t step, const Gradients&);
  /// What a worker keeps for later steps; `state` is the prefix of the rule's state
  /// ("recipe/exchange/topk"). Throws std::out_of_range before the first step.
  std::vector<float> kept(const std::string& state, std::int64_t worker) const;

 private:
  net::Graph graph_;
  policies::RecipeNumerics numerics_;
};

}  // namespace numemu::experiments::workers
