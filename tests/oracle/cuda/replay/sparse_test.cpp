// Integers and sparse dots against sums typed by hand, and the results of their rivals.
#include <random>

#include "tests/catch.hpp"
#include "tests/oracle/cuda/replay/example.hpp"
#include "tests/oracle/cuda/replay/products.hpp"

namespace numemu::oracle::recording::replay {

TEST_CASE("metadata chooses positions", "[fast]") {
  Example two("mmasp", "m16n8k16.f32.f16.f16.f32");
  two.metadata(0, 0b1101).metadata(1, 0b1000).metadata(2, 0b1110).metadata(3, 0b0100);
  const int expected_two[] = {1, 3, 4, 6, 10, 11, 12, 13};
  for (int j = 0; j < 8; ++j) CHECK(position(two.dot(), j) == expected_two[j]);

  Example one("mmasp", "m16n8k8.f32.tf32.tf32.f32");
  one.metadata(0, 0b0100).metadata(1, 0b1110).metadata(2, 0b1110).metadata(3, 0b0100);
  const int expected_one[] = {0, 3, 5, 6};
  for (int j = 0; j < 4; ++j) CHECK(position(one.dot(), j) == expected_one[j]);

  Example pairs("mmasp", "m16n8k64.s32.s4.s4.s32");
  pairs.metadata(0, 0b1100).metadata(1, 0b1001);
  const int expected_pairs[] = {0, 1, 6, 7, 10, 11, 12, 13};
  for (int j = 0; j < 8; ++j) CHECK(position(pairs.dot(), j) == expected_pairs[j]);
}

TEST_CASE("a sparse dot is the dense dot with zeros where nothing is kept", "[fast]") {
  std::mt19937 source(3);
  const auto random = [&] { return static_cast<std::uint32_t>(source()); };
  for (const auto& [sparse, dense] :
       {std::pair{"m16n8k32.s32.s8.u8.s32", "m16n8k32.s32.s8.u8.s32"},
        std::pair{"m16n8k64.s32.u4.s4.s32", "m16n8k64.s32.u4.s4.s32"}}) {
    for (int trial = 0; trial < 200; ++trial) {
      Example kept("mmasp", sparse), full("mma", dense);
      const Instruction& i = kept.instruction();
      const std::uint32_t mask = (1U << info(i.a).bits) - 1;
      constexpr std::uint8_t kWords[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};
      for (int g = 0; g < i.groups(); ++g) kept.metadata(g, kWords[random() % 6]);
      for (int k = 0; k < i.k; ++k) {
        const std::uint32_t code = random() & mask;
        kept.b(k, code);
        full.b(k, code);
      }
      for (int j = 0; j < i.kept(); ++j) {
        const std::uint32_t code = random() & mask;
        kept.a(j, code);
        full.a(position(kept.dot(), j), code);
      }
      const std::uint32_t c = random();
      REQUIRE(kept.c(c).answer("A100") == full.c(c).answer("A100"));
    }
  }
}

TEST_CASE("integers wrap, or are clamped once or per step", "[fast]") {
  const std::string wraps = "m16n8k32.s32.s8.s8.s32", clamps = wraps + ".satfinite";
  const auto dot = [](const std::string& name, std::uint64_t c) {
    // +16384 in product 0, -16256 in product 31.
    return Example("mma", name).product(0, 0x80, 0x80).product(31, 0x80, 0x7f).c(c);
  };
  CHECK(dot(wraps, 0).answer("A100") == 128);
  CHECK(dot(wraps, 0x7fffffff).answer("A100") == 0x8000007f);
  CHECK(dot(clamps, 0x7fffffff).answer("A100") == 0x7fffffff);
  CHECK(dot(clamps, 0x7fffff00).answer("A100") == 0x7fffff80);
  Rule per_step = rules("A100", dot(clamps, 0).instruction())[0];
  CHECK(per_step.saturation == Saturation::once);
  per_step.saturation = Saturation::per_step;
  per_step.step = 16;
  CHECK(dot(clamps, 0x7fffff00).answer(per_step) == 0x7fffffff - 16256);
  CHECK(Example("mma", clamps).product(31, 0x80, 0x80).c(0x7fffffff).answer(per_step) ==
        0x7fffffff);
  per_step.step = 32;
  CHECK(dot(clamps, 0x7fffff00).answer(per_step) == 0x7fffff80);
  CHECK(Example("mma", clamps).product(3, 0x80, 0x7f).c(0x80000001).answer("H100") == 0x80000000);
  CHECK(Example("mma", wraps).product(3, 0x80, 0x7f).c(0x80000001).answer("H100") == 0x7fffc081);
  CHECK(Example("mma", "m8n8k32.s32.s4.u4.s32").product(9, 0x8, 0xf).answer("T4") == 0xffffff88);
}

TEST_CASE("steps count kept products, or positions of k", "[fast]") {
  // A100, tf32: four kept products of eight, one step of four. 2^30 - 2^30 in k = 0 and 2, and 1 in
  // the last pair.
  Example e = Example("mmasp", "m16n8k8.f32.tf32.tf32.f32")
                  .metadata(3, 0b1110)
                  .a(0, 0x4e800000)
                  .b(0, 0x3f800000)
                  .a(1, 0xce800000)
                  .b(2, 0x3f800000)
                  .a(3, 0x3f800000)
                  .b(7, 0x3f800000);
  CHECK(e.answer("A100") == 0);
  CHECK(e.answer("A100", &Rule::counts_positions, true) == 0x3f800000);
  // H100, half: sixteen kept of 32 are one step.
  Example half = Example("mmasp", "m16n8k32.f32.f16.f16.f32")
                     .a(0, 0x7800)
                     .b(0, 0x7800)
                     .a(1, 0xf800)
                     .b(1, 0x7800)
                     .a(15, 0x3c00)
                     .b(29, 0x3c00);
  CHECK(half.answer("H100") == 0);
  CHECK(half.answer("H100", &Rule::counts_positions, true) == 0x3f800000);
  CHECK(half.answer("A100") == 0x3f800000);
}

TEST_CASE("a kept zero beside infinity, and infinity where nothing is kept", "[fast]") {
  Example kept = Example("mmasp", "m16n8k16.f32.f16.f16.f32").b(1, 0x7c00).c(0x3f800000);
  CHECK(kept.answer("H100") == 0x7fffffff);
  CHECK(kept.answer("H100", &Rule::skip_kept_zeros, true) == 0x3f800000);
  Example unkept = Example("mmasp", "m16n8k16.f32.f16.f16.f32").b(2, 0x7c00).c(0x3f800000);
  CHECK(unkept.answer("H100") == 0x3f800000);
  CHECK(unkept.answer("H100", &Rule::expands, true) == 0x7fffffff);
  // What is kept is not multiplied a second time as a zero.
  CHECK(kept.a(1, 0x3c00).answer("H100", &Rule::expands, true) == 0x7f800000);
  Example last = Example("mmasp", "m16n8k16.f32.f16.f16.f32").b(15, 0x7c00).c(0x3f800000);
  CHECK(last.answer("H100", &Rule::expands, true) == 0x7fffffff);
}

}  // namespace numemu::oracle::recording::replay
