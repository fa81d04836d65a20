// Products of operands in blocks with float32 scales on a unit that reads codes without scales: one
// product of the unit per block of the depth, scaled and added in float32.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/product.hpp"
#include "emu/unit/unit.hpp"
#include "policies/numerics/operands/block_lines.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// One operand: codes of lines along the depth, and the scale of every block of a line.
class BlockSlices {
 public:
  /// Blocks of the role's size, or tiles, of the operand's lines; of the matrix that windows and
  /// steps of a sequence become (Im2colOperand). Throws Error naming layer and product where groups
  /// begin inside blocks.
  BlockSlices(const RoleQuantizer&, const net::Product&, net::Side, const RandomPiece&);

  std::int64_t block() const { return block_; }
  const Format& format() const { return *format_; }
  const FlagCounts& flags() const { return flags_; }
  /// Of row r of matrix b: its codes, `length` of them, and its scales.
  const std::uint8_t* codes(std::int64_t b, std::int64_t r) const;
  float scale(std::int64_t b, std::int64_t r, std::int64_t slice) const;

 private:
  std::int64_t line(std::int64_t b, std::int64_t r) const;
  void read_tiles(const RoleQuantizer&, const net::ProductSide&, const RandomPiece&);

  const Format* format_;
  net::Stack stack_;
  bool transposed_ = false;
  std::int64_t rows_ = 0, length_ = 0, block_;
  std::int64_t line_length_ = 0, per_line_ = 0;  ///< elements and scales of a line of the source
  std::vector<std::uint8_t> codes_;
  std::vector<float> scales_;
  FlagCounts flags_;
};

/// D of every matrix: for each block of the depth in turn, D = fma(scale of a * scale of b, the
/// unit's sum of that block's codes, D) in float32, from 0 on. Throws Error for blocks of two
/// sizes.
void multiply_slices(const unit::Unit&, const net::Product&, const BlockSlices& a,
                     const BlockSlices& b, const net::ProductRandom&);

}  // namespace numemu::policies
