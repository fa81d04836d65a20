// Gradients through a quantized network, for steps that train it.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "emu/net/numerics.hpp"
#include "policies/tuning/tuning.hpp"

namespace numemu::policies {

/// What the numerics below forward to.
struct OwnedNumerics {
  std::unique_ptr<RecipeNumerics> owned;
};

/// Numerics of the tuned network whose forward pass is that of eval, bit for bit (steps of
/// inference: CalibrationStep), where ranges fix all static scales; others are those of the
/// reference, which do not move with the weights. The backward pass is in float32: a gradient
/// passes a quantizer unchanged, but is zero where the activation lies beyond its fixed range.
/// Products of backward read rounded weights and unrounded activations. One thread at a time; made
/// anew after ranges change.
class StraightThroughNumerics final : private OwnedNumerics, public net::Forwarding {
 public:
  /// Without `weights` the gradients of weights stay as they are allocated: nobody reads them.
  explicit StraightThroughNumerics(const Tuning&, bool weights = true);

  /// After weights of the tuned network changed: they are rounded anew.
  void weights_changed(const Tuning&);

  void begin_step(const net::Step&) override;
  void product(const net::Step&, const net::Product&) override;
  /// Contexts stay as they are, whatever the role `saved` says.
  net::Saved save(const net::Step&, const net::Kept&, const net::SharedTensor& tensor) override {
    return {tensor};
  }
  net::SharedTensor restore(const net::Step&, const net::Kept&, net::Saved saved) override {
    return saved.tensor;
  }

 private:
  /// The weight of a layer as its unit reads it; as it is where that is not rounded whole.
  const net::Tensor& rounded(std::string_view layer, const net::Tensor& weight);

  std::set<std::string, std::less<>> unread_;             ///< layers whose weights get no gradient
  std::map<std::string, ValueRange, std::less<>> reach_;  ///< of activations, by layer
  std::map<std::string, net::Tensor, std::less<>> rounded_;
  /// Where forward read elements beyond: of each product that backward has not met yet.
  std::map<std::string, std::vector<std::vector<bool>>, std::less<>> beyond_;
};

}  // namespace numemu::policies
