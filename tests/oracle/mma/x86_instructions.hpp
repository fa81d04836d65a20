// One tile through one instruction of this CPU; see x86_features.hpp for whether it may be called.
#pragma once
#include <cstdint>

namespace numemu::oracle::mma {

/// D[16][16] = A[16][k] x B[k][16] + C[16][16] in the instruction's types, operands as they lie in
/// memory. AMX: k 32 (bfloat16) or 64 (bytes); AVX-512: k is what a lane takes.
using TileInstruction = void (*)(const void* a, const void* b, const void* c, void* d);

void run_tdpbf16ps(const void* a, const void* b, const void* c, void* d);
void run_tdpbssd(const void* a, const void* b, const void* c, void* d);
void run_tdpbsud(const void* a, const void* b, const void* c, void* d);
void run_tdpbusd(const void* a, const void* b, const void* c, void* d);
void run_tdpbuud(const void* a, const void* b, const void* c, void* d);
void run_vdpbf16ps(const void* a, const void* b, const void* c, void* d);
void run_vpdpbusd(const void* a, const void* b, const void* c, void* d);
void run_vpdpbusds(const void* a, const void* b, const void* c, void* d);
void run_vpdpwssd(const void* a, const void* b, const void* c, void* d);
void run_vpdpwssds(const void* a, const void* b, const void* c, void* d);
void run_vfmadd231ph(const void* a, const void* b, const void* c, void* d);
/// VPMADDUBSW, VPMADDWD with ones and VPADDD of AVX2: k is 4.
void run_vpmaddubsw(const void* a, const void* b, const void* c, void* d);
/// The VEX encodings of AVX-VNNI.
void run_vex_vpdpbusd(const void* a, const void* b, const void* c, void* d);
void run_vex_vpdpbusds(const void* a, const void* b, const void* c, void* d);
void run_vex_vpdpwssd(const void* a, const void* b, const void* c, void* d);
void run_vex_vpdpwssds(const void* a, const void* b, const void* c, void* d);

/// Sixteen numbers at a time: count is a multiple of 16.
void run_vcvtneps2bf16(const float* x, std::uint16_t* y, std::int64_t count);

}  // namespace numemu::oracle::mma
