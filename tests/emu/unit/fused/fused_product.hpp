// A product of a fused unit, with its operands and the reference's result.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/unit/description.hpp"
#include "emu/unit/reference/dot.hpp"
#include "tests/emu/unit/problem.hpp"

namespace numemu::unit::test {

/// One product with everything it points to.
struct FusedProduct {
  UnitDescription unit;
  std::int64_t m = 0, n = 0, k = 0;
  OperandData a, b;
  bool with_c = false;
  std::vector<float> c;
  std::vector<std::uint16_t> half_c;
  std::vector<std::uint8_t> scale_a, scale_b;

  /// D has 16 bits.
  bool half() const { return (unit.d != nullptr ? unit.d : unit.accumulator.format)->bits == 16; }
  std::size_t bytes() const { return static_cast<std::size_t>(m * n) * (half() ? 2 : 4); }

  Gemm gemm(std::vector<std::uint8_t>& d) const {
    d.assign(bytes(), 0xa5);
    const void* const addend = half() ? static_cast<const void*>(half_c.data()) : c.data();
    return {.m = m,
            .n = n,
            .k = k,
            .a = a.operand(),
            .b = b.operand(),
            .c = with_c ? addend : nullptr,
            .d = d.data(),
            .scale_a = scale_a.data(),
            .scale_b = scale_b.data()};
  }

  std::vector<std::uint8_t> reference() const {
    std::vector<std::uint8_t> d;
    const Gemm g = gemm(d);
    const ReferenceDot dot(unit, g);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) dot.write(i, j);
    }
    return d;
  }
};

}  // namespace numemu::unit::test
