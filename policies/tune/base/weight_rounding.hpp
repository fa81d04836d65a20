// How weights are rounded while they are tuned: the numbers that each element may become under
// scales that stay, and the step that chooses among them layer by layer.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/tensor.hpp"
#include "formats/blocks/block_convert.hpp"
#include "policies/recipe/role_policy.hpp"
#include "policies/tune/base/tune_step.hpp"
#include "policies/tune/base/tuned_layers.hpp"

namespace numemu::policies {

class WeightGrid {
 public:
  /// The scales are those that the role's rule chooses for that weight, [out, ..., in], or those
  /// that ranges fix. Throws Error for stochastic rounding, under which no element has one nearest
  /// number.
  WeightGrid(const RolePolicy&, const net::Tensor& weight);

  /// What element i of the weight becomes, were it x: what the recipe makes of it under those
  /// scales.
  float nearest(std::int64_t i, float x) const { return number(conversion_, i, x); }
  /// The largest number at or below x, and the smallest at or above; the end of the format beyond.
  float below(std::int64_t i, float x) const { return number(down_, i, x); }
  float above(std::int64_t i, float x) const { return number(up_, i, x); }
  /// Every element at its nearest number.
  net::Tensor nearest(const net::Tensor& weight) const;

  /// Elements i of one scale have one number; each scale belongs to neighbours of a row or to whole
  /// rows.
  std::int64_t scale_of(std::int64_t i) const { return layout_.block_of(i); }
  /// One for each equal share of a weight without blocks, else empty.
  const std::vector<float>& plain_scales() const { return plain_scales_; }
  /// A scale that all elements share multiplies every other.
  bool has_tensor_scale() const { return format_->tensor_scale; }

 private:
  float number(const Conversion&, std::int64_t i, float x) const;

  const BlockFormat* format_;
  BlockLayout layout_;
  std::vector<float> plain_scales_;
  std::vector<BlockScale> scales_;
  Conversion conversion_, down_, up_;
};

// What the steps share that only choose how each layer's weight is rounded.

/// Options of every such step.
struct RoundingOptions : PolicyOptions {
  std::string mode = "sequential";
  std::int64_t samples = 0;

 protected:
  /// `own`, then mode and samples.
  std::vector<Option> with_inputs(std::vector<Option> own);
};

/// Rounds one layer after another by what it reads, X^T X of its inputs before they are quantized:
/// scales are those of the layer's ranges or its rule and become ranges; weights become numbers of
/// the format. A weight that several layers have is rounded once, by the sum of their X^T X.
class RoundingStep : public TuneStep {
 public:
  RoundingStep(std::string_view name, const RoundingOptions& options)
      : name_(name), inputs_(options) {}

  std::int64_t begin(const Tuning&) override;
  void run(Tuning&, std::int64_t part, const TuneProgress&) override;
  void save_state(net::NamedState&) const override;
  void load_state(const net::NamedState&) override;
  std::string summary() const override;

 private:
  /// The weight as numbers of the role.
  virtual net::Tensor round(const RolePolicy&, const net::Tensor& weight,
                            const LayerHessians&) const = 0;

  /// Joins layers of one weight; leaves out those whose weight something else reads, too.
  void join_shared(const Tuning&);

  std::string_view name_;
  const RoundingOptions& inputs_;
  std::vector<TunedLayer> layers_;
  std::vector<std::vector<TunedLayer>> others_;  ///< of each layer: those with the same weight
  std::string left_out_;
  std::vector<double> errors_;  ///< of each layer: of rounding to nearest, of this rounding
};

}  // namespace numemu::policies
