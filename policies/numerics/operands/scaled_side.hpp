// How a block-scaled unit reads lines padded to whole blocks: codes and scale codes, quantized
// before the gather and read in place.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/net/product.hpp"
#include "emu/unit/gather.hpp"
#include "policies/numerics/operands/block_lines.hpp"
#include "policies/numerics/operands/operand_side.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// Neighbours on a line that have one scale in each operand.
struct LinePiece {
  std::int64_t from, count;
};

/// A side's gather with every line cut into pieces, each padded to a block of the unit. An
/// operand's row then reads a run of whole lines: for each a tap of a convolution, or the one line
/// of a matrix. Pieces are blocks of the source, but for the groups of a convolution that begin or
/// end inside one: both operands are cut wherever a block of either begins.
struct ScaledGather {
  std::int64_t block = 0;                        ///< elements per scale
  std::int64_t length = 0;                       ///< elements of a line: of one group
  std::vector<std::vector<LinePiece>> pieces;    ///< of a line, by group; one group: of all lines
  std::int64_t padded = 0;                       ///< elements of the longest list, in whole blocks
  unit::Gather codes;                            ///< of one matrix of padded lines
  std::vector<std::int32_t> row_line, run_line;  ///< padded line = row_line[r] + run_line[run]

  std::int64_t blocks_of_line() const { return padded / block; }
  std::int64_t depth() const { return static_cast<std::int64_t>(run_line.size()) * padded; }
};

/// Nothing where the rows of the operand do not read whole lines: wgrad of a convolution whose
/// windows are more than single pixels. Throws Error beyond the 2^31 elements a gather addresses.
std::optional<ScaledGather> scaled_gather(const net::Product&, net::Side, std::int64_t block);

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
