// The noise of a recipe beside its prediction, as rows and `infer` hold it.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "emu/stats/finite_counts.hpp"
#include "experiments/engine/row.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {

/// Of one reference; without `predictions` every predicted figure is null.
struct NoiseFigures {
  bool predictions = true;
  std::vector<TensorNoise> tensors;
  LayerPrediction predicted;
  LayerMeasurement measured;
};

/// Sets the fidelity of the output in `metrics`, `predicted` and `layers`; `numerics`
/// are those that were measured.
void add_noise(Row&, const NoiseFigures&, const net::Graph&, const policies::RecipeNumerics&);

/// Counts NaN and infinite results of the forward products of some passes: those of the units, and
/// those that the role `output` makes. Several threads may add.
class NotFinite {
 public:
  /// Both are read until the end of life.
  NotFinite(const net::Graph&, const policies::RecipeNumerics&);
  /// A forward product that its unit just computed, before the role `output`.
  void add(const net::Product&);
  /// The same product after the role `output`.
  void add_stored(const net::Product&);
  /// Forgets the passes so far.
  void reset();
  /// The layers with such results, in the network's order; `causes` says in words where those come
  /// from that are not inherited. Nothing where the outputs and every product are finite.
  std::optional<LostNumbers> lost(std::int64_t samples, const stats::FiniteCounts& outputs) const;
  /// Adds to a prediction's `units` the layers with results whose register overflowed in these
  /// passes: saturated, wrapped, or not finite of finite operands.
  void add_overflows(LayerPrediction&) const;
  /// Of these layers, and of those that are predicted near the end of a register: the counts of
  /// these passes instead, which the row's figures are of, where they show an overflow.
  void count_overflows(LayerPrediction&) const;

 private:
  struct Layer {
    net::Role right = net::Role::weight;  ///< of fprop
    std::atomic<std::int64_t> of{0}, nan{0}, infinite{0};
    std::atomic<std::int64_t> inherited{0};  ///< NaN and infinite ones
    std::atomic<std::int64_t> born_infinite{0}, born_nan{0};
    std::atomic<std::int64_t> stored_infinite{0}, stored_nan{0};  ///< after the role output
    std::atomic<double> reach{0};  ///< what no sum of those products exceeds
    /// Of its first product: later ones may find the weight released.
    std::once_flag saw_weight;
    bool finite_weight = true;
    double largest_weight = 0;

    /// The role output made finite results NaN or infinite.
    bool output_overflowed() const { return stored_nan + stored_infinite > nan + infinite; }
  };

  double reach(const net::Product&, const Layer&) const;
  std::vector<std::string> causes(const std::string& name, const Layer&) const;

  const net::Graph& graph_;
  const policies::RecipeNumerics& numerics_;
  std::map<std::string, Layer, std::less<>> layers_;
};

}  // namespace numemu::experiments
