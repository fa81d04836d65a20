// What happened inside one output: every product, what alignment cut, every partial sum.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/value.hpp"

namespace numemu::unit {

/// One product, or C where it is an addend. Numbers are exact, written by the caller as it likes.
struct TraceTerm {
  std::int64_t k = -1;         ///< -1: C, or a sum (`what` says which)
  std::uint64_t a = 0, b = 0;  ///< codes
  Value product;               ///< exact, before any cut or rounding
  int exponent = 0;            ///< it takes part in the alignment with; unnormalised
  Value kept;                  ///< what was added after the cut or the rounding
  std::string what;            ///< "product", "C", "sum of even k"...
};

/// One step: its terms, its exact sum and what was written to the register.
struct TraceStep {
  std::vector<TraceTerm> terms;
  int largest_exponent = 0;  ///< of the alignment
  bool aligned = false;      ///< largest_exponent means something
  Value sum;                 ///< before rounding
  std::uint64_t result = 0;  ///< code of the register
  std::string what;          ///< "step 3, k 96..127"
};

struct Trace {
  std::vector<TraceStep> steps;
  std::uint64_t result = 0;  ///< code of D
};

}  // namespace numemu::unit
