// The kernel of wgmma and wgmma.sp: a warpgroup per tile, A in registers, B in shared memory, D
// loaded with C.
#pragma once
#include "tests/oracle/cuda/device/kernel.cuh"
#include "tests/oracle/cuda/layout/fragment.hpp"
#include "tests/oracle/cuda/layout/metadata.hpp"
#include "tests/oracle/cuda/layout/wgmma_descriptor.hpp"

namespace numemu::oracle::recording {

constexpr int kWarpgroup = 128;

/// Row: a struct of NUMEMU_WGMMA_ROW, named after its instruction, as the kernel then is.
template <class Row>
__global__ void __launch_bounds__(kWarpgroup) wgmma_kernel(Tiles tiles) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr Instruction kRow = Row::instruction();
  constexpr SharedTile kTile = shared_b(kRow);
  constexpr int kSums = c_registers(kRow, kRow.d);
  static_assert(a_registers(kRow) == 4 && kSums <= 4 && c_registers(kRow, kRow.c) == kSums);
  static_assert(kTile.along_k() == kTile.along_rows());
  // wgmma asks for 16 bytes (PTX ISA, "Register Fragments and Shared Memory Matrix Layouts").
  __shared__ alignas(128) std::uint8_t shared[kTile.bytes()];

  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const Tiles rows = warp_rows(kRow, tiles, static_cast<int>(blockIdx.x), thread / 32);
  for (int at = thread; at < kTile.bytes(); at += kWarpgroup)
    shared[kTile.place(at / kTile.row_bytes, at % kTile.row_bytes)] = rows.b[at];
  // Ordinary stores are made visible to the asynchronous proxy, which reads B, by each thread that
  // stored, before the barrier that lets the others rely on it (PTX ISA, wgmma.fence: "async proxy
  // fence"; membar/fence: fence.proxy.async).
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();

  std::uint32_t left[4];
  std::uint32_t sums[4] = {};
#pragma unroll
  for (int r = 0; r < 4; ++r) left[r] = static_cast<std::uint32_t>(gather_a(kRow, rows.a, lane, r));
#pragma unroll
  for (int r = 0; r < kSums; ++r)
    sums[r] = static_cast<std::uint32_t>(gather_c(kRow, rows.c, lane, r));
  std::uint32_t metadata = 0;
  if constexpr (kRow.sparsity != Sparsity::dense)
    metadata = gather_metadata(kRow, rows.metadata, lane);

  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  Row::multiply(sums, left, wgmma_descriptor(address, kTile), metadata);
#pragma unroll
  for (int r = 0; r < kSums; ++r) scatter_d(kRow, rows.d, lane, r, sums[r]);
#else
  (void)tiles;
  __trap();
#endif
}

/// 100 major + minor of the toolkit whose PTX has the instruction: wgmma 8.0, wgmma.sp 8.2, s8
/// beside u8 8.4 (PTX ISA, notes of wgmma.mma_async and wgmma.mma_async.sp).
constexpr int wgmma_toolkit(const Instruction& i) {
  if (is_integer(i.a) && i.a != i.b) return 1204;
  return i.sparsity == Sparsity::dense ? 1200 : 1202;
}

template <class Row>
void launch_wgmma(const Tiles& tiles) {
  if (tiles.count > 0) wgmma_kernel<Row><<<static_cast<unsigned>(tiles.count), kWarpgroup>>>(tiles);
}

/// Nothing where the compiler is older than the instruction.
template <class Row>
void add_wgmma_row(std::vector<Kernel>& kernels) {
  constexpr int kToolkit = 100 * __CUDACC_VER_MAJOR__ + __CUDACC_VER_MINOR__;
  if constexpr (kToolkit >= wgmma_toolkit(Row::instruction()))
    kernels.push_back({Row::instruction(), &launch_wgmma<Row>,
                       reinterpret_cast<const void*>(&wgmma_kernel<Row>)});
}

}  // namespace numemu::oracle::recording

