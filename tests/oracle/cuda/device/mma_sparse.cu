// mma.sp of every type.
#include "tests/oracle/cuda/device/warp_kernel.cuh"

namespace numemu::oracle::recording {
namespace rows {
#define NUMEMU_GPU_INSTRUCTION NUMEMU_GPU_ROW
#include "emu/oracle/recording/instructions/mma_sparse.def"
#undef NUMEMU_GPU_INSTRUCTION
}  // namespace rows

void add_mma_sparse(std::vector<Kernel>& kernels) {
#define NUMEMU_GPU_INSTRUCTION NUMEMU_GPU_ADD
#include "emu/oracle/recording/instructions/mma_sparse.def"
#undef NUMEMU_GPU_INSTRUCTION
}

}  // namespace numemu::oracle::recording
