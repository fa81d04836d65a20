// One operand of a product as a unit reads it: matrix by matrix, a range of rows at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "emu/net/product.hpp"
#include "formats/conversion.hpp"
#include "policies/numerics/block_lines.hpp"
#include "policies/numerics/operand_scales.hpp"
#include "policies/recipe/role_quantizer.hpp"
#include "policies/recipe/unit_operands.hpp"

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

/// An operand whose windows, groups or steps of a sequence are copied out in float32, as a plain
/// GEMM kernel reads im2col: its source is its matrices [count * rows, k], zeros where borders are.
class CopiedSide {
 public:
  CopiedSide(const net::Product&, const net::ProductSide&);
  CopiedSide(const CopiedSide&) = delete;
  CopiedSide& operator=(const CopiedSide&) = delete;
  const net::ProductSide& side() const { return side_; }

 private:
  net::Tensor matrices_;
  unit::Gather gather_;
  net::ProductSide side_;
};

/// Codes that lie as the source does, read by its own gather.
class PlainSide final : public OperandSide {
 public:
  PlainSide(const net::ProductSide&, const net::SourceCodes&, std::int64_t rows,
            std::int64_t depth);
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

/// Gathers rows of float32 numbers, at most 1 MiB at a time, and quantizes them by blocks along K,
/// the last one short. An operand that is no larger than its source is quantized at once; so is one
/// whose format has a tensor scale, matrix by matrix, or sample by sample where `samples` > 1
/// (then a matrix is one tensor, or each of its shares is).
/// Random bits count elements in the order [matrix, row, k].
class GatheredSide final : public OperandSide {
 public:
  /// `scaled`: codes and scale codes for a block-scaled unit; else float32 values.
  GatheredSide(const RoleQuantizer&, const net::Product&, const net::ProductSide&,
               const RandomPiece&, std::int64_t samples, bool scaled);
  std::int64_t rows_at_once() const override { return at_once_; }
  std::int64_t depth() const override { return product_.k; }
  OperandRows rows(std::int64_t b, std::int64_t begin, std::int64_t end) override;
  OperandScales scales() const override;
  FlagCounts flags() const override { return flags_; }

 private:
  /// Neighbours along the depth that are neighbours in the source.
  struct Span {
    std::int64_t from, to, count;
  };
  void gather(std::int64_t matrix, std::int64_t begin, std::int64_t end);

  const RoleQuantizer& quantizer_;
  const net::Product& product_;
  const net::ProductSide& side_;
  RandomPiece random_;
  bool scaled_, left_;
  std::int64_t rows_, at_once_;
  net::StackReader reader_;
  std::int64_t padded_matrix_ = -1;  ///< the one in padded_
  std::int64_t matrix_ = -1, begin_ = -1;
  std::int64_t counted_ = 0;  ///< rows before this one, over all matrices, are in flags_
  unit::Gather gather_;       ///< of the gathered rows
  std::vector<Span> spans_;
  std::vector<float> padded_, x_, y_;
  std::vector<std::uint8_t> codes_, scale_codes_;
  std::vector<float> tensor_scales_;  ///< scaled: of every matrix and share
  FlagCounts flags_;
};

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
std::optional<ScaledGather> scaled_gather(const net::Product&, const net::ProductSide&,
                                          std::int64_t block);

class ScaledSide final : public OperandSide {
 public:
  ScaledSide(const RoleQuantizer&, const net::Product&, const net::ProductSide&, ScaledGather,
             const RandomPiece&, std::int64_t samples);
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

/// D of every matrix. A sparse unit's A is the compressed operand: where that is the product's
/// right one, D^T = B A^T is computed (a stochastic register numbers its elements so) and turned.
/// Throws Error naming the layer and the first group that keeps more than N.
void multiply_sparse(const unit::Unit&, const net::Product&, Side sparse, const net::SourceCodes& a,
                     const net::SourceCodes& b, const net::ProductRandom&,
                     const net::ProductResult&);

}  // namespace numemu::policies
