// The one kernel of tcgen05.mma: a block of four warps computes a tile with a single instruction.
#pragma once
#include "tests/oracle/cuda/device/kernel.cuh"
#include "tests/oracle/cuda/layout/tcgen05_tile.hpp"

// tcgen05 is of the families 10.x and 11.x and wants a target for one chip (sm_100a); 10.1 is the
// name CUDA 12 gave to 11.0.
#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM101_ALL) || \
    defined(__CUDA_ARCH_FEAT_SM103_ALL) || defined(__CUDA_ARCH_FEAT_SM110_ALL)
#define NUMEMU_TCGEN05
#endif

namespace numemu::oracle::recording::tcgen05 {

constexpr int kThreads = 128;

/// kind::i8 is not of compute capability 10.3: ptxas 13.0 refuses it for sm_103a.
#ifdef __CUDA_ARCH_FEAT_SM103_ALL
constexpr bool kHasInt8 = false;
#else
constexpr bool kHasInt8 = true;
#endif

/// What an instruction is told: addresses in tensor memory, descriptors of shared memory.
struct Operands {
  std::uint32_t d;
  std::uint64_t a, b;
  std::uint32_t instruction, metadata, scale_a, scale_b;
};

#ifdef NUMEMU_TCGEN05
__device__ inline std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

// Instructions that say .aligned are executed by a whole warp at once, hence __syncwarp.

/// By one whole warp; the address arrives at `where`. The permit for a second one is given back.
__device__ inline void allocate(std::uint32_t* where) {
  __syncwarp();
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                   shared_address(where)),
               "n"(kTensorColumns)
               : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}
__device__ inline void deallocate(std::uint32_t address) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address),
               "n"(kTensorColumns)
               : "memory");
}

/// A barrier of all threads that also orders tcgen05 operations before it and after it.
__device__ inline void synchronize() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/// A warp stores to and loads from its own 32 lanes: a cell of each column a thread. Loading waits
/// in the same block of assembly, so that no use of the registers can come in between.
__device__ inline void store4(std::uint32_t address, const std::uint32_t (&cell)[4]) {
  __syncwarp();
  asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address),
               "r"(cell[0]), "r"(cell[1]), "r"(cell[2]), "r"(cell[3])
               : "memory");
}
__device__ inline void store8(std::uint32_t address, const std::uint32_t (&cell)[8]) {
  __syncwarp();
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"r"(
          address),
      "r"(cell[0]), "r"(cell[1]), "r"(cell[2]), "r"(cell[3]), "r"(cell[4]), "r"(cell[5]),
      "r"(cell[6]), "r"(cell[7])
      : "memory");
}
__device__ inline void load8(std::uint32_t address, std::uint32_t (&cell)[8]) {
  __syncwarp();
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : "=r"(cell[0]), "=r"(cell[1]), "=r"(cell[2]), "=r"(cell[3]), "=r"(cell[4]), "=r"(cell[5]),
        "=r"(cell[6]), "=r"(cell[7])
      : "r"(address)
      : "memory");
}

/// Waits for the first completion of a barrier.
__device__ inline void wait(std::uint32_t barrier) {
  std::uint32_t done = 0;
  while (done == 0)
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], 0;\n"
        "selp.b32 %0, 1, 0, done;\n"
        "}"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
}

/// All threads: rows of A or columns of B, one after the other in `codes`, as the unit reads them.
__device__ inline void fill_shared(const Instruction& i, Element e, const SharedTile& tile,
                                   std::uint8_t* shared, const std::uint8_t* codes) {
  const int chunks = tile.row_bytes / kCoreRowBytes;
  const int code_bytes = chunk_elements(i, e) * info(e).bytes;
  for (int n = static_cast<int>(threadIdx.x); n < tile.rows * chunks; n += kThreads)
    *reinterpret_cast<Chunk*>(shared + tile.place(n / chunks, n % chunks * kCoreRowBytes)) =
        pack_chunk(i, e, codes + n * code_bytes);
}

