// Gradients through a quantized network, for steps that train it.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emu/net/forwarding.hpp"
#include "policies/tuning/tuning.hpp"

namespace numemu::policies {

/// What the numerics below forward to.
struct OwnedNumerics {
  std::unique_ptr<RecipeNumerics> owned;
};

/// Numerics of the tuned network whose forward pass is that of eval, bit for bit (steps of
/// inference: CalibrationStep), and whose backward pass is in float32: a gradient passes a
/// quantizer unchanged, but is zero where the activation lies beyond its fixed range, and products
/// read the rounded weights. One thread at a time; made anew after weights or ranges change.
class StraightThroughNumerics final : private OwnedNumerics, public net::Forwarding {
 public:
  explicit StraightThroughNumerics(const Tuning&);

  void begin_step(const net::Step&) override;
  void product(const net::Step&, const net::Product&) override;

 private:
  std::map<std::string, ValueRange, std::less<>> reach_;  ///< of activations, by layer
  /// Where forward read elements beyond: of each product that backward has not met yet.
  std::map<std::string, std::vector<std::vector<bool>>, std::less<>> beyond_;
};

/// The parameters of the graph that are trained, while this lives: those of `names`.
class OnlyTrained {
 public:
  OnlyTrained(net::Graph&, const std::vector<std::string>& names);
  ~OnlyTrained();
  OnlyTrained(const OnlyTrained&) = delete;
  OnlyTrained& operator=(const OnlyTrained&) = delete;

 private:
  std::vector<net::Parameter*> parameters_;
  std::vector<bool> before_;
};

}  // namespace numemu::policies
