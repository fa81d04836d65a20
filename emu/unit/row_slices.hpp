// Large products a few rows of A at a time, so that A is never in memory decoded as a whole.
#pragma once
#include <vector>

#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// Rows [begin, end) of A and where they read: `gather` over the source from element `first` on.
struct RowSlice {
  std::int64_t begin = 0, end = 0;
  std::int64_t first = 0;
  Gather gather;
};

/// A's rows in slices that each read a part of the source of their own, about kSliceElements
/// decoded elements or one padded image; empty where A decodes to less than two of them, is read in
/// place, or where rows do not lie in the source's order.
std::vector<RowSlice> slice_rows(const Operand& a, std::int64_t rows);
inline constexpr std::int64_t kSliceElements = std::int64_t{1} << 20;

/// The product's share of a slice, which must outlive it. For dense units without scales whose
/// register draws no random bits.
Gemm gemm_of(const UnitDescription&, const Gemm&, const RowSlice&);

}  // namespace numemu::unit