template <class Row>
__device__ void compute(const Tiles& tiles, std::size_t tile) {
  constexpr Instruction i = Row::instruction();
  constexpr TileBytes bytes = tile_bytes(i);
  constexpr bool kSparse = i.sparsity != Sparsity::dense;
  static_assert(i.n == 8 && (i.m == 64 || i.m == 128), "load8 and row_of_lane");
  constexpr SharedTile kTileA = shared_a(i), kTileB = shared_b(i);
  __shared__ alignas(128) std::uint8_t a[kTileA.bytes()];
  __shared__ alignas(128) std::uint8_t b[kTileB.bytes()];
  __shared__ alignas(8) std::uint64_t done;
  __shared__ std::uint32_t tensor;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;

  fill_shared(i, i.a, kTileA, a, tiles.a + tile * bytes.a);
  fill_shared(i, i.b, kTileB, b, tiles.b + tile * bytes.b);
  // The unit reads shared memory through the asynchronous proxy.
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (warp == 0) allocate(&tensor);
  if (thread == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&done)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  synchronize();

  const std::uint32_t lanes = tensor + (static_cast<std::uint32_t>(32 * warp) << 16);
  const int row = row_of_lane(i, thread);
  constexpr int kBytesOfC = info(i.c).bytes;
  const std::uint8_t* const c = tiles.c + tile * bytes.c;
  std::uint32_t cell[8] = {};
#pragma unroll
  for (int n = 0; n < 8; ++n)
    if (row >= 0)
      cell[n] = static_cast<std::uint32_t>(load_code(c + (row * 8 + n) * kBytesOfC, kBytesOfC));
  store8(lanes + kColumnOfD, cell);
  std::uint32_t group[4];
  if constexpr (kSparse) {
#pragma unroll
    for (int n = 0; n < 4; ++n)
      group[n] = metadata_cell(i, tiles.metadata + tile * bytes.metadata, thread, n);
    store4(lanes + kColumnOfMetadata, group);
  }
  if constexpr (i.block != 0) {
#pragma unroll
    for (int n = 0; n < 4; ++n)
      group[n] = scale_cell(i, tiles.scale_a + tile * bytes.scale_a, i.m, thread, n);
    store4(lanes + kColumnOfScaleA, group);
#pragma unroll
    for (int n = 0; n < 4; ++n)
      group[n] = scale_cell(i, tiles.scale_b + tile * bytes.scale_b, i.n, thread, n);
    store4(lanes + kColumnOfScaleB, group);
  }
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  synchronize();

  if (thread == 0) {
    Row::issue({tensor + kColumnOfD, shared_descriptor(shared_address(a), kTileA),
                shared_descriptor(shared_address(b), kTileB), instruction_descriptor(i),
                tensor + kColumnOfMetadata, tensor + kColumnOfScaleA, tensor + kColumnOfScaleB});
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
            shared_address(&done))
        : "memory");
  }
  wait(shared_address(&done));
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");

  load8(lanes + kColumnOfD, cell);
  constexpr int kBytesOfD = info(i.d).bytes;
  std::uint8_t* const d = tiles.d + tile * bytes.d;
#pragma unroll
  for (int n = 0; n < 8; ++n)
    if (row >= 0) store_code(d + (row * 8 + n) * kBytesOfD, kBytesOfD, cell[n]);
  synchronize();
  if (warp == 0) deallocate(tensor);
}
#endif

/// Row: a struct of NUMEMU_TCGEN05_ROW, named after its instruction, as the kernel then is.
template <class Row>
__global__ void __launch_bounds__(kThreads) tcgen05_kernel(Tiles tiles) {
#ifdef NUMEMU_TCGEN05
  if constexpr (kHasInt8 || !is_integer(Row::instruction().a))
    compute<Row>(tiles, blockIdx.x);
  else
    __trap();
#else
  (void)tiles;
  __trap();  // built for a chip without it: the host asks Instruction::chips and never comes here
#endif
}

