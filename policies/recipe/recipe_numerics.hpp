// A recipe as the answers to a network's questions: operands quantized, multiplied on a unit,
// scaled back.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "emu/net/graph.hpp"
#include "emu/net/numerics.hpp"
#include "emu/unit/unit.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/recipe/quantized_tensor.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Counts over one layer's operands; sums of integers, so the order of threads does not matter.
struct OperandCounts {
  std::atomic<std::int64_t> elements{0}, overflow{0}, underflow{0}, invalid{0};
};

/// Numerics of a recipe. Dynamic until freeze(): every product computes its scales from the
/// operands in hand (training). After freeze(): weights are quantized once and activation scales
/// come from calibration (inference, any threads).
class RecipeNumerics : public net::Numerics {
 public:
  /// Throws Error when a pattern matches no layer or a role cannot be applied. `where` starts such
  /// messages.
  RecipeNumerics(const Recipe&, const net::Graph&, const std::string& where = "recipe");

  void freeze(const net::Graph&, const FloatReference&);
  /// Throws Error naming the layer when a scale cannot be applied after one of training's products.
  void require_trainable(const std::string& where) const;

  void begin_step(const net::Step&) override;
  void product(const net::Product&) override;

  /// What is known of a layer after freeze().
  struct Layer {
    LayerRecipe recipe;
    const unit::Unit *fprop, *dgrad, *wgrad;
    bool frozen = false;
    QuantizedTensor weight;                ///< valid when recipe.weight
    std::vector<float> activation_scales;  ///< valid when recipe.activation
    OperandCounts counts;  ///< of every operand quantized since construction, weights once
    const unit::Unit& unit(net::GemmKind) const;
  };
  const Layer& layer(std::string_view name) const;
  void reset_counts();

 private:
  Recipe recipe_;
  std::map<std::string, Layer, std::less<>> layers_;
  std::atomic<std::int64_t> training_step_{0};
};

/// Where the random bits of an operand come from: the tensor identity is layer/role/step/gemm.
RandomSource operand_random(std::uint64_t seed, std::string_view layer, net::Role,
                            std::int64_t step, net::GemmKind);

}  // namespace numemu::policies
