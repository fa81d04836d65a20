// What files written for one instruction set ask before they run.
#pragma once

namespace numemu::unit {

/// Whether 512-bit vectors may be used: the CPU and the system have them, and Highway has not been
/// told to leave them out (tests and benchmarks narrow its targets).
bool has_wide_vectors();
/// The same for AVX512-FP16.
bool has_wide_float16();

}  // namespace numemu::unit