template <class Row>
void launch(const Tiles& tiles) {
  if (tiles.count > 0) tcgen05_kernel<Row><<<static_cast<unsigned>(tiles.count), kThreads>>>(tiles);
}

/// Nothing where the compiler is older than tcgen05: PTX 8.6, first in CUDA 12.8.
template <class Row>
void add_row(std::vector<Kernel>& kernels) {
  if constexpr (100 * __CUDACC_VER_MAJOR__ + __CUDACC_VER_MINOR__ >= 1208)
    kernels.push_back(
        {Row::instruction(), &launch<Row>, reinterpret_cast<const void*>(&tcgen05_kernel<Row>)});
}

}  // namespace numemu::oracle::recording::tcgen05

// tc5_m64n8k32_s32_s8_u8_satfinite
#define NUMEMU_TCGEN05_JOIN(name, suffix) NUMEMU_TCGEN05_JOIN_(name, suffix)
#define NUMEMU_TCGEN05_JOIN_(name, suffix) name##suffix
#define NUMEMU_TCGEN05_SUFFIX_false
#define NUMEMU_TCGEN05_SUFFIX_true _satfinite
#define NUMEMU_TCGEN05_NAME(kind, M, N, K, D, A, B, satfinite) \
  NUMEMU_TCGEN05_JOIN(kind##_m##M##n##N##k##K##_##D##_##A##_##B, NUMEMU_TCGEN05_SUFFIX_##satfinite)

// The kind of instructions without block scales, by the type of A.
#define NUMEMU_TCGEN05_KIND_f16 "kind::f16"
#define NUMEMU_TCGEN05_KIND_bf16 "kind::f16"
#define NUMEMU_TCGEN05_KIND_tf32 "kind::tf32"
#define NUMEMU_TCGEN05_KIND_e4m3 "kind::f8f6f4"
#define NUMEMU_TCGEN05_KIND_e5m2 "kind::f8f6f4"
#define NUMEMU_TCGEN05_KIND_e3m2 "kind::f8f6f4"
#define NUMEMU_TCGEN05_KIND_e2m3 "kind::f8f6f4"
#define NUMEMU_TCGEN05_KIND_e2m1 "kind::f8f6f4"
#define NUMEMU_TCGEN05_KIND_s8 "kind::i8"
#define NUMEMU_TCGEN05_KIND_u8 "kind::i8"

// A row of instructions/tcgen05*.def as a struct NAME; TEXT is the PTX up to enable-input-d, which
// is true: D is read as C. Operands: %0 d, %1 a, %2 b, %3 instruction descriptor, %4 metadata, %5
// and %6 the scales of A and B.
#define NUMEMU_TCGEN05_ROW(NAME, TEXT, kind, M, N, K, D, A, B, C, sparsity, scale, block,         \
                           satfinite, first, last, exact)                                         \
  struct NAME {                                                                                   \
    NUMEMU_HD static constexpr Instruction instruction() {                                        \
      return NUMEMU_GPU_ROW_OF(kind, M, N, K, D, A, B, C, sparsity, scale, block, satfinite,      \
                               first, last, exact);                                               \
    }                                                                                             \
    static __device__ void issue(const tcgen05::Operands& o) {                                    \
      asm volatile(                                                                               \
          "{\n"                                                                                   \
          ".reg .pred add;\n"                                                                     \
          "setp.ne.b32 add, 1, 0;\n" TEXT                                                         \
          ", add;\n"                                                                              \
          "}" ::"r"(o.d),                                                                         \
          "l"(o.a), "l"(o.b), "r"(o.instruction), "r"(o.metadata), "r"(o.scale_a), "r"(o.scale_b) \
          : "memory");                                                                            \
    }                                                                                             \
  };
