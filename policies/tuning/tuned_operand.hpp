// An operand of a layer while it is tuned: quantized as its role says, under a range that is
// trained where the format allows.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "policies/recipe/role_policy.hpp"
#include "policies/tuning/trained_range.hpp"

namespace numemu::policies {

class TunedOperand {
 public:
  /// Null: float32. The first scales are those that ranges fix; of a weight else those of its
  /// role's rule.
  static TunedOperand weight(const std::optional<RolePolicy>&, const net::Tensor& weight);
  static TunedOperand activation(const std::optional<RolePolicy>&);

  /// Null where nothing is trained.
  TrainedRange* range() { return range_ ? &*range_ : nullptr; }
  const TrainedRange* range() const { return range_ ? &*range_ : nullptr; }
  void quantize(const net::Tensor& x, net::Tensor& y) const;
  /// As TrainedRange::backward; the identity where nothing is trained.
  void backward(const net::Tensor& x, net::Tensor& gradient,
                std::vector<net::Tensor>& parameters) const;

 private:
  std::optional<RoleQuantizer> quantizer_;
  std::optional<TrainedRange> range_;
  bool of_samples_ = false;  ///< scales without a range are those of each sample
};

}  // namespace numemu::policies
