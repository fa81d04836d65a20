// The tables. Sources: NVIDIA CUTLASS, include/cute/atom/mma_traits_sm70.hpp, sm75, sm80, sm89,
// sm90, sm90_gmma, sm90_gmma_sparse, sm120, sm120_sparse; "PTX": formulas of the PTX ISA, sections
// "Matrix fragments for mma" and "... for sparse mma", put into the same form. A table of a sparse
// A counts the elements of the uncompressed row, as both sources do.
#include "tests/oracle/cuda/paper/ptx_fragments.hpp"

#include <stdexcept>

namespace numemu::oracle::recording {
namespace {

enum class Family : std::uint8_t { mma, mma_sparse, wgmma, wgmma_sparse };

struct Row {
  Family family;
  int m, k, a_bits;
  ThreadValue a, b, metadata;
  const char* source;
};

constexpr ThreadValue kShared{};
constexpr ThreadValue kDense{};

// clang-format off
constexpr Row kRows[] = {
    // mma.sync, 16 bits
    {Family::mma, 8, 4, 16,
     {8, {{4, 1}, {4, 0}, {2, 4}}, {{4, 8}}, 2},
     {8, {{4, 1}, {4, 0}, {2, 4}}, {{4, 8}}, 2}, kDense,
     "SM70_8x8x4_F32F16F16F32_TN: SM70_8x4_Row on SM70_QuadPair"},
    {Family::mma, 16, 8, 16,
     {16, {{4, 32}, {8, 1}}, {{2, 16}, {2, 8}}, 2},
     {8, {{4, 16}, {8, 1}}, {{2, 8}}, 1}, kDense,
     "SM75_16x8x8_F32F16F16F32_TN"},
    {Family::mma, 16, 16, 16,
     {16, {{4, 32}, {8, 1}}, {{2, 16}, {2, 8}, {2, 128}}, 4},
     {8, {{4, 16}, {8, 1}}, {{2, 8}, {2, 64}}, 2}, kDense,
     "SM80_16x8x16_F16F16F16F16_TN"},
    // mma.sync, tf32
    {Family::mma, 16, 4, 32,
     {16, {{4, 16}, {8, 1}}, {{2, 8}}, 2},
     {8, {{4, 8}, {8, 1}}, {{1, 0}}, 1}, kDense,
     "SM80_16x8x4_F32TF32TF32F32_TN"},
    {Family::mma, 16, 8, 32,
     {16, {{4, 16}, {8, 1}}, {{2, 8}, {2, 64}}, 4},
     {8, {{4, 8}, {8, 1}}, {{2, 32}}, 2}, kDense,
     "SM80_16x8x8_F32TF32TF32F32_TN"},
    // mma.sync, f64
    {Family::mma, 8, 4, 64,
     {8, {{4, 8}, {8, 1}}, {{1, 0}}, 1},
     {8, {{4, 8}, {8, 1}}, {{1, 0}}, 1}, kDense,
     "SM80_8x8x4_F64F64F64F64_TN"},
    {Family::mma, 16, 4, 64,
     {16, {{4, 16}, {8, 1}}, {{2, 8}}, 2},
     {8, {{4, 8}, {8, 1}}, {{1, 0}}, 1}, kDense,
     "SM90_16x8x4_F64F64F64F64_TN"},
    {Family::mma, 16, 8, 64,
     {16, {{4, 16}, {8, 1}}, {{2, 8}, {2, 64}}, 4},
     {8, {{4, 8}, {8, 1}}, {{2, 32}}, 2}, kDense,
     "SM90_16x8x8_F64F64F64F64_TN"},
    {Family::mma, 16, 16, 64,
     {16, {{4, 16}, {8, 1}}, {{2, 8}, {4, 64}}, 8},
     {8, {{4, 8}, {8, 1}}, {{4, 32}}, 4}, kDense,
     "SM90_16x8x16_F64F64F64F64_TN"},
    // mma.sync, 8 bits and what fills bytes
    {Family::mma, 8, 16, 8,
     {8, {{4, 32}, {8, 1}}, {{4, 8}}, 1},
     {8, {{4, 32}, {8, 1}}, {{4, 8}}, 1}, kDense,
     "SM75_8x8x16_S32S8S8S32_TN"},
    {Family::mma, 16, 16, 8,
     {16, {{4, 64}, {8, 1}}, {{4, 16}, {2, 8}}, 2},
     {8, {{4, 32}, {8, 1}}, {{4, 8}}, 1}, kDense,
     "SM80_16x8x16_S32S8S8S32_TN"},
    {Family::mma, 16, 32, 8,
     {16, {{4, 64}, {8, 1}}, {{4, 16}, {2, 8}, {2, 256}}, 4},
     {8, {{4, 32}, {8, 1}}, {{4, 8}, {2, 128}}, 2}, kDense,
     "SM80_16x8x32_S32S8S8S32_TN, SM89_16x8x32_F32E4M3E4M3F32_TN, SM120_16x8x32_TN"},
    // mma.sync, 4 bits
    {Family::mma, 8, 32, 4,
     {8, {{4, 64}, {8, 1}}, {{8, 8}}, 1},
     {8, {{4, 64}, {8, 1}}, {{8, 8}}, 1}, kDense,
     "PTX, mma.m8n8k32"},
    {Family::mma, 16, 32, 4,
     {16, {{4, 128}, {8, 1}}, {{8, 16}, {2, 8}}, 2},
     {8, {{4, 64}, {8, 1}}, {{8, 8}}, 1}, kDense,
     "PTX, mma.m16n8k32 with .s4 and .u4"},
    {Family::mma, 16, 64, 4,
     {16, {{4, 128}, {8, 1}}, {{8, 16}, {2, 8}, {2, 512}}, 4},
     {8, {{4, 64}, {8, 1}}, {{8, 8}, {2, 256}}, 2}, kDense,
     "SM120_16x8x64_TN_VS"},

    // mma.sp. Where CuTe has no metadata (16-bit k16, tf32 k8, 8-bit k32, 4-bit k64) the lanes that
    // PTX names are taken to hold what the same lanes hold in the shape of twice the k.
    {Family::mma_sparse, 16, 16, 16,
     {16, {{4, 64}, {8, 1}}, {{4, 16}, {2, 8}}, 2, 2},
     {8, {{4, 16}, {8, 1}}, {{2, 8}, {2, 64}}, 2},
     {16, {{4, 0}, {8, 1}}, {{4, 16}, {2, 8}}, 1},
     "PTX, sparse mma.m16n8k16 with .f16"},
    {Family::mma_sparse, 16, 32, 16,
     {16, {{4, 64}, {8, 1}}, {{4, 16}, {2, 8}, {2, 256}}, 4, 2},
     {8, {{4, 16}, {8, 1}}, {{2, 8}, {4, 64}}, 4},
     {16, {{2, 64}, {2, 0}, {8, 1}}, {{4, 16}, {2, 8}}, 1},
     "PTX, sparse mma.m16n8k32 with .f16; its metadata: ELayout_64x32"},
    {Family::mma_sparse, 16, 8, 32,
     {16, {{4, 32}, {8, 1}}, {{2, 16}, {2, 8}}, 2, 2},
     {8, {{4, 8}, {8, 1}}, {{2, 32}}, 2}, {16, {{4, 0}, {8, 1}}, {{4, 16}, {2, 8}}, 1},
     "PTX, sparse mma.m16n8k8 with .tf32"},
    {Family::mma_sparse, 16, 16, 32,
     {16, {{4, 32}, {8, 1}}, {{2, 16}, {2, 8}, {2, 128}}, 4, 2},
     {8, {{4, 8}, {8, 1}}, {{4, 32}}, 4}, {16, {{2, 64}, {2, 0}, {8, 1}}, {{4, 16}, {2, 8}}, 1},
     "PTX, sparse mma.m16n8k16 with .tf32; its metadata: ELayout_64x16"},
    {Family::mma_sparse, 16, 32, 8,
     {16, {{4, 128}, {8, 1}}, {{8, 16}, {2, 8}}, 2, 2},
     {8, {{4, 32}, {8, 1}}, {{4, 8}, {2, 128}}, 2}, {16, {{2, 8}, {2, 0}, {8, 1}}, {{8, 16}}, 1},
     "PTX, sparse mma.m16n8k32 with .s8"},
    {Family::mma_sparse, 16, 64, 8,
     {16, {{4, 128}, {8, 1}}, {{8, 16}, {2, 8}, {2, 512}}, 4, 2},
     {8, {{4, 32}, {8, 1}}, {{4, 8}, {4, 128}}, 4}, {16, {{2, 8}, {2, 128}, {8, 1}}, {{8, 16}}, 1},
     "SM120_SPARSE_16x8x64_TN"},
    {Family::mma_sparse, 16, 64, 4,
     {16, {{4, 256}, {8, 1}}, {{16, 16}, {2, 8}}, 2, 2},
     {8, {{4, 64}, {8, 1}}, {{8, 8}, {2, 256}}, 2}, {16, {{2, 8}, {2, 0}, {8, 1}}, {{8, 16}}, 1},
     "PTX, sparse mma.m16n8k64 with .s4"},
    {Family::mma_sparse, 16, 128, 4,
     {16, {{4, 256}, {8, 1}}, {{16, 16}, {2, 8}, {2, 1024}}, 4, 2},
     {8, {{4, 64}, {8, 1}}, {{8, 8}, {4, 256}}, 4}, {16, {{2, 8}, {2, 128}, {8, 1}}, {{8, 16}}, 1},
     "SM120_SPARSE_16x8x128_TN_VS"},

    // wgmma, A in registers
    {Family::wgmma, 64, 16, 16,
     {64, {{4, 128}, {8, 1}, {4, 16}}, {{2, 64}, {2, 8}, {2, 512}}, 4},
     kShared, kDense,
     "ALayout_64x16"},
    {Family::wgmma, 64, 8, 32,
     {64, {{4, 64}, {8, 1}, {4, 16}}, {{2, 8}, {2, 256}}, 4},
     kShared, kDense,
     "ALayout_64x8"},
    {Family::wgmma, 64, 32, 8,
     {64, {{4, 256}, {8, 1}, {4, 16}}, {{4, 64}, {2, 8}, {2, 1024}}, 4},
     kShared, kDense,
     "ALayout_64x32"},

    // wgmma.sp, A in registers
    {Family::wgmma_sparse, 64, 32, 16,
     {64, {{4, 256}, {8, 1}, {4, 16}}, {{4, 64}, {2, 8}, {2, 1024}}, 4, 2},
     kShared, {64, {{2, 256}, {2, 0}, {8, 1}, {4, 16}}, {{4, 64}, {2, 8}}, 1},
     "GMMA_64x8x32_F16F16F16_RS: ALayout_64x32, ELayout_64x32"},
    {Family::wgmma_sparse, 64, 16, 32,
     {64, {{4, 128}, {8, 1}, {4, 16}}, {{2, 64}, {2, 8}, {2, 512}}, 4, 2},
     kShared, {64, {{2, 256}, {2, 0}, {8, 1}, {4, 16}}, {{4, 64}, {2, 8}}, 1},
     "GMMA_64x8x16_F32TF32TF32_RS_TN: ALayout_64x16, ELayout_64x16"},
    {Family::wgmma_sparse, 64, 64, 8,
     {64, {{4, 512}, {8, 1}, {4, 16}}, {{8, 64}, {2, 8}, {2, 2048}}, 4, 2},
     kShared, {64, {{2, 8}, {2, 512}, {8, 1}, {4, 16}}, {{8, 64}}, 1},
     "GMMA_64x8x64_F32E4M3E4M3_RS_TN: ALayout_64x64, ELayout_64x64"},
};
// clang-format on

/// SM80_8x8_Row, SM80_16x8_Row, CLayout_64x8: one value of 32 bits a register, one of f64, two of
/// f16 (PTX, "Matrix fragments": C and D).
ThreadValue accumulator(int m, Element e) {
  ThreadValue c;
  if (m == 8) c = {8, {{4, 16}, {8, 1}}, {{2, 8}}, 2};
  if (m == 16) c = {16, {{4, 32}, {8, 1}}, {{2, 16}, {2, 8}}, 4};
  if (m == 64) c = {64, {{4, 128}, {8, 1}, {4, 16}}, {{2, 64}, {2, 8}}, 4};
  if (e == Element::f16) c.registers /= 2;
  return c;
}

/// SM70_8x8_16b and SM70_8x8_32b on SM70_QuadPair; every quad pair has its own tile.
ThreadValue quad_pair_accumulator(Element e) {
  if (e == Element::f16) return {8, {{4, 1}, {4, 0}, {2, 4}}, {{8, 8}}, 4};
  return {8, {{2, 1}, {2, 16}, {4, 0}, {2, 4}}, {{2, 8}, {2, 2}, {2, 32}}, 8};
}

/// SM120_16x8x64_TN_VS: SFALayout and SFBLayout, a scale instead of each of its elements.
ThreadValue scales_of_a(const Instruction& i) {
  return {16, {{2, 8}, {2, 0}, {8, 1}}, {{i.scales(), 16}}, 1};
}
ThreadValue scales_of_b(const Instruction& i) {
  return {8, {{4, 0}, {8, 1}}, {{i.scales(), 8}}, 1};
}

Family family_of(Kind kind, const std::string& name) {
  switch (kind) {
    case Kind::mma:
    case Kind::mmabs:
      return Family::mma;
    case Kind::mmasp:
      return Family::mma_sparse;
    case Kind::wgmma:
      return Family::wgmma;
    case Kind::wgmmasp:
      return Family::wgmma_sparse;
    default:
      throw std::runtime_error(name + ": expected an instruction with fragments in registers");
  }
}

/// mma_traits_sm120.hpp: bytes for every type of the shapes with k = 32, four bits with k = 64; the
/// rest as wide as the element.
int slot_width(const Instruction& i, Element e) {
  const ElementInfo element = info(e);
  if (element.specials == Specials::finite) return i.k == 64 && i.kind == Kind::mmabs ? 4 : 8;
  return element.bits;
}

int offset(const Mode* modes, int count, int coordinate) {
  int sum = 0;
  for (int m = 0; m < count && modes[m].extent != 0; ++m) {
    sum += coordinate % modes[m].extent * modes[m].stride;
    coordinate /= modes[m].extent;
  }
  return sum;
}

int size(const Mode* modes, int count) {
  int product = 1;
  for (int m = 0; m < count && modes[m].extent != 0; ++m) product *= modes[m].extent;
  return product;
}

}  // namespace

Place ThreadValue::place(int lane_id, int v) const {
  const int at = offset(lane, 4, lane_id) + offset(value, 3, v * elements);
  return {at % rows, at / rows / elements};
}
int ThreadValue::values() const { return size(value, 3) / elements; }
int ThreadValue::lanes() const { return size(lane, 4); }

bool ThreadValue::first(int lane_id) const {
  for (const Mode& mode : lane) {
    if (mode.extent == 0) break;
    if (mode.stride == 0 && lane_id % mode.extent != 0) return false;
    lane_id /= mode.extent;
  }
  return true;
}

PtxFragments ptx_fragments(const Instruction& i) {
  const Family family = family_of(i.kind, name(i));
  const int a_bits = slot_width(i, i.a);
  for (const Row& row : kRows) {
    if (row.family != family || row.m != i.m || row.k != i.k || row.a_bits != a_bits) continue;
    const bool quad_pair = i.m == 8 && i.k == 4 && i.a == Element::f16;
    return {row.a,
            row.b,
            quad_pair ? quad_pair_accumulator(i.c) : accumulator(i.m, i.c),
            quad_pair ? quad_pair_accumulator(i.d) : accumulator(i.m, i.d),
            row.metadata,
            i.block == 0 ? ThreadValue{} : scales_of_a(i),
            i.block == 0 ? ThreadValue{} : scales_of_b(i),
            a_bits,
            slot_width(i, i.b),
            row.source};
  }
  throw std::runtime_error(name(i) + ": no table of fragments has this shape");
}

std::uint64_t read_slot(const std::uint64_t* registers, int register_bits, int bits, Element e,
                        int v) {
  const int per = register_bits / bits;
  const std::uint64_t word = registers[v / per] >> (v % per * bits);
  const std::uint64_t slot = bits == 64 ? word : word & ((std::uint64_t{1} << bits) - 1);
  return bits == 8 && e == Element::e2m1 ? slot >> 2 : slot;
}

void write_slot(std::uint64_t* registers, int register_bits, int bits, int v, std::uint64_t code) {
  const int per = register_bits / bits;
  registers[v / per] |= code << (v % per * bits);
}

}  // namespace numemu::oracle::recording
