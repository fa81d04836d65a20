// AdaPrune: the kept weights of each layer solved again, so that its outputs on calibration inputs
// come nearest to the dense layer's (Hubara et al., NeurIPS 2021).
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "emu/net/numerics.hpp"
#include "policies/calibrate/least_squares.hpp"

namespace numemu::policies {

/// Watches a float32 forward pass and collects the inputs and outputs of the named layers' weight
/// products. The publication minimises the same squared error by 1,000 steps of Adam; here the
/// normal equations give its minimum. Layers are independent of each other; biases stay.
class AdaPrune : public net::Numerics {
 public:
  explicit AdaPrune(std::set<std::string, std::less<>> layers) : layers_(std::move(layers)) {}

  void product(const net::Step&, const net::Product&) override;
  /// The weight [out, ..., in] of a layer with every kept weight solved and +0 elsewhere. `keep` is
  /// 1 where kept; `masked` is the weight under the mask, where the solution stays when inputs do
  /// not determine the weights. Throws Error where the layer multiplied nothing.
  net::Tensor solve(std::string_view layer, const net::Tensor& masked,
                    const std::vector<std::uint8_t>& keep) const;
  /// Independent parts of the layer's weight (groups of a convolution).
  std::int64_t matrices(std::string_view layer) const;

 private:
  std::set<std::string, std::less<>> layers_;
  std::map<std::string, std::vector<LeastSquares>, std::less<>> squares_;  ///< by layer, matrix
};

}  // namespace numemu::policies
