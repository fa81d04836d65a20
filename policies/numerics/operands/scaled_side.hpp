// Codes and scale codes for a block-scaled unit, quantized before the gather and read in place.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/net/product.hpp"
#include "policies/numerics/operands/block_lines.hpp"
#include "policies/numerics/operands/operand_side.hpp"
#include "policies/numerics/operands/scaled_gather.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

class ScaledSide final : public OperandSide {
 public:
  ScaledSide(const RoleQuantizer&, const net::Product&, net::Side, ScaledGather, const RandomPiece&,
             std::int64_t samples);
  std::int64_t rows_at_once() const override { return rows_; }
  std::int64_t depth() const override { return gather_.depth(); }
  OperandRows rows(std::int64_t b, std::int64_t begin, std::int64_t end) override;
  OperandScales scales() const override;
  FlagCounts flags() const override { return flags_; }

 private:
  void cut_lines(const Lines&);
  void gather_scales(const std::uint8_t* line_scales);

  const RoleQuantizer& quantizer_;
  const net::Product& product_;
  const net::ProductSide& side_;
  ScaledGather gather_;
  std::int64_t rows_, matrix_ = -1;
  LineCodes lines_;
  std::vector<std::uint8_t> cut_codes_, cut_scales_, padded_scales_, scale_table_;
  net::Stack stack_;             ///< of lines
  std::int64_t lines_each_ = 0;  ///< of a matrix
  std::optional<net::StackReader> codes_;
  FlagCounts flags_;
};

}  // namespace numemu::policies
