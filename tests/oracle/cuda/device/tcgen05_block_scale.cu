// tcgen05.mma with block scales: a kernel for each row of instructions/tcgen05_block_scale.def.
#include "tests/oracle/cuda/device/tcgen05_kernel.cuh"

// By K and block (PTX ISA, "Valid combinations of scale_vectorsize with types and MMA-Kind").
// Blocks of 32 with K = 64 exist in mxf4nvf4 too; mxf4 stands for both.
#define NUMEMU_TCGEN05_SCALED_32_32 "kind::mxf8f6f4.block_scale.scale_vec::1X"
#define NUMEMU_TCGEN05_SCALED_64_32 "kind::mxf4.block_scale.scale_vec::2X"
#define NUMEMU_TCGEN05_SCALED_64_16 "kind::mxf4nvf4.block_scale.scale_vec::4X"

// tc5bs_m128n8k64_f32_e2m1_e2m1_ue4m3_block16
#define NUMEMU_TCGEN05_SCALED_NAME(kind, M, N, K, D, A, B, scale, block) \
  kind##_m##M##n##N##k##K##_##D##_##A##_##B##_##scale##_block##block

namespace numemu::oracle::recording {
namespace rows {

#define NUMEMU_GPU_INSTRUCTION(kind, M, N, K, D, A, B, C, sparsity, scale, block, ...) \
  NUMEMU_TCGEN05_ROW(NUMEMU_TCGEN05_SCALED_NAME(kind, M, N, K, D, A, B, scale, block), \
                     "tcgen05.mma.cta_group::1." NUMEMU_TCGEN05_SCALED_##K##_##block   \
                     " [%0], %1, %2, %3, [%5], [%6]",                                  \
                     kind, M, N, K, D, A, B, C, sparsity, scale, block, __VA_ARGS__)
#include "emu/oracle/recording/instructions/tcgen05_block_scale.def"
#undef NUMEMU_GPU_INSTRUCTION

}  // namespace rows

void add_tcgen05_block_scale(std::vector<Kernel>& kernels) {
#define NUMEMU_GPU_INSTRUCTION(kind, M, N, K, D, A, B, C, sparsity, scale, block, ...) \
  tcgen05::add_row<rows::NUMEMU_TCGEN05_SCALED_NAME(kind, M, N, K, D, A, B, scale, block)>(kernels);
#include "emu/oracle/recording/instructions/tcgen05_block_scale.def"
#undef NUMEMU_GPU_INSTRUCTION
}

}  // namespace numemu::oracle::recording
