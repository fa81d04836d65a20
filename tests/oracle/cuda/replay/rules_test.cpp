// Each field of a rule on a dot where it decides, worked out by hand.
#include <set>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/oracle/cuda/replay/chips.hpp"
#include "tests/oracle/cuda/replay/example.hpp"
#include "tests/oracle/cuda/replay/number.hpp"
#include "tests/oracle/cuda/replay/products.hpp"

namespace numemu::oracle::recording::replay {
namespace {

const std::string kHalf = "m16n8k16.f32.f16.f16.f32", kBrain = "m16n8k16.f32.bf16.bf16.f32";
const std::string kHalfToHalf = "m16n8k16.f16.f16.f16.f16";

/// Codes of float16 and bfloat16.
constexpr std::uint64_t kOne = 0x3c00, kOneBrain = 0x3f80;

}  // namespace

TEST_CASE("every chip and instruction has one specified rule first, then rivals", "[fast]") {
  const std::set<std::string> known = {
      "zero-exponent",    "exponent-floor", "step-width",         "kept-bits",
      "written-bits",     "c-entry",        "alignment-rounding", "zero-sign",
      "overflow",         "int-saturation", "subnormal-inputs",   "subnormal-results",
      "nan-payload",      "fp8-lowering",   "sparse-order",       "kept-zeros",
      "product-exponent", "infinities",     "tf32-low-bits",      "double-chain",
      "scale-nan",        "scale-range",    "scale-significand",  "infinite-c"};
  std::set<std::string> asked;
  std::istringstream names(chip_names());
  int chips = 0;
  for (std::string chip; names >> chip; ++chips) {
    std::size_t with_rules = 0;
    for (const Instruction& i : instructions()) {
      const std::vector<Rule> all = rules(chip, i);
      std::set<std::string> unique;
      for (std::size_t r = 0; r < all.size(); ++r) {
        INFO(chip << " " << name(i.kind) << " " << name(i) << ": " << all[r].name);
        REQUIRE(all[r].question.empty() == (r == 0));
        REQUIRE((r == 0 || known.count(all[r].question) == 1));
        REQUIRE(unique.insert(all[r].name).second);
        if (r != 0) asked.insert(all[r].question);
      }
      if (i.sparsity != Sparsity::dense && !all.empty() && all[0].core != Core::lowered_fp8)
        REQUIRE(all[0].name.find("(by extension)") != std::string::npos);
      with_rules += all.empty() ? 0 : 1;
    }
    CHECK(with_rules > 3);
  }
  CHECK(chips == 8);
  CHECK(asked == known);
  CHECK(rules("MI300", instructions()[0]).empty());
  CHECK(rules("", instructions()[0]).empty());
}

TEST_CASE("names of GPUs lead to chips", "[fast]") {
  CHECK(chip_of("NVIDIA H100 80GB HBM3") == "H100");
  CHECK(chip_of("NVIDIA A100-SXM4-40GB") == "A100");
  CHECK(chip_of("NVIDIA GeForce RTX 5090") == "RTXBlackwell");
  CHECK(chip_of("NVIDIA RTX 6000 Ada Generation") == "Ada");
  CHECK(chip_of("L40S") == "Ada");
  CHECK(chip_of("Tesla V100-PCIE-16GB") == "V100");
  CHECK(chip_of("MI300").empty());
  CHECK(chip_of("XH100").empty());
}

TEST_CASE("G: a large term hides a small one only in its own step", "[fast]") {
  // 2^15 * 2^15 in product 0, then -2^15 * 2^15 in product 7, and 1 in product j: with F = 25 the
  // unit is 2^5, so 1 is lost in the step of the large ones.
  const auto dot = [](int j) {
    return Example("mma", kHalf)
        .product(0, 0x7800, 0x7800)
        .product(7, 0xf800, 0x7800)
        .product(j, kOne, kOne);
  };
  constexpr std::uint64_t kOneSingle = 0x3f800000;
  CHECK(dot(6).answer("H100") == 0);
  CHECK(dot(8).answer("H100") == 0);
  CHECK(dot(6).answer("A100") == 0);
  CHECK(dot(8).answer("A100") == kOneSingle);
  CHECK(dot(8).answer("H100", &Rule::step, 8) == kOneSingle);
  CHECK(dot(15).answer("A100", &Rule::step, 0) == 0);
  CHECK(dot(15).answer("A100", &Rule::step, 16) == 0);
  // Turns by one: product 7 and product 0 stand in different steps, so each hides 1 or is alone.
  CHECK(dot(8).answer("A100", &Rule::interleaved, 1) == 0);
  // Last step first: 1 is summed before the large ones meet it as C.
  CHECK(dot(8).answer("A100", &Rule::swapped, true) == 0);
}

TEST_CASE("F: the lowest kept bit", "[fast]") {
  // 1 - 2^-24 * 2^-j as 1 and a product of subnormals: the term survives while j + 24 <= F.
  const auto dot = [](std::uint64_t code) {
    return Example("mma", kHalf).c(0x3f800000).product(0, code, 0x8001);
  };
  constexpr std::uint64_t kBelowOne = 0x3f7fffff, kOneSingle = 0x3f800000;
  CHECK(dot(kOne).answer("H100") == kBelowOne);
  CHECK(dot(0x3800).answer("H100") == kBelowOne);
  CHECK(dot(0x3400).answer("H100") == kOneSingle);
  CHECK(dot(0x3800).answer("A100") == kOneSingle);
  CHECK(dot(0x3400).answer("H100", &Rule::fraction, 26) == kBelowOne);
  CHECK(dot(0x3400).answer("H100", &Rule::align, Align::down) == kBelowOne);
  CHECK(dot(0x3400).answer("H100", &Rule::align, Align::nearest_even) == kOneSingle);
  CHECK(dot(0x3600).answer("H100", &Rule::align, Align::nearest_even) == kBelowOne);
  CHECK(dot(0x3600).answer("H100") == kOneSingle);
  // Two terms of half a unit: lost one by one, counted where the sum is cut.
  Example pair = dot(0x3400);
  pair.product(9, 0x3400, 0x8001);
  CHECK(pair.answer("H100") == kOneSingle);
  CHECK(pair.answer("H100", &Rule::align, Align::of_sum) == kBelowOne);
}

TEST_CASE("the exponent of a product is the sum of its operands' exponents", "[fast]") {
  // 1.5 * 1.5 = 2.25 has exponent 0, so a term of 2^-25 survives beside it; exponent 1 loses it.
  const Example e =
      Example("mma", kHalf).product(0, 0x3e00, 0x3e00).product(1, 0x3800, 0x8001).c(0xbf800000);
  CHECK(e.answer("H100") == 0x3f9fffff);
  CHECK(e.answer("H100", &Rule::normalised_products, true) == 0x3fa00000);
}

TEST_CASE("written bits, and where C enters", "[fast]") {
  const std::string fp8 = "m64n8k32.f32.e4m3.e4m3";
  // 1 + 2^-14: C lies below the 13 bits.
  const Example e = Example("wgmma", fp8).product(0, 0x38, 0x38).c(0x38800000);
  CHECK(e.answer("H100") == 0x3f800000);
  CHECK(e.answer("H100", &Rule::c, CEnters::after_rounding) == 0x3f800200);
  const Example wide = Example("wgmma", fp8).c(0x3f8fffff);
  CHECK(wide.answer("H100") == 0x3f8ffc00);
  CHECK(wide.answer("H100", &Rule::kept, 23) == 0x3f8ffc00);
  const Example half = Example("mma", kHalf).c(0x3f8fffff);
  CHECK(half.answer("H100") == 0x3f8fffff);
  CHECK(half.answer("H100", &Rule::kept, 13) == 0x3f8ffc00);
}

TEST_CASE("zeros of either sign", "[fast]") {
  const Example minus = Example("mma", kBrain).product(0, 0x8000, kOneBrain).c(0x80000000);
  CHECK(minus.answer("H100") == 0);
  CHECK(minus.answer("H100", &Rule::zero_sign, ZeroSign::of_sum) == 0);
  // The other fifteen products are +0 * +0.
  CHECK(minus.answer("H100", &Rule::zero_sign, ZeroSign::of_addends) == 0);
  Example all = minus;
  for (int k = 0; k < 16; ++k) all.product(k, 0x8000, kOneBrain);
  CHECK(all.answer("H100") == 0);
  CHECK(all.answer("H100", &Rule::zero_sign, ZeroSign::of_sum) == 0);
  CHECK(all.answer("H100", &Rule::zero_sign, ZeroSign::of_addends) == 0x80000000);
  CHECK(all.answer("H100", &Rule::zero_sign, ZeroSign::of_zeros) == 0x80000000);
  CHECK(minus.answer("H100", &Rule::zero_sign, ZeroSign::of_zeros) == 0);
  // -2^-150 is in the sum and is cut when it is written.
  const Example cut = Example("mma", kBrain).product(0, 0x9a80, 0x1980);
  CHECK(cut.answer("H100") == 0);
  CHECK(cut.answer("H100", &Rule::zero_sign, ZeroSign::of_sum) == 0x80000000);
  CHECK(cut.answer("H100", &Rule::zero_sign, ZeroSign::of_zeros) == 0);
  // float16 rounds to nearest, and its zeros keep the sign.
  CHECK(Example("mma", kHalfToHalf).product(0, 0x8001, 0x1400).answer("H100") == 0x8000);
}

TEST_CASE("overflow, infinities and NaN", "[fast]") {
  const Example over = Example("mma", kBrain).product(0, 0x7f00, 0x4000);
  CHECK(over.answer("H100") == 0x7f800000);
  CHECK(over.answer("H100", &Rule::overflow, Overflow::largest_finite) == 0x7f7fffff);
  Example cancelled = over;
  cancelled.product(1, 0xff00, 0x4000).c(0x40000000);
  CHECK(cancelled.answer("H100") == 0);
  CHECK(cancelled.answer("H100", &Rule::infinite_at_once, true) == 0x7fffffff);
  const Example infinite = Example("mma", kBrain).product(0, 0xff80, kOneBrain).c(0x42000000);
  CHECK(infinite.answer("H100") == 0xff800000);
  Example opposed = infinite;
  CHECK(opposed.c(0x7f800000).answer("H100") == 0x7fffffff);
  CHECK(Example("mma", kBrain).a(3, 0x7f80).answer("H100") == 0x7fffffff);
  CHECK(Example("mma", kHalfToHalf).a(3, 0x7c00).answer("H100") == 0x7fff);
  // An infinity as a number of the top exponent: 2^16 in float16.
  const Example number = Example("mma", kHalf).product(0, 0x7c00, kOne);
  CHECK(number.answer("H100") == 0x7f800000);
  CHECK(number.answer("H100", &Rule::no_infinities, true) == 0x47800000);
  // Products above the range end as infinity in one step and meet -infinity in the next.
  const Example later =
      Example("mma", kBrain).product(0, 0x7f00, 0x4000).product(8, 0xff80, kOneBrain);
  CHECK(later.answer("H100") == 0xff800000);
  CHECK(later.answer("A100") == 0x7fffffff);
}

TEST_CASE("the payload of a NaN", "[fast]") {
  const Example e = Example("mma", kBrain).b(2, 0xff81).a(5, 0x7fc3).c(0x7f800123);
  CHECK(e.answer("H100") == 0x7fffffff);
  CHECK(e.answer("H100", &Rule::nan, NanPayload::a_b_c) == 0xffc10000);
  CHECK(e.answer("H100", &Rule::nan, NanPayload::c_a_b) == 0x7fc00123);
  const Example invalid = Example("mma", kBrain).a(0, 0x7f80);
  CHECK(invalid.answer("H100", &Rule::nan, NanPayload::a_b_c) == 0x7fffffff);
}

TEST_CASE("subnormals kept and flushed", "[fast]") {
  const Example in = Example("mma", kHalf).product(0, 0x0200, kOne);
  CHECK(in.answer("H100") == 0x38000000);
  CHECK(in.answer("H100", &Rule::flush_ab, true) == 0);
  const Example c = Example("mma", kHalf).c(0x80400000);
  CHECK(c.answer("H100") == 0x80400000);
  CHECK(c.answer("H100", &Rule::flush_c, true) == 0);
  CHECK(c.answer("H100", &Rule::flush_result, true) == 0x80000000);
}

TEST_CASE("low bits of tf32", "[fast]") {
  const auto dot = [](std::uint64_t code) {
    return Example("mma", "m16n8k8.f32.tf32.tf32.f32").product(1, code, 0x3f800000);
  };
  CHECK(dot(0x3f803fff).answer("H100") == 0x3f802000);
  CHECK(dot(0x3f803fff).answer("H100", &Rule::low_bits, LowBits::used) == 0x3f803fff);
  CHECK(dot(0x3f801000).answer("H100", &Rule::low_bits, LowBits::nearest_even) == 0x3f800000);
  CHECK(dot(0x3f801000).answer("H100", &Rule::low_bits, LowBits::nearest_away) == 0x3f802000);
  CHECK(dot(0x3f803000).answer("H100", &Rule::low_bits, LowBits::nearest_even) == 0x3f804000);
}

TEST_CASE("FP8 of mma.sync where it is lowered", "[fast]") {
  const std::string fp8 = "m16n8k32.f32.e4m3.e4m3.f32";
  // k = 0 and k = 1 are summed first, k = 2 after them. 2^8 * 2^8 - 2^8 * 2^8 + 2^-9 * 2^-3: the
  // small term is 28 below the large ones.
  const auto dot = [&](int small) {
    return Example("mma", fp8)
        .product(0, 0x78, 0x78)
        .product(5, 0xf8, 0x78)
        .product(small, 1, 0x20);
  };
  constexpr std::uint64_t kSmall = 0x39800000;
  CHECK(dot(4).answer("H100") == 0);
  CHECK(dot(2).answer("H100") == kSmall);
  CHECK(dot(2).answer("B200") == kSmall);
  CHECK(dot(2).answer("H100", &Rule::split, Split::first_half) == 0);
  CHECK(dot(2).answer("H100", &Rule::split, Split::even) == 0);
  CHECK(dot(2).answer("H100", &Rule::swapped, true) == 0);
  // C is added last, to nearest even: 1 + (2^-24 + 2^-25).
  Example last("mma", fp8);
  last.product(0, 0x08, 0x02).product(4, 0x08, 0x01).c(0x47800000);
  // 2^-6 * 2^-8 + 2^-6 * 2^-9 = 1.5 * 2^-14 beside 2^16: half an ulp is 2^-8.
  CHECK(last.answer("H100") == 0x47800000);
  last.product(8, 0x38, 0x08);
  // 2^-6 more: above half an ulp (2^-7 spacing of float32 at 2^16).
  CHECK(last.answer("H100") == 0x47800002);
  CHECK(last.answer("Ada") == 0x47800000);
  // A zero of C keeps its sign only beside a negative zero.
  CHECK(Example("mma", fp8).c(0x80000000).answer("H100") == 0);
  // The subnormal 2^-9 of e4m3 is normal in float16: 2^-9 * 2^15 has exponent 6, not 9, and 2^-17
  // lies within F = 25 of it.
  const Example mixed =
      Example("mma", "m16n8k32.f32.e4m3.e5m2.f32").product(0, 0x01, 0x78).product(1, 0x01, 0x1c);
  CHECK(mixed.answer("H100") == 0x42800001);
  CHECK(mixed.answer("RTXBlackwell") == 0x42800000);
}

TEST_CASE("block scales", "[fast]") {
  const std::string mx = "m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0";
  Example e = Example("mmabs", mx).product(0, 0x38, 0x38);
  CHECK(e.answer("RTXBlackwell") == 0x3f800000);
  CHECK(e.scales(0, 0x80, 0x82).answer("RTXBlackwell") == 0x41800000);
  CHECK(e.scales(0, 0xfe, 0xfe).answer("RTXBlackwell") == 0x7f800000);
  CHECK(e.scales(0, 0, 0x7f).answer("RTXBlackwell") == 0x00400000);
  CHECK(e.scales(0, 0, 0).answer("RTXBlackwell") == 0);
  CHECK(e.scales(0, 0, 0).answer("RTXBlackwell", &Rule::clamps_scales, true) == 0x00400000);
  CHECK(e.scales(0, 0xff, 0x7f).answer("RTXBlackwell") == 0x7fffffff);
  const Example zeros = Example("mmabs", mx).scales(0, 0xff, 0x7f);
  CHECK(zeros.answer("RTXBlackwell") == 0x7fffffff);
  CHECK(zeros.answer("RTXBlackwell", &Rule::nan_needs_nonzero, true) == 0);
}

TEST_CASE("four groups of FP4", "[fast]") {
  const std::string nv = "m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3";
  // 6 * 6 + 0.5 * 0.5 in block 1 with scales 1.5 and 1.875.
  Example e = Example("mmabs", nv).product(16, 7, 7).product(31, 1, 1).scales(1, 0x3c, 0x3f);
  // 36.25 * 2.8125 = 101.953125.
  CHECK(e.answer("RTXBlackwell") == 0x42cbe800);
  CHECK(e.scales(1, 0xbc, 0x3f).answer("RTXBlackwell") == 0x42cbe800);
  CHECK(e.answer("RTXBlackwell", &Rule::signed_scales, true) == 0xc2cbe800);
  // The least scale, 2^-9.
  CHECK(e.scales(1, 0x01, 0x38).answer("RTXBlackwell") == 0x3d910000);
  CHECK(e.answer("RTXBlackwell", &Rule::flush_scales, true) == 0);
  CHECK(e.scales(2, 0x7f, 0).answer("RTXBlackwell") == 0x7fffffff);
  CHECK(e.scales(2, 0, 0).c(0xff800000).answer("RTXBlackwell") == 0xff800000);
  CHECK(e.answer("RTXBlackwell", &Rule::infinite_c_is_nan, true) == 0x7fffffff);
  // Scales of 32 elements: block 1 holds groups 2 and 3.
  const std::string mx = "m16n8k64.block32.f32.e2m1.e2m1.f32.ue8m0";
  Example wide = Example("mmabs", mx).product(33, 2, 2).product(63, 2, 4).scales(1, 0x80, 0x80);
  CHECK(wide.answer("RTXBlackwell") == 0x41400000);
  // F = 35 below the exponents of the scales: 2^-34 * 1 beside 1, which C takes away.
  Example deep = Example("mmabs", mx).product(0, 2, 2).product(32, 2, 2).c(0xbf800000);
  CHECK(deep.scales(1, 0x7f - 20, 0x7f - 15).answer("RTXBlackwell") == 0x2e000000);
  CHECK(deep.scales(1, 0x7f - 20, 0x7f - 16).answer("RTXBlackwell") == 0);
  CHECK(deep.answer("RTXBlackwell", &Rule::fraction, 36) == 0x2d800000);
}

TEST_CASE("FP6 and FP4 are multiplied like the others", "[fast]") {
  // 28 * 7.5 = 210 (e3m2, e2m3); 0.0625 * 6 (e3m2, e2m1).
  CHECK(
      Example("mma", "m16n8k32.f32.e3m2.e2m3.f32").product(3, 0x1f, 0x1f).answer("RTXBlackwell") ==
      0x43520000);
  CHECK(Example("tc5", "m64n8k32.f32.e3m2.e2m1").product(31, 0x01, 0x07).answer("B200") ==
        0x3ec00000);
}

}  // namespace numemu::oracle::recording::replay
