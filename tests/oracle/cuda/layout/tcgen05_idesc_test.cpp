// The instruction descriptor of tcgen05.mma against CuTe's bit-fields and words seen elsewhere.
#include "tests/oracle/cuda/layout/tcgen05_idesc.hpp"

#include <cstring>
#include <map>

#include "tests/catch.hpp"

namespace numemu::oracle::recording::tcgen05::tcgen05_idesc_test {
namespace {

// CuTe mma_sm100_desc.hpp, InstrDescriptor and InstrDescriptorBlockScaled: widths from bit 0 up.
struct Plain {
  std::uint32_t sparse_id : 2, sparse : 1, saturate : 1, c : 2, gap_6 : 1, a : 3, b : 3,
      negate_a : 1, negate_b : 1, major_a : 1, major_b : 1, n : 6, gap_23 : 1, m : 5, gap_29 : 1,
      max_shift : 2;
};
struct Scaled {
  std::uint32_t sparse_id : 2, sparse : 1, gap_3 : 1, scale_id_b : 2, gap_6 : 1, a : 3, b : 3,
      negate_a : 1, negate_b : 1, major_a : 1, major_b : 1, n : 6, scale_format : 1, m : 5,
      scale_id_a : 2, k_size : 1;
};
template <class Fields>
Fields fields(std::uint32_t word) {
  static_assert(sizeof(Fields) == sizeof word);
  Fields out;
  std::memcpy(&out, &word, sizeof out);
  return out;
}

// CuTe's enumerations F16F32Format, S8Format, MXF8F6F4Format; MXF4Format has E2M1 = 1.
const std::map<Element, unsigned> kFormat = {
    {Element::f16, 0},  {Element::bf16, 1}, {Element::tf32, 2}, {Element::u8, 0},
    {Element::s8, 1},   {Element::e4m3, 0}, {Element::e5m2, 1}, {Element::e2m3, 3},
    {Element::e3m2, 4}, {Element::e2m1, 5}};
const std::map<Element, unsigned> kResult = {
    {Element::f16, 0}, {Element::f32, 1}, {Element::s32, 2}};

}  // namespace

TEST_CASE("every descriptor says its instruction in CuTe's fields, and nothing else", "[fast]") {
  int plain = 0, scaled = 0;  // rows seen
  for (const Instruction& i : instructions()) {
    CAPTURE(name(i));
    if (i.kind == Kind::tc5 || i.kind == Kind::tc5sp) {
      ++plain;
      const Plain f = fields<Plain>(instruction_descriptor(i));
      CHECK(f.sparse == (i.kind == Kind::tc5sp ? 1u : 0u));
      CHECK(f.saturate == (i.satfinite ? 1u : 0u));
      CHECK(f.c == kResult.at(i.d));
      CHECK(f.a == kFormat.at(i.a));
      CHECK(f.b == kFormat.at(i.b));
      CHECK(f.n * 8u == static_cast<unsigned>(i.n));
      CHECK(f.m * 16u == static_cast<unsigned>(i.m));
      CHECK((f.sparse_id | f.gap_6 | f.negate_a | f.negate_b | f.major_a | f.major_b | f.gap_23 |
             f.gap_29 | f.max_shift) == 0);
    } else if (i.kind == Kind::tc5bs) {
      ++scaled;
      const Scaled f = fields<Scaled>(instruction_descriptor(i));
      const bool packed = i.k == 64;
      CHECK(f.scale_format == (i.scale == Element::ue8m0 ? 1u : 0u));
      CHECK(f.a == (packed ? 1u : kFormat.at(i.a)));
      CHECK(f.b == (packed ? 1u : kFormat.at(i.b)));
      CHECK(f.n * 8u == static_cast<unsigned>(i.n));
      CHECK(f.m * 16u == static_cast<unsigned>(i.m));
      CHECK((f.sparse_id | f.sparse | f.gap_3 | f.scale_id_b | f.gap_6 | f.negate_a | f.negate_b |
             f.major_a | f.major_b | f.scale_id_a | f.k_size) == 0);
    }
  }
  CHECK(plain > 0);
  CHECK(scaled > 0);
}

TEST_CASE("descriptors that a compiler emitted for M = N = 128 and sparse A", "[fast]") {
  // Words printed in a public report on tcgen05.mma.sp: kind::i8 (s8 by s8) and kind::f16 into f32.
  Instruction i{Kind::tc5sp,           128,           128,         64,
                Element::s32,          Element::s8,   Element::s8, Element::s32,
                Sparsity::two_of_four, Element::none, 0,           false,
                {100, 119, true}};
  CHECK(instruction_descriptor(i) == 136316068);
  i.k = 32;
  i.a = i.b = Element::f16;
  i.d = i.c = Element::f32;
  CHECK(instruction_descriptor(i) == 136314900);
}

TEST_CASE("kinds follow the types, K and the block", "[fast]") {
  const auto kind = [](Kind family, const char* text) {
    const int found = find_instruction(name(family), text);
    REQUIRE(found >= 0);
    return mma_kind(instructions()[static_cast<unsigned>(found)]);
  };
  CHECK(kind(Kind::tc5, "m64n8k16.f32.f16.f16") == MmaKind::f16);
  CHECK(kind(Kind::tc5, "m64n8k16.f32.bf16.bf16") == MmaKind::f16);
  CHECK(kind(Kind::tc5sp, "m64n8k16.f32.tf32.tf32") == MmaKind::tf32);
  CHECK(kind(Kind::tc5, "m64n8k32.f16.e4m3.e5m2") == MmaKind::f8f6f4);
  CHECK(kind(Kind::tc5sp, "m64n8k64.f32.e2m1.e2m1") == MmaKind::f8f6f4);
  CHECK(kind(Kind::tc5, "m64n8k32.s32.s8.u8.satfinite") == MmaKind::i8);
  CHECK(kind(Kind::tc5bs, "m128n8k32.block32.f32.e2m1.e2m1.ue8m0") == MmaKind::mxf8f6f4);
  CHECK(kind(Kind::tc5bs, "m128n8k64.block32.f32.e2m1.e2m1.ue8m0") == MmaKind::mxf4);
  CHECK(kind(Kind::tc5bs, "m128n8k64.block16.f32.e2m1.e2m1.ue8m0") == MmaKind::mxf4nvf4);
  CHECK(kind(Kind::tc5bs, "m128n8k64.block16.f32.e2m1.e2m1.ue4m3") == MmaKind::mxf4nvf4);
}

}  // namespace numemu::oracle::recording::tcgen05::tcgen05_idesc_test