// Pieces of the text of an instruction: D by its type; what follows scale-d, by the type of A:
// imm-scale-a, imm-scale-b (not of integers) and imm-trans-b (16-bit types only).
#define NUMEMU_WGMMA_SUMS_f16 "{%0, %1}"
#define NUMEMU_WGMMA_SUMS_f32 "{%0, %1, %2, %3}"
#define NUMEMU_WGMMA_SUMS_s32 "{%0, %1, %2, %3}"
#define NUMEMU_WGMMA_END_f16 ", 1, 1, 0"
#define NUMEMU_WGMMA_END_bf16 ", 1, 1, 0"
#define NUMEMU_WGMMA_END_tf32 ", 1, 1"
#define NUMEMU_WGMMA_END_e4m3 ", 1, 1"
#define NUMEMU_WGMMA_END_e5m2 ", 1, 1"
#define NUMEMU_WGMMA_END_s8
#define NUMEMU_WGMMA_END_u8
#define NUMEMU_WGMMA_TEXT_false
#define NUMEMU_WGMMA_TEXT_true ".satfinite"
#define NUMEMU_WGMMA_SUFFIX_false
#define NUMEMU_WGMMA_SUFFIX_true _satfinite

// wgmma_m64n8k32_s32_s8_u8_satfinite
#define NUMEMU_WGMMA_JOIN(name, suffix) name##suffix
#define NUMEMU_WGMMA_JOINED(name, suffix) NUMEMU_WGMMA_JOIN(name, suffix)
#define NUMEMU_WGMMA_NAME(kind, M, N, K, D, A, B, satfinite) \
  NUMEMU_WGMMA_JOINED(kind##_m##M##n##N##k##K##_##D##_##A##_##B, NUMEMU_WGMMA_SUFFIX_##satfinite)

// A row of instructions/wgmma*.def as a struct; SP and METADATA are the text of the sparse ones.
// One block of assembly holds it all, from the fence that orders the registers after the writes to
// them to the wait: the compiler never holds registers that the unit still reads or writes.
// Registers are "r" (.b32 in PTX, which agrees with every type of 32 bits), so no float exists
// here. For f16 the third and fourth sum are not named by the text.
#define NUMEMU_WGMMA_ROW(SP, METADATA, kind, m, n, k, d, a, b, c, sparsity, scale, block,       \
                         satfinite, first, last, exact)                                         \
  struct NUMEMU_WGMMA_NAME(kind, m, n, k, d, a, b, satfinite) {                                 \
    NUMEMU_HD static constexpr Instruction instruction() {                                      \
      return NUMEMU_GPU_ROW_OF(kind, m, n, k, d, a, b, c, sparsity, scale, block, satfinite,    \
                               first, last, exact);                                             \
    }                                                                                           \
    static __device__ void multiply(std::uint32_t (&sums)[4], const std::uint32_t (&left)[4],   \
                                    std::uint64_t right, std::uint32_t metadata) {              \
      asm volatile(                                                                             \
          "{\n"                                                                                 \
          ".reg .pred add;\n"                                                                   \
          "setp.ne.b32 add, 1, 0;\n"                                                            \
          "wgmma.fence.sync.aligned;\n"                                                         \
          "wgmma.mma_async" SP ".sync.aligned.m" #m "n" #n "k" #k NUMEMU_WGMMA_TEXT_##satfinite \
          "." #d "." #a "." #b " " NUMEMU_WGMMA_SUMS_##d ", {%4, %5, %6, %7}, %8" METADATA      \
                                                         ", add" NUMEMU_WGMMA_END_##a           \
          ";\n"                                                                                 \
          "wgmma.commit_group.sync.aligned;\n"                                                  \
          "wgmma.wait_group.sync.aligned 0;\n"                                                  \
          "}\n"                                                                                 \
          : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])                          \
          : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(metadata)   \
          : "memory");                                                                          \
    }                                                                                           \
  };
