// The kernels of cvt: one launcher per conversion.
#pragma once
#include <vector>

#include "emu/oracle/recording/conversion.hpp"

namespace numemu::oracle::recording {

struct ConversionKernel {
  Conversion conversion;
  /// n inputs to n answers (conversion.hpp) in device memory; asynchronous.
  void (*launch)(const std::uint32_t* in, std::uint32_t* out, int n);
  const void* symbol;  ///< of the __global__ function, for its name in the evidence
};

/// Appends the rows of conversions.def that this toolkit can compile; whether the GPU has one is
/// for has(conversion, chip) to say.
void add_conversions(std::vector<ConversionKernel>&);

}  // namespace numemu::oracle::recording
