// mma.sync kind::f8f6f4 of the RTX Blackwell family: mixes of FP8 with FP6 and FP4.
#include "tests/oracle/cuda/device/warp_kernel.cuh"

// FP6 sits low in its byte, FP4 at bits 2 to 5 (fragment.hpp, slot_shift): CuTe
// mma_traits_sm120.hpp, fp4_shift_A. The kind came with PTX 8.7, of CUDA 12.8.

namespace numemu::oracle::recording {
namespace rows {

#define NUMEMU_F8F6F4_NAME(M, N, K, D, A, B) mma_f8f6f4_m##M##n##N##k##K##_##D##_##A##_##B
#define NUMEMU_GPU_INSTRUCTION(kind, M, N, K, D, A, B, C, sparsity, scale, block, satfinite, \
                               first, last, exact)                                           \
  struct NUMEMU_F8F6F4_NAME(M, N, K, D, A, B) {                                              \
    NUMEMU_HD static constexpr Instruction instruction() {                                   \
      return NUMEMU_GPU_ROW_OF(kind, M, N, K, D, A, B, C, sparsity, scale, block, satfinite, \
                               first, last, exact);                                          \
    }                                                                                        \
    static constexpr bool is_known() {                                                       \
      return 100 * __CUDACC_VER_MAJOR__ + __CUDACC_VER_MINOR__ >= 1208;                      \
    }                                                                                        \
    template <class R>                                                                       \
    static __device__ void issue(R& r) {                                                     \
      NUMEMU_GPU_ISSUE_mma("mma.sync.aligned.kind::f8f6f4.m" #M "n" #N "k" #K ".row.col." #D \
                           "." #A "." #B "." #C)                                             \
    }                                                                                        \
  };
#include "emu/oracle/recording/instructions/mma_f8f6f4.def"
#undef NUMEMU_GPU_INSTRUCTION

}  // namespace rows

void add_mma_f8f6f4(std::vector<Kernel>& kernels) {
#define NUMEMU_GPU_INSTRUCTION(kind, M, N, K, D, A, B, ...) \
  add_row<rows::NUMEMU_F8F6F4_NAME(M, N, K, D, A, B)>(kernels);
#include "emu/oracle/recording/instructions/mma_f8f6f4.def"
#undef NUMEMU_GPU_INSTRUCTION
}

}  // namespace numemu::oracle::recording
