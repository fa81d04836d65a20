// cvt: each thread converts one input, once in every lane of the packed instruction.
#include "tests/oracle/cuda/device/cvt.cuh"

namespace numemu::oracle::recording {
namespace {

constexpr int kToolkit = __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__;

#if defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FEAT_SM90_ALL) ||      \
    defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM101_ALL) || \
    defined(__CUDA_ARCH_FEAT_SM103_ALL) || defined(__CUDA_ARCH_FEAT_SM110_ALL) || \
    defined(__CUDA_ARCH_FEAT_SM120_ALL) || defined(__CUDA_ARCH_FEAT_SM121_ALL)
constexpr bool kExact = true;
#else
constexpr bool kExact = false;
#endif

/// The architecture that is being compiled has the conversion; the host compiles none.
NUMEMU_HD constexpr bool compiled_here(const Conversion& c) {
#ifdef __CUDA_ARCH__
  const int chip = __CUDA_ARCH__ / 10;
  return c.toolkit <= kToolkit && c.chips.first <= chip && chip <= c.chips.last &&
         (kExact || !c.chips.exact);
#else
  return false;
#endif
}

/// What the instruction reads: one code per lane, lowest first, and the random bits of rs.
struct Operands {
  std::uint32_t lane[4];
  std::uint32_t random;
};
__device__ float number(std::uint32_t bits) { return __uint_as_float(bits); }
__device__ std::uint32_t packed(const Operands& x, int bits) {
  return x.lane[0] | x.lane[1] << bits;
}

// One asm statement per form. PTX puts the first operand of a pair into the upper half.
#define NUMEMU_CVT_h_f(text)                                      \
  asm("cvt." text " %0, %1;" : "=h"(h) : "f"(number(x.lane[0]))); \
  r = h
#define NUMEMU_CVT_r_f(text) asm("cvt." text " %0, %1;" : "=r"(r) : "f"(number(x.lane[0])))
#define NUMEMU_CVT_f_h(text)                                                          \
  float f;                                                                            \
  asm("cvt." text " %0, %1;" : "=f"(f) : "h"(static_cast<std::uint16_t>(x.lane[0]))); \
  r = __float_as_uint(f)
#define NUMEMU_CVT_h_h(text)                                                          \
  asm("cvt." text " %0, %1;" : "=h"(h) : "h"(static_cast<std::uint16_t>(x.lane[0]))); \
  r = h
#define NUMEMU_CVT_r_ff(text) \
  asm("cvt." text " %0, %1, %2;" : "=r"(r) : "f"(number(x.lane[1])), "f"(number(x.lane[0])))
#define NUMEMU_CVT_h_ff(text)                                                                 \
  asm("cvt." text " %0, %1, %2;" : "=h"(h) : "f"(number(x.lane[1])), "f"(number(x.lane[0]))); \
  r = h
#define NUMEMU_CVT_b_ff(text)                                       \
  asm("{ .reg .b8 d; cvt." text " d, %1, %2; mov.b16 %0, {d, 0}; }" \
      : "=h"(h)                                                     \
      : "f"(number(x.lane[1])), "f"(number(x.lane[0])));            \
  r = h
#define NUMEMU_CVT_h_r(text)                                     \
  asm("cvt." text " %0, %1;" : "=h"(h) : "r"(packed(x, kSlot))); \
  r = h
#define NUMEMU_CVT_r_h(text) \
  asm("cvt." text " %0, %1;" : "=r"(r) : "h"(static_cast<std::uint16_t>(packed(x, kSlot))))
#define NUMEMU_CVT_r_b(text)                                       \
  asm("{ .reg .b8 a, z; mov.b16 {a, z}, %1; cvt." text " %0, a; }" \
      : "=r"(r)                                                    \
      : "h"(static_cast<std::uint16_t>(packed(x, kSlot))))
#define NUMEMU_CVT_r_ffr(text)       \
  asm("cvt." text " %0, %1, %2, %3;" \
      : "=r"(r)                      \
      : "f"(number(x.lane[1])), "f"(number(x.lane[0])), "r"(x.random))
#define NUMEMU_CVT_r_ffffr(text)                                                \
  asm("cvt." text " %0, {%1, %2, %3, %4}, %5;"                                  \
      : "=r"(r)                                                                 \
      : "f"(number(x.lane[3])), "f"(number(x.lane[2])), "f"(number(x.lane[1])), \
        "f"(number(x.lane[0])), "r"(x.random))
#define NUMEMU_CVT_h_ffffr(text)                                                \
  asm("cvt." text " %0, {%1, %2, %3, %4}, %5;"                                  \
      : "=h"(h)                                                                 \
      : "f"(number(x.lane[3])), "f"(number(x.lane[2])), "f"(number(x.lane[1])), \
        "f"(number(x.lane[0])), "r"(x.random));                                 \
  r = h

// One type per row: its description, and one instruction. A template, so that the text of a row
// that this architecture has not is never assembled.
#define NUMEMU_GPU_CONVERSION(id, text, to, from, rounding, satfinite, relu, form, first, last, \
                              exact, toolkit)                                                   \
  struct cvt_##id {                                                                             \
    static constexpr Conversion kRow = {                                                        \
        text,      Element::to, Element::from, CvtRounding::rounding,                           \
        satfinite, relu,        CvtForm::form, Chips{first, last, exact},                       \
        toolkit};                                                                               \
    template <bool kHere>                                                                       \
    __device__ static std::uint32_t ask([[maybe_unused]] const Operands& x) {                   \
      [[maybe_unused]] constexpr int kSlot = slot(Element::from);                               \
      [[maybe_unused]] std::uint16_t h = 0;                                                     \
      std::uint32_t r = 0;                                                                      \
      if constexpr (kHere) {                                                                    \
        NUMEMU_CVT_##form(text);                                                                \
      } else {                                                                                  \
        __trap();                                                                               \
      }                                                                                         \
      return r;                                                                                 \
    }                                                                                           \
  };
