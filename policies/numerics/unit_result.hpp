// The result of a unit, converted to float32 under the operands' scales.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/net/product.hpp"
#include "emu/unit/unit.hpp"
#include "formats/format.hpp"
#include "policies/numerics/layer_state.hpp"
#include "policies/numerics/operands/operand_scales.hpp"
#include "policies/numerics/overflow_sample.hpp"
#include "policies/numerics/zero_points.hpp"

namespace numemu::policies {

/// Receives the results of one product: the product's own D where the unit writes float32, else a
/// buffer in the unit's container. One at a time in a thread.
class UnitResult {
 public:
  UnitResult(const unit::Unit&, const net::Product&);
  net::ProductResult target();
  /// Of results that are not scaled yet: those at an end of the unit's register. None of a register
  /// that neither saturates nor stops at its largest number.
  SaturationCounts saturation() const;
  /// D = RNE_f32(alpha * result), the result exact, of any width; alpha as apply_scales().
  /// With zero points, what they leave in the results is subtracted first: exactly, and of two's
  /// complement results modulo 2^32, as epilogues of integer units do.
  void finish(const OperandScales& a, const OperandScales& b, const ZeroPoints& = {});
  /// D = the numbers of codes that integers alone make of int32 results, from which zero points are
  /// subtracted modulo 2^32: the bias RNE(bias / (s_a s_b)) is added modulo 2^32, the factor is s_a
  /// s_b / s, in float64 for fixed point, in float32 from left to right else. Throws Error naming
  /// the layer where the left operand has several scales.
  void requantize(const OperandScales& a, const OperandScales& b, const ZeroPoints&,
                  const ResultCodes&);

 private:
  void subtract(const ZeroPoints&, std::vector<double>& results) const;

  const net::Product& product_;
  const unit::Unit& unit_;
  const Format* format_;  ///< null: two's complement
  int bits_ = 32, fraction_ = 0;
  std::int64_t bytes_;
  std::byte* codes_ = nullptr;  ///< a buffer of the thread; null: the product's own D
};

/// RNE_f32(a * b), one rounding.
float rounded_product(double a, float b);

}  // namespace numemu::policies
