// wgmma of Hopper, dense: a kernel for each row of instructions/wgmma.def.
#include "tests/oracle/cuda/device/wgmma_kernel.cuh"

namespace numemu::oracle::recording {
namespace rows {

#define NUMEMU_GPU_INSTRUCTION(...) NUMEMU_WGMMA_ROW("", "", __VA_ARGS__)
#include "emu/oracle/recording/instructions/wgmma.def"
#undef NUMEMU_GPU_INSTRUCTION

}  // namespace rows

void add_wgmma(std::vector<Kernel>& kernels) {
#define NUMEMU_GPU_INSTRUCTION(kind, m, n, k, d, a, b, c, sparsity, scale, block, satfinite, ...) \
  add_wgmma_row<rows::NUMEMU_WGMMA_NAME(kind, m, n, k, d, a, b, satfinite)>(kernels);
#include "emu/oracle/recording/instructions/wgmma.def"
#undef NUMEMU_GPU_INSTRUCTION
}

}  // namespace numemu::oracle::recording
