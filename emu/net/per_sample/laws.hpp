// Closed moments of the gradients of samples whose operands are rounded at random, from float32
// values and the format alone.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/per_sample/operands.hpp"
#include "emu/stats/rounded_dots.hpp"
#include "formats/format.hpp"

namespace numemu::net::per_sample {

using stats::Moments, stats::RoundedElement, stats::RoundedVector, stats::StochasticLaw;

/// What one draw adds to the mean squared length of a sample's gradient: over the positions p of
/// each layer the sum of G X' + G' X + G' X', with the squared length and the summed variances of
/// the rounded g_p and x_p, and of G' for the bias.
double one_draw_bias(const std::vector<LayerOperands>&, const Format&, const Rounding&,
                     std::int64_t sample);

/// Moments of the squared length of a sample's gradient by one draw, and by two.
struct SelfLaw {
  Moments one, two;
};

/// Moments of drawn gradients. Those of factored layers are exact; the variances of others are
/// those of what the draws change to first order, which leaves out v v' and the square of a draw.
class GradientLaws {
 public:
  /// Of the first `count` samples of operands, which must outlive this.
  GradientLaws(const std::vector<LayerOperands>&, const Format&, const Rounding&,
               std::int64_t count);
  SelfLaw self(std::int64_t sample) const;
  /// The dot product of two samples' gradients by independent draws, where all layers are factored.
  Moments two(std::int64_t i, const GradientLaws&, std::int64_t j) const;

 private:
  struct Side {
    const SampleOperand* operand = nullptr;
    double scale = 1;
    std::vector<RoundedElement> rounded;  ///< of factored layers
    RoundedVector of(std::int64_t sample) const;
  };
  struct Layer {
    bool factored = true, bias = false;
    Side g, x;
  };
  SelfLaw to_first_order(const Layer&, std::int64_t sample) const;

  StochasticLaw law_;
  std::vector<Layer> layers_;
};

}  // namespace numemu::net::per_sample
