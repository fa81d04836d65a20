// What zero points of codes leave in the sums of a unit, and borders that mean 0.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/net/product.hpp"
#include "emu/net/tensor.hpp"
#include "emu/unit/gather.hpp"

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

}  // namespace numemu::policies
