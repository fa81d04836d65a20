// The one kernel of all warp-level matrix instructions: a block is a warp and computes a tile.
#pragma once
#include <type_traits>

#include "tests/oracle/cuda/device/kernel.cuh"
#include "tests/oracle/cuda/layout/fragment_volta.hpp"
#include "tests/oracle/cuda/layout/metadata.hpp"

namespace numemu::oracle::recording {

/// Operands of one lane; f32 and f64 travel as their bits.
template <class Word, int kD, int kA, int kB, int kC>
struct Registers {
  Word d[kD], a[kA], b[kB], c[kC];
  std::uint32_t metadata;

  NUMEMU_HD static constexpr bool is(int d_count, int a_count, int b_count, int c_count) {
    return kD == d_count && kA == a_count && kB == b_count && kC == c_count;
  }
};

/// The fragments of fragment.hpp; mma.m8n8k4 of half precision has its own (fragment_volta.hpp).
struct WarpLayout {
  NUMEMU_HD static constexpr int a_registers(const Instruction& i) {
    return recording::a_registers(i);
  }
  NUMEMU_HD static constexpr int b_registers(const Instruction& i) {
    return recording::b_registers(i);
  }
  NUMEMU_HD static constexpr int c_registers(const Instruction& i, Element e) {
    return recording::c_registers(i, e);
  }
  NUMEMU_HD static std::uint64_t gather_a(const Instruction& i, const std::uint8_t* a, int lane,
                                          int r) {
    return recording::gather_a(i, a, lane, r);
  }
  NUMEMU_HD static std::uint64_t gather_b(const Instruction& i, const std::uint8_t* b, int lane,
                                          int r) {
    return recording::gather_b(i, b, lane, r);
  }
  NUMEMU_HD static std::uint64_t gather_c(const Instruction& i, const std::uint8_t* c, int lane,
                                          int r) {
    return recording::gather_c(i, c, lane, r);
  }
  NUMEMU_HD static void scatter_d(const Instruction& i, std::uint8_t* d, int lane, int r,
                                  std::uint64_t word) {
    recording::scatter_d(i, d, lane, r, word);
  }
};

template <class Row>
struct LaneOf {
  static constexpr Instruction i = Row::instruction();
  using Layout = std::conditional_t<i.m == 8 && i.a == Element::f16, QuadPairLayout, WarpLayout>;
  using Word = std::conditional_t<i.d == Element::f64, std::uint64_t, std::uint32_t>;
  using type = Registers<Word, Layout::c_registers(i, i.d), Layout::a_registers(i),
                         Layout::b_registers(i), Layout::c_registers(i, i.c)>;
};

/// Compute capability that this pass of nvcc compiles for; 0 on the host.
#ifdef __CUDA_ARCH__
constexpr int kCompiledFor = __CUDA_ARCH__ / 10;
#else
constexpr int kCompiledFor = 0;
#endif
/// Whether it compiles for a chip of `chips`.
NUMEMU_HD constexpr bool compiled_for(Chips chips) {
#if defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__) || \
    defined(__CUDA_ARCH_FEAT_SM120_ALL) || defined(__CUDA_ARCH_FEAT_SM121_ALL)
  constexpr bool kForItAlone = true;  // sm_120a, not sm_120
#else
  constexpr bool kForItAlone = false;
#endif
  return chips.first <= kCompiledFor && kCompiledFor <= chips.last && (kForItAlone || !chips.exact);
}

/// Row: an instruction and its PTX, a struct of NUMEMU_GPU_ROW; its name stands in the kernel's.
template <class Row>
__global__ void warp_kernel(Tiles tiles) {
  using Layout = typename LaneOf<Row>::Layout;
  constexpr Instruction i = Row::instruction();
  if constexpr (!compiled_for(i.chips)) {
    __trap();  // built for a chip without it: the host asks Instruction::chips and never comes here
  } else {
    constexpr TileBytes bytes = tile_bytes(i);
    const int lane = static_cast<int>(threadIdx.x);
    const std::size_t tile = blockIdx.x;
    typename LaneOf<Row>::type r;
#pragma unroll
    for (int n = 0; n < Layout::a_registers(i); ++n)
      r.a[n] = Layout::gather_a(i, tiles.a + tile * bytes.a, lane, n);
#pragma unroll
    for (int n = 0; n < Layout::b_registers(i); ++n)
      r.b[n] = Layout::gather_b(i, tiles.b + tile * bytes.b, lane, n);
#pragma unroll
    for (int n = 0; n < Layout::c_registers(i, i.c); ++n)
      r.c[n] = Layout::gather_c(i, tiles.c + tile * bytes.c, lane, n);
    if constexpr (i.sparsity != Sparsity::dense)
      r.metadata = gather_metadata(i, tiles.metadata + tile * bytes.metadata, lane);
    Row::issue(r);
#pragma unroll
    for (int n = 0; n < Layout::c_registers(i, i.d); ++n)
      Layout::scatter_d(i, tiles.d + tile * bytes.d, lane, n, r.d[n]);
  }
}

template <class Row>
void launch_warps(const Tiles& tiles) {
  if (tiles.count > 0) warp_kernel<Row><<<tiles.count, 32>>>(tiles);
}

/// Appends the row unless this compiler does not know the instruction.
template <class Row>
void add_row(std::vector<Kernel>& kernels) {
  if constexpr (Row::is_known())
    kernels.push_back(
        {Row::instruction(), &launch_warps<Row>, reinterpret_cast<const void*>(&warp_kernel<Row>)});
}

/// Whether nvcc and its ptxas take the instruction at all. FP8 came in steps: into float32 with PTX
/// 8.4 (CUDA 12.4), k16 and float16 with PTX 8.7 (CUDA 12.8); mma.sp of FP8 into float16 is for
/// sm_120a alone. mma.m8n8k4 has no float32 C with a float16 D. All seen with ptxas 13.0.
constexpr bool knows(const Instruction& i) {
  constexpr int kCompiler = __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__;
  const bool fp8 = info(i.a).bits == 8 && !is_integer(i.a);
  if (!fp8) return !(i.d == Element::f16 && i.c == Element::f32);
  if (i.sparsity != Sparsity::dense && i.d == Element::f16 && !i.chips.exact) return false;
  return kCompiler >= (i.k == 16 || i.d == Element::f16 ? 1208 : 1204);
}

}  // namespace numemu::oracle::recording

