// Windows, groups and steps of a sequence, copied out in float32 as a plain GEMM kernel reads
// im2col.
#pragma once
#include "emu/net/numerics.hpp"
#include "emu/net/tensor.hpp"
#include "emu/unit/gather.hpp"

namespace numemu::policies {

/// An operand whose windows, groups or steps of a sequence are copied out in float32, as a plain
/// GEMM kernel reads im2col: its source is its matrices [count * rows, k], zeros where borders are.
class Im2colOperand {
 public:
  Im2colOperand(const net::Product&, net::Side);
  Im2colOperand(const Im2colOperand&) = delete;
  Im2colOperand& operator=(const Im2colOperand&) = delete;
  const net::ProductSide& side() const { return side_; }

 private:
  net::Tensor matrices_;
  unit::Gather gather_;
  net::ProductSide side_;
};

}  // namespace numemu::policies
