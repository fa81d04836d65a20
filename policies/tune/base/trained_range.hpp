// An integer quantizer whose range is trained beside what it quantizes (Hubara et al. 2020,
// AdaQuant), and an operand of a layer while it is tuned.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emu/net/op.hpp"
#include "policies/recipe/role_policy.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// Codes from low_code to high_code, n = high_code - low_code steps. Of a group of neighbours with
/// range r and, with a zero point, least number z:
///   s = r / n, k = clamp(round(low_code - z / s), low_code, high_code), or 0 without zero point
///   q = round(clamp(x / s + k, low_code, high_code)), y = (q - k) s
/// in float32, round to nearest even. The recipe rounds the exact x / s and adds k then: the two
/// differ where x / s + k is within 2^-22 of a tie.
/// Straight-through gradients: clamped below dy/d(r, z) = (0, 1), above (1, 1), inside
/// (((q - k) - x / s) / n, 0); without zero point low_code / n, high_code / n, and the same inside.
/// dy/dx is 1 inside, 0 where clamped.
class TrainedRange {
 public:
  struct Codes {
    std::int32_t low, high;
  };
  /// The codes that the recipe uses of an integer format: without a zero point those of a signed
  /// format are symmetric.
  static Codes codes_of(const Format&, bool zero_point);

  /// One range per scale; zero_points as many, or empty for none.
  TrainedRange(Codes, std::span<const float> scales, std::span<const std::int32_t> zero_points);
  /// Of one range.
  TrainedRange(Codes, float range, float least);

  /// "range" and, with a zero point, "least", one element per group: what an optimizer steps.
  std::vector<net::Parameter>& parameters() { return parameters_; }
  const std::vector<net::Parameter>& parameters() const { return parameters_; }
  std::int64_t groups() const { return parameters_[0].value.size(); }
  /// What the recipe is to use for group g. A range that is not above 0 counts as the least normal
  /// float32.
  TensorScale scale(std::int64_t g) const;

  /// y = Q(x) of equal shares of x, one per group. Uses threads.
  void quantize(const net::Tensor& x, net::Tensor& y) const;
  /// `gradient` of y becomes that of x; gradients of the parameters, one tensor each, are replaced.
  void backward(const net::Tensor& x, net::Tensor& gradient,
                std::vector<net::Tensor>& parameters) const;

 private:
  Codes codes_;
  std::vector<net::Parameter> parameters_;
};

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