// A family defines NUMEMU_GPU_INSTRUCTION as NUMEMU_GPU_ROW and includes its instructions/*.def for
// a struct a row, then defines it as NUMEMU_GPU_ADD and includes it again within add_FAMILY.

#define NUMEMU_GPU_JOIN(a, b) NUMEMU_GPU_JOIN_(a, b)
#define NUMEMU_GPU_JOIN_(a, b) a##b
#define NUMEMU_GPU_NAME_false
#define NUMEMU_GPU_NAME_true _satfinite
#define NUMEMU_GPU_NAME(kind, M, N, K, D, A, B, C, satfinite) \
  NUMEMU_GPU_JOIN(kind##_m##M##n##N##k##K##_##D##_##A##_##B##_##C, NUMEMU_GPU_NAME_##satfinite)

#define NUMEMU_GPU_PTX_mma "mma.sync.aligned.m"
// Ordered metadata (the first index below the second) is PTX 8.5, of CUDA 12.5; before, mma.sp
// took the same metadata.
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1205
#define NUMEMU_GPU_PTX_mmasp "mma.sp::ordered_metadata.sync.aligned.m"
#else
#define NUMEMU_GPU_PTX_mmasp "mma.sp.sync.aligned.m"
#endif
#define NUMEMU_GPU_PTX_false ""
#define NUMEMU_GPU_PTX_true ".satfinite"

#define NUMEMU_GPU_PTX(kind, M, N, K, D, A, B, C, satfinite)                                 \
  NUMEMU_GPU_PTX_##kind #M "n" #N "k" #K ".row.col" NUMEMU_GPU_PTX_##satfinite "." #D "." #A \
                                                                               "." #B "." #C

#define NUMEMU_GPU_ROW(kind, M, N, K, D, A, B, C, sparsity, scale, block, satfinite, first, last, \
                       exact)                                                                     \
  struct NUMEMU_GPU_NAME(kind, M, N, K, D, A, B, C, satfinite) {                                  \
    NUMEMU_HD static constexpr Instruction instruction() {                                        \
      return NUMEMU_GPU_ROW_OF(kind, M, N, K, D, A, B, C, sparsity, scale, block, satfinite,      \
                               first, last, exact);                                               \
    }                                                                                             \
    static constexpr bool is_known() { return knows(instruction()); }                             \
    template <class R>                                                                            \
    static __device__ void issue(R& r) {                                                          \
      NUMEMU_GPU_ISSUE_##kind(NUMEMU_GPU_PTX(kind, M, N, K, D, A, B, C, satfinite))               \
    }                                                                                             \
  };

