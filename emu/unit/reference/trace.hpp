// The trace of one output: every product, the bits that alignment cut, every partial sum.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/value.hpp"

namespace numemu::unit {

/// One addend of a step. Numbers are exact, written by the caller as it likes.
struct TraceTerm {
  std::string what;                  ///< "product", "padding", "C", "register", "sum of k 0..3"...
  std::int64_t k = -1;               ///< of a product; -1: anything else, padding included
  std::uint64_t a = 0, b = 0;        ///< codes of a product
  Value product;                     ///< exact, before any cut or rounding
  Value kept;                        ///< what was added after the cut or the rounding
  std::optional<int> exponent = {};  ///< it takes part in the alignment with; unnormalised
  std::optional<Value> scale_a = {}, scale_b = {};  ///< of its block
  std::optional<Value> after = {};  ///< the register after it, where each term is added by itself
  std::optional<Value> error = {};  ///< compensated sums: what the next product is corrected by
};

/// One step: its terms, its exact sum and what was written to the register.
struct TraceStep {
  std::string what;              ///< "step 3, k 96..127"
  std::int64_t instruction = 0;  ///< that it belongs to
  std::vector<TraceTerm> terms;
  std::optional<int> largest_exponent = {};  ///< of the alignment, where there is one
  std::optional<Value> sum = {};             ///< before rounding, where one is formed
  std::optional<std::uint64_t> result = {};  ///< code of the register; none for a NaN that its
                                             ///< format does not have
  bool outer = false;                        ///< the outer register is written
};

struct Trace {
  std::vector<TraceStep> steps;
  std::uint64_t result = 0;       ///< code of D
  std::int64_t instructions = 1;  ///< of the output
  std::int64_t instruction = 0;   ///< the one at work
  std::int64_t numbered = 0;      ///< steps that have a number
};

}  // namespace numemu::unit
