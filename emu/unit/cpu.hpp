// What the program and files written for one instruction set check before they run.
#pragma once

namespace numemu::unit {

/// Whether the CPU has the instructions that every vector loop needs: on x86 SSE4.2, PCLMULQDQ,
/// AES.
bool has_least_vectors();
/// Whether 512-bit vectors may be used: the CPU and the system have them, and Highway has not been
/// limited to other targets (by tests and benchmarks).
bool has_wide_vectors();
/// has_wide_vectors() with AVX512-FP16.
bool has_wide_float16();

}  // namespace numemu::unit
