// The outputs a fast path leaves to the reference: NaN, and those whose products may be too large.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/unit/description.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// What a fast path may meet without going wrong. A path that is wrong where a NaN or an infinity
/// takes part must leave a NaN there.
struct SafeRange {
  std::optional<int> product_top;  ///< every product is below 2^product_top
  std::optional<int> c_top;        ///< every element of C is below 2^c_top
  bool negative_zero = true;       ///< false: where C is -0, a +0 may have to be -0
};

/// Finds and recomputes outputs outside of a safe range; C and D are float32, m x n.
class Redo {
 public:
  /// Looks at the operands once; they must outlive this.
  Redo(const Gemm&, const Source<float>& a, const Source<float>& b, const SafeRange&);
  /// Computes every output again that is NaN in `d` or outside of the safe range. `code_only`: NaN
  /// needs no reference, only the description's code.
  void run(const UnitDescription&, const Gemm&, bool code_only = false) const;

 private:
  bool outside(std::int64_t i, std::int64_t j) const {
    return !a_tops_.empty() && a_tops_[i] + b_tops_[j] > *range_.product_top;
  }
  SafeRange range_;
  std::vector<std::int32_t> a_tops_, b_tops_;  ///< per row; empty where every product is safe
};

}  // namespace numemu::unit
