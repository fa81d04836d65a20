// A mask that draws anew in every step, applied to a tensor of a product, and the thresholds of the
// last steps that may serve it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/numerics.hpp"
#include "policies/mask/mask_tensor.hpp"

namespace numemu::policies {

/// One layer's first-in-first-out list (Ye et al.; docs/masks.md): a step prunes while it
/// streams, at the mean of the last thresholds, and appends the threshold of its own tensor.
class ThresholdHistory {
 public:
  /// Mean of the last `length` thresholds; nothing, and no pruning, until there are as many.
  std::optional<double> prediction(std::int64_t length) const;
  /// Appends the threshold of the step that ended and keeps the last `length`. One that is not
  /// finite and positive (a tensor of zeros, an overflow) is left out.
  void push(double threshold, std::int64_t length);

  /// For checkpoints, oldest first.
  std::string state() const;
  void load(const std::string& name, const std::string& state);

 private:
  std::vector<double> thresholds_;
};

// The pruning threshold of each tensor of a training step, its own or predicted from earlier ones.

/// Of one mask of a layer's gradients. Products that read the same tensor in one step share its
/// threshold: it is known by the product's repetition in the step and the tensor's size.
class StepThresholds {
 public:
  /// history 0: own(). Else the mean of the last `history` thresholds, 0 (nothing is pruned) until
  /// there are that many; own() then joins them.
  double of(std::int64_t repetition, std::int64_t size, std::int64_t history,
            const std::function<double()>& own);
  void begin_step() { step_.clear(); }

  std::string state() const { return history_.state(); }
  void load(const std::string& name, const std::string& state) {
    step_.clear();
    history_.load(name, state);
  }

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, double> step_;
  ThresholdHistory history_;
};

/// The product whose tensor is pruned: where its draws come from, and its thresholds.
struct Pruning {
  std::uint64_t seed = 0;
  net::Phase phase = net::Phase::inference;
  std::string_view layer = {};
  net::Role role = net::Role::activation;
  std::string_view axis = {};     ///< of the tensor identity: "mask-channel"
  std::int64_t step = 0;          ///< of training
  std::int64_t repetition = 0;    ///< training: Product::repetition_in()
  std::int64_t first_sample = 0;  ///< inference: of the batch
  /// Training: thresholds that products of a step share; null: the tensor's own.
  StepThresholds* thresholds = nullptr;
};

Pruning pruning_of(std::uint64_t seed, const net::Step&, const net::Product&, net::Role);

/// y = x under the mask. The draws have the tensor identity LAYER/ROLE/STEP/AXIS, with the step
/// "7.1", "7.2" for the second and later products of a kind in a step. In inference the `samples`
/// equal shares of a tensor are pruned as if each stood alone.
void prune(const MaskPolicy&, const Pruning&, const MaskLayout&, std::int64_t samples,
           const float* x, float* y);

}  // namespace numemu::policies
