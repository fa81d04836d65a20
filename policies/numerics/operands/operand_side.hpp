// One operand of a product as a unit reads it: matrix by matrix, a range of rows at a time.
#pragma once
#include <cstdint>

#include "emu/net/product.hpp"
#include "emu/unit/unit.hpp"
#include "formats/conversion.hpp"
#include "policies/numerics/operands/operand_scales.hpp"

namespace numemu::policies {

/// Rows of one matrix of an operand, valid until the next call of the side.
struct OperandRows {
  unit::Operand operand;
  const std::uint8_t* scales = nullptr;  ///< block-scaled units: [rows, blocks along the depth]
};

class OperandSide {
 public:
  virtual ~OperandSide() = default;
  /// Rows per call of rows(): all of a matrix, or as many as a tile holds.
  virtual std::int64_t rows_at_once() const = 0;
  /// K as the unit sees it.
  virtual std::int64_t depth() const = 0;
  /// Rows [begin, end) of matrix b of the product. A side with one matrix serves all.
  virtual OperandRows rows(std::int64_t b, std::int64_t begin, std::int64_t end) = 0;
  /// Scales that remain to be applied to the results, known after every row was read.
  virtual OperandScales scales() const { return {}; }
  /// Flags of the quantized elements, each counted once.
  virtual FlagCounts flags() const { return {}; }
};

/// Codes that lie as the source does, read by its own gather.
class PlainSide final : public OperandSide {
 public:
  PlainSide(const net::Product&, net::Side, const net::SourceCodes&);
  std::int64_t rows_at_once() const override { return rows_; }
  std::int64_t depth() const override { return depth_; }
  OperandRows rows(std::int64_t b, std::int64_t begin, std::int64_t end) override;

 private:
  const Format* format_;
  const unit::Gather* gather_;
  std::int64_t rows_, depth_;
  net::StackReader reader_;
};

/// D of every matrix, tile by tile of the operands' rows. A stochastic register draws with another
/// tensor for every tile: random.tensor + the tile's number.
void multiply_tiles(const unit::Unit&, const net::Product&, OperandSide& a, OperandSide& b,
                    const net::ProductRandom&, const net::ProductResult&);

}  // namespace numemu::policies