#include "emu/oracle/recording/conversions.def"
#undef NUMEMU_GPU_CONVERSION

template <class Row>
__global__ void convert(const std::uint32_t* in, std::uint32_t* out, int n) {
  constexpr Conversion kRow = Row::kRow;
  constexpr int kLanes = kRow.lanes(), kSlot = slot(kRow.d), kBits = answer_bits(kRow);
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const std::uint32_t x = in[i], other = in[i + 1 < n ? i + 1 : 0];
  std::uint32_t answer = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    Operands operands = {{other, other, other, other}, random_bits(kRow, x)};
    operands.lane[lane] = x;
    std::uint32_t code = Row::template ask<compiled_here(kRow)>(operands) >> (kSlot * lane);
    if (kSlot < 32) code &= (1U << kSlot % 32) - 1;
    answer |= code << (kBits * lane);
  }
  out[i] = answer;
}

template <class Row>
void launch(const std::uint32_t* in, std::uint32_t* out, int n) {
  constexpr int kThreads = 256;
  convert<Row><<<(n + kThreads - 1) / kThreads, kThreads>>>(in, out, n);
}

template <class Row>
void add(std::vector<ConversionKernel>& kernels) {
  constexpr Conversion kRow = Row::kRow;
  if (kRow.toolkit <= kToolkit)
    kernels.push_back({kRow, launch<Row>, reinterpret_cast<const void*>(convert<Row>)});
}

}  // namespace

void add_conversions(std::vector<ConversionKernel>& kernels) {
#define NUMEMU_GPU_CONVERSION(id, ...) add<cvt_##id>(kernels);
#include "emu/oracle/recording/conversions.def"
#undef NUMEMU_GPU_CONVERSION
}

}  // namespace numemu::oracle::recording
