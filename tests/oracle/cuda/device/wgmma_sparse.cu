// wgmma.sp of Hopper: a kernel for each row of instructions/wgmma_sparse.def.
#include "tests/oracle/cuda/device/wgmma_kernel.cuh"

namespace numemu::oracle::recording {
namespace rows {

// Selector 0: threads 0 and 1 of each four give the metadata of 16-bit types and tf32; of 8 bits
// all four do and no other selector is defined (PTX ISA, wgmma, "Sparse matrix storage").
#define NUMEMU_GPU_INSTRUCTION(...) NUMEMU_WGMMA_ROW(".sp", ", %9, 0", __VA_ARGS__)
#include "emu/oracle/recording/instructions/wgmma_sparse.def"
#undef NUMEMU_GPU_INSTRUCTION

}  // namespace rows

void add_wgmma_sparse(std::vector<Kernel>& kernels) {
#define NUMEMU_GPU_INSTRUCTION(kind, m, n, k, d, a, b, c, sparsity, scale, block, satfinite, ...) \
  add_wgmma_row<rows::NUMEMU_WGMMA_NAME(kind, m, n, k, d, a, b, satfinite)>(kernels);
#include "emu/oracle/recording/instructions/wgmma_sparse.def"
#undef NUMEMU_GPU_INSTRUCTION
}

}  // namespace numemu::oracle::recording
