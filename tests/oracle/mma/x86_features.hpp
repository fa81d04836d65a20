// Whether this CPU has an instruction and the kernel lets this process use it.
#pragma once

namespace numemu::oracle::mma {

/// All false where the CPU is no x86. The AMX functions request the tile registers from the kernel.
bool has_amx_bf16();
bool has_amx_int8();
bool has_avx512_bf16();
bool has_avx512_vnni();
bool has_avx512_fp16();
bool has_avx2();
bool has_avx_vnni();

}  // namespace numemu::oracle::mma
