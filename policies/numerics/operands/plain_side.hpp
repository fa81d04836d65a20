// An operand whose codes lie as its source does: a unit reads it in place.
#pragma once
#include <cstdint>

#include "emu/net/product.hpp"
#include "policies/numerics/operands/operand_side.hpp"

namespace numemu::policies {

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

}  // namespace numemu::policies
