// tcgen05.mma, dense: a kernel for each row of instructions/tcgen05.def.
#include "tests/oracle/cuda/device/tcgen05_kernel.cuh"

namespace numemu::oracle::recording {
namespace rows {

#define NUMEMU_GPU_INSTRUCTION(kind, M, N, K, D, A, B, C, sparsity, scale, block, satfinite, ...) \
  NUMEMU_TCGEN05_ROW(NUMEMU_TCGEN05_NAME(kind, M, N, K, D, A, B, satfinite),                      \
                     "tcgen05.mma.cta_group::1." NUMEMU_TCGEN05_KIND_##A " [%0], %1, %2, %3",     \
                     kind, M, N, K, D, A, B, C, sparsity, scale, block, satfinite, __VA_ARGS__)
#include "emu/oracle/recording/instructions/tcgen05.def"
#undef NUMEMU_GPU_INSTRUCTION

}  // namespace rows

void add_tcgen05(std::vector<Kernel>& kernels) {
#define NUMEMU_GPU_INSTRUCTION(kind, M, N, K, D, A, B, C, sparsity, scale, block, satfinite, ...) \
  tcgen05::add_row<rows::NUMEMU_TCGEN05_NAME(kind, M, N, K, D, A, B, satfinite)>(kernels);
#include "emu/oracle/recording/instructions/tcgen05.def"
#undef NUMEMU_GPU_INSTRUCTION
}

}  // namespace numemu::oracle::recording
