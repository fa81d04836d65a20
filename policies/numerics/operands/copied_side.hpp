// Windows, groups and steps of a sequence, copied out in float32 as a plain GEMM kernel reads
// im2col.
#pragma once
#include "emu/net/numerics.hpp"
#include "emu/net/tensor.hpp"
#include "emu/unit/gather.hpp"

namespace numemu::policies {

/// An operand whose windows, groups or steps of a sequence are copied out in float32, as a plain
/// GEMM kernel reads im2col: its source is its matrices [count * rows, k], zeros where borders are.
class CopiedSide {
 public:
  CopiedSide(const net::Product&, net::Side);
  CopiedSide(const CopiedSide&) = delete;
  CopiedSide& operator=(const CopiedSide&) = delete;
  const net::ProductSide& side() const { return side_; }

 private:
  net::Tensor matrices_;
  unit::Gather gather_;
  net::ProductSide side_;
};

}  // namespace numemu::policies
