// The result of a unit, converted to float32 under the operands' scales; sums of vectors on a unit.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/net/product.hpp"
#include "emu/unit/unit.hpp"
#include "formats/format.hpp"
#include "policies/numerics/layer_state.hpp"
#include "policies/numerics/operands/operand_scales.hpp"
#include "policies/numerics/overflow_sample.hpp"

namespace numemu::policies {

/// With codes q and zero points z of A and B and depth K,
///   sum (qa - za)(qb - zb) = sum qa qb - za sum qb - zb sum qa + K za zb,
/// the sums over the depth. A unit gives the first one; the others are integers, exact.
struct ZeroPoints {
  std::int32_t a = 0, b = 0;
  std::int64_t depth = 0;
  /// [matrices][rows] sums of codes along the depth, empty where the other zero point is 0.
  std::vector<std::int64_t> a_sums, b_sums;

  bool none() const { return a == 0 && b == 0; }
  /// What has to be subtracted from row i, column j of matrix m of the unit's results.
  std::int64_t excess(const net::Product&, std::int64_t matrix, std::int64_t i,
                      std::int64_t j) const;
};

/// A side whose border is padded with the code of the zero point, which means 0, as hardware pads.
struct PaddedSide {
  net::Tensor sizes;  ///< of the padded source, for its shape alone
  unit::Gather gather;
  std::vector<std::uint8_t> codes;
  net::ProductSide side;
};

/// `codes` are bytes in the order of the source. The result refers to itself: it must not move.
void pad_with(std::uint8_t code, const net::ProductSide&, const std::uint8_t* codes,
              PaddedSide& padded);

/// The sums of all rows of the operand, one after another, matrix by matrix.
std::vector<std::int64_t> code_sums(const net::ProductSide&, const net::SourceCodes&,
                                    std::int64_t depth);

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

/// y[i] = the float32 value of codes[i], for formats of 9 to 16 bits whose values float32 holds.
/// Uses threads.
void decode_halves(const Format&, const std::uint16_t* codes, std::int64_t n, float* y);

/// sum[i] = RNE_f32 of the unit's dot of addends[0][i], addends[1][i], ... with ones, for n
/// elements, which may be those of an addend. The unit takes float32 operands. `random_of` gives
/// the random bits of a tile of 4096 elements, for units with stochastic registers.
void add_on_unit(const unit::Unit&, std::span<const float* const> addends, std::int64_t n,
                 float* sum, const std::function<net::ProductRandom(std::int64_t tile)>& random_of);

}  // namespace numemu::policies
