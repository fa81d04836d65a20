// Operands in blocks along K that are no neighbours in the source: quantized after the gather.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/product.hpp"
#include "policies/numerics/operands/operand_side.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// Gathers rows of float32 numbers, at most 1 MiB at a time, and quantizes them by blocks along K,
/// the last one short. An operand that is no larger than its source is quantized at once; so is one
/// whose format has a tensor scale, matrix by matrix, or sample by sample where `samples` > 1
/// (then a matrix is one tensor, or each of its shares is).
/// Random bits count elements in the order [matrix, row, k].
class GatheredSide final : public OperandSide {
 public:
  /// `scaled`: codes and scale codes for a block-scaled unit; else float32 values.
  GatheredSide(const RoleQuantizer&, const net::Product&, net::Side, const RandomPiece&,
               std::int64_t samples, bool scaled);
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
  net::Side which_;
  const net::ProductSide& side_;
  RandomPiece random_;
  bool scaled_;
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

}  // namespace numemu::policies