// The forms by their counts of registers of D, A, B and C. L: "r" for 32 bits, "l" for 64.
#define NUMEMU_GPU_1(L, x) L(x[0])
#define NUMEMU_GPU_2(L, x) L(x[0]), L(x[1])
#define NUMEMU_GPU_4(L, x) L(x[0]), L(x[1]), L(x[2]), L(x[3])
#define NUMEMU_GPU_8(L, x) NUMEMU_GPU_4(L, x), L(x[4]), L(x[5]), L(x[6]), L(x[7])
#define NUMEMU_GPU_FORM(ptx, L, nd, na, nb, nc, operands)                                      \
  if constexpr (R::is(nd, na, nb, nc))                                                         \
    asm volatile(ptx " " operands ";"                                                          \
                 : NUMEMU_GPU_##nd("=" L, r.d)                                                 \
                 : NUMEMU_GPU_##na(L, r.a), NUMEMU_GPU_##nb(L, r.b), NUMEMU_GPU_##nc(L, r.c)); \
  else
#define NUMEMU_GPU_SPARSE(ptx, nd, na, nb, nc, operands)                 \
  if constexpr (R::is(nd, na, nb, nc))                                   \
    asm volatile(ptx " " operands ", 0x0;"                               \
                 : NUMEMU_GPU_##nd("=r", r.d)                            \
                 : NUMEMU_GPU_##na("r", r.a), NUMEMU_GPU_##nb("r", r.b), \
                   NUMEMU_GPU_##nc("r", r.c), "r"(r.metadata));          \
  else
#define NUMEMU_GPU_NO_FORM static_assert(sizeof(R) == 0, "no form has these counts of registers");

#define NUMEMU_GPU_ISSUE_mma(ptx)      \
  if constexpr (sizeof(r.d[0]) == 8) { \
    NUMEMU_GPU_ISSUE_wide(ptx)         \
  } else {                             \
    NUMEMU_GPU_ISSUE_narrow(ptx)       \
  }
#define NUMEMU_GPU_ISSUE_wide(ptx)                                                        \
  NUMEMU_GPU_FORM(ptx, "l", 2, 1, 1, 2, "{%0,%1}, {%2}, {%3}, {%4,%5}")                   \
  NUMEMU_GPU_FORM(ptx, "l", 4, 2, 1, 4, "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10}")   \
  NUMEMU_GPU_FORM(ptx, "l", 4, 4, 2, 4,                                                   \
                  "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13}")             \
  NUMEMU_GPU_FORM(                                                                        \
      ptx, "l", 4, 8, 4, 4,                                                               \
      "{%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%16,%17,%18,%19}") \
  NUMEMU_GPU_NO_FORM
#define NUMEMU_GPU_ISSUE_narrow(ptx)                                                        \
  NUMEMU_GPU_FORM(ptx, "r", 4, 2, 1, 4, "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10}")     \
  NUMEMU_GPU_FORM(ptx, "r", 2, 2, 1, 2, "{%0,%1}, {%2,%3}, {%4}, {%5,%6}")                  \
  NUMEMU_GPU_FORM(ptx, "r", 4, 4, 2, 4,                                                     \
                  "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13}")               \
  NUMEMU_GPU_FORM(ptx, "r", 2, 4, 2, 2, "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9}")         \
  NUMEMU_GPU_FORM(ptx, "r", 2, 1, 1, 2, "{%0,%1}, {%2}, {%3}, {%4,%5}")                     \
  NUMEMU_GPU_FORM(                                                                          \
      ptx, "r", 8, 2, 2, 8,                                                                 \
      "{%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, {%12,%13,%14,%15,%16,%17,%18,%19}")   \
  NUMEMU_GPU_FORM(ptx, "r", 4, 2, 2, 4, "{%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%8,%9,%10,%11}") \
  NUMEMU_GPU_FORM(ptx, "r", 8, 2, 2, 4,                                                     \
                  "{%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, {%12,%13,%14,%15}")       \
  NUMEMU_GPU_NO_FORM
#define NUMEMU_GPU_ISSUE_mmasp(ptx)                                                           \
  NUMEMU_GPU_SPARSE(ptx, 4, 2, 2, 4, "{%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%8,%9,%10,%11}, %12") \
  NUMEMU_GPU_SPARSE(ptx, 2, 2, 2, 2, "{%0,%1}, {%2,%3}, {%4,%5}, {%6,%7}, %8")                \
  NUMEMU_GPU_SPARSE(ptx, 4, 4, 4, 4,                                                          \
                    "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%12,%13,%14,%15}, %16")  \
  NUMEMU_GPU_SPARSE(ptx, 2, 4, 4, 2, "{%0,%1}, {%2,%3,%4,%5}, {%6,%7,%8,%9}, {%10,%11}, %12") \
  NUMEMU_GPU_NO_FORM

#define NUMEMU_GPU_ADD(kind, M, N, K, D, A, B, C, sparsity, scale, block, satfinite, first, last, \
                       exact)                                                                     \
  add_row<rows::NUMEMU_GPU_NAME(kind, M, N, K, D, A, B, C, satfinite)>(kernels);
