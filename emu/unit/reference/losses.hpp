// What a traced output lost on the way to its result, exactly.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "emu/unit/reference/trace.hpp"
#include "emu/unit/unit.hpp"
#include "formats/value.hpp"

namespace numemu::unit {

/// Of one step. Losses are what should have been added minus what was, and what was to be held
/// minus what is; none where nothing finite is lost.
struct StepLosses {
  std::vector<std::optional<Value>> terms;  ///< by cuts and roundings, for each term of the step
  std::optional<Value> rounding = {};       ///< of the step's sum to the register
  /// The exact sum of the products that the register now has, of operands as stored, and of C where
  /// it is in; and how far the register is above it.
  std::optional<Value> exact = {}, off = {};
};

/// For each step of the trace of output (i, j), which the description gave for the product.
std::vector<StepLosses> find_losses(const UnitDescription&, const Gemm&, std::int64_t i,
                                    std::int64_t j, const Trace&);

/// The exact sum: 64 leading bits, sticky.
Value exact_sum(std::initializer_list<Value>);
bool is_finite(const Value&);

}  // namespace numemu::unit
