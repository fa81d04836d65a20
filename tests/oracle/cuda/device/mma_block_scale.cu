// mma.sync with block scales (kind::mxf8f6f4, mxf4, mxf4nvf4) of the RTX Blackwell family.
#include "tests/oracle/cuda/device/warp_kernel.cuh"
#include "tests/oracle/cuda/layout/scale_fragment.hpp"

// By K and block (PTX ISA, "Valid combinations of .scale_vec_size and .kind qualifier"). Blocks of
// 32 with K = 64 exist in mxf4nvf4 too; mxf4 stands for both.
#define NUMEMU_BLOCK_SCALE_KIND_32_32 "kind::mxf8f6f4.block_scale.scale_vec::1X"
#define NUMEMU_BLOCK_SCALE_KIND_64_32 "kind::mxf4.block_scale.scale_vec::2X"
#define NUMEMU_BLOCK_SCALE_KIND_64_16 "kind::mxf4nvf4.block_scale.scale_vec::4X"

// mma_block_scale_m16n8k64_e2m1_e2m1_ue4m3_block16
#define NUMEMU_BLOCK_SCALE_NAME(M, N, K, A, B, SCALE, BLOCK) \
  mma_block_scale_m##M##n##N##k##K##_##A##_##B##_##SCALE##_block##BLOCK

namespace numemu::oracle::recording {
namespace rows {

#define NUMEMU_GPU_INSTRUCTION(kind, M, N, K, D, A, B, C, sparsity, SCALE, BLOCK, satfinite,       \
                               first, last, exact)                                                 \
  struct NUMEMU_BLOCK_SCALE_NAME(M, N, K, A, B, SCALE, BLOCK) {                                    \
    NUMEMU_HD static constexpr Instruction instruction() {                                         \
      return NUMEMU_GPU_ROW_OF(kind, M, N, K, D, A, B, C, sparsity, SCALE, BLOCK, satfinite,       \
                               first, last, exact);                                                \
    }                                                                                              \
    template <class Lane>                                                                          \
    static __device__ void issue(Lane& r, std::uint32_t scale_a, std::uint32_t scale_b) {          \
      asm volatile("mma.sync.aligned." NUMEMU_BLOCK_SCALE_KIND_##K##_##BLOCK                       \
                   ".m" #M "n" #N "k" #K ".row.col." #D "." #A "." #B "." #C "." #SCALE            \
                   " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13}, "         \
                   "%14, {0, 0}, %15, {0, 0};"                                                     \
                   : "=r"(r.d[0]), "=r"(r.d[1]), "=r"(r.d[2]), "=r"(r.d[3])                        \
                   : "r"(r.a[0]), "r"(r.a[1]), "r"(r.a[2]), "r"(r.a[3]), "r"(r.b[0]), "r"(r.b[1]), \
                     "r"(r.c[0]), "r"(r.c[1]), "r"(r.c[2]), "r"(r.c[3]), "r"(scale_a),             \
                     "r"(scale_b));                                                                \
    }                                                                                              \
  };
#include "emu/oracle/recording/instructions/mma_block_scale.def"
#undef NUMEMU_GPU_INSTRUCTION

}  // namespace rows

/// warp_kernel with two operands more.
template <class Row>
__global__ void block_scale_kernel(Tiles tiles) {
  constexpr Instruction i = Row::instruction();
  if constexpr (!compiled_for(i.chips)) {
    __trap();  // built for a chip without it: the host asks Instruction::chips and never comes here
  } else {
    using Lane = Registers<std::uint32_t, 4, 4, 2, 4>;
    static_assert(a_registers(i) == 4 && b_registers(i) == 2 && c_registers(i, i.d) == 4);
    constexpr TileBytes bytes = tile_bytes(i);
    const int lane = static_cast<int>(threadIdx.x);
    const std::size_t tile = blockIdx.x;
    Lane r;
#pragma unroll
    for (int n = 0; n < 4; ++n) r.a[n] = gather_a(i, tiles.a + tile * bytes.a, lane, n);
#pragma unroll
    for (int n = 0; n < 2; ++n) r.b[n] = gather_b(i, tiles.b + tile * bytes.b, lane, n);
#pragma unroll
    for (int n = 0; n < 4; ++n) r.c[n] = gather_c(i, tiles.c + tile * bytes.c, lane, n);
    Row::issue(r, gather_scale_a(i, tiles.scale_a + tile * bytes.scale_a, lane),
               gather_scale_b(i, tiles.scale_b + tile * bytes.scale_b, lane));
#pragma unroll
    for (int n = 0; n < 4; ++n) scatter_d(i, tiles.d + tile * bytes.d, lane, n, r.d[n]);
  }
}

template <class Row>
void launch_block_scale(const Tiles& tiles) {
  if (tiles.count > 0) block_scale_kernel<Row><<<tiles.count, 32>>>(tiles);
}

/// The kinds came with PTX 8.7 of CUDA 12.8, ue8m0 for blocks of 16 with PTX 9.1 of CUDA 13.1 (PTX
/// ISA, "Changes in PTX ISA Version 9.1"; ptxas 13.0 refuses it).
constexpr bool knows_block_scale(const Instruction& i) {
  return 100 * __CUDACC_VER_MAJOR__ + __CUDACC_VER_MINOR__ >=
         (i.block == 16 && i.scale == Element::ue8m0 ? 1301 : 1208);
}

/// Nothing where the compiler is older than the instruction.
template <class Row>
void add_block_scale_row(std::vector<Kernel>& kernels) {
  if constexpr (knows_block_scale(Row::instruction()))
    kernels.push_back({Row::instruction(), &launch_block_scale<Row>,
                       reinterpret_cast<const void*>(&block_scale_kernel<Row>)});
}

void add_mma_block_scale(std::vector<Kernel>& kernels) {
#define NUMEMU_GPU_INSTRUCTION(kind, M, N, K, D, A, B, C, sparsity, SCALE, BLOCK, ...) \
  add_block_scale_row<rows::NUMEMU_BLOCK_SCALE_NAME(M, N, K, A, B, SCALE, BLOCK)>(kernels);
#include "emu/oracle/recording/instructions/mma_block_scale.def"
#undef NUMEMU_GPU_INSTRUCTION
}

}  // namespace numemu::oracle::recording
