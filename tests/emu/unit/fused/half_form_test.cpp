// The half form of fused FP8 units: equal to the reference in every bit, or declined.
#include "emu/unit/fused/float_form.hpp"
#include "emu/unit/fused/half_form_steps.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/fused/form_problem.hpp"

namespace half_form_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

std::int64_t mismatches(const FormProblem& p) { return form_mismatches(multiply_fused_half, p); }

/// On a CPU without the instructions every product is declined.
bool equal_if_available(std::int64_t differing) {
  return differing == (half_form_available() ? 0 : -1);
}

std::vector<UnitDescription> units() { return {wgmma_e4m3(), ada_f32(), ada_f16()}; }

}  // namespace

TEST_CASE("half form: every kind of E4M3 data and of C", "[fast]") {
  std::uint64_t seed = 0;
  for (const UnitDescription& unit : units()) {
    for (const FormData data : kAllFormData) {
      for (const CData c : kAllC) {
        for (const std::int64_t n : {19, 70}) {
          const FormProblem p = make_form_problem(
              {unit, "float8_e4m3fn", "float8_e4m3fn", 5, n, 96, data, c}, ++seed);
          INFO(unit.group << " " << unit.accumulator.format->name << " data "
                          << static_cast<int>(data) << " C " << static_cast<int>(c));
          const std::int64_t differing = mismatches(p);
          // A tiny C is left to others.
          const bool may_decline = !p.half() && c == CData::tiny;
          CHECK((equal_if_available(differing) || (may_decline && differing == -1)));
        }
      }
    }
  }
}

TEST_CASE("half form: float16 registers of small sums, subnormal ones too", "[fast]") {
  std::uint64_t seed = 50;
  for (const CData c : {CData::none, CData::gaussian, CData::tiny, CData::minus_zero}) {
    for (const FormData data :
         {FormData::subnormal, FormData::zero_groups, FormData::wide_sparse}) {
      FormProblem p = make_form_problem(
          {ada_f16(), "float8_e4m3fn", "float8_e4m3fn", 9, 40, 128, data, c}, ++seed);
      // Magnitudes below 2^-3.
      for (auto& code : p.a.bytes) code = static_cast<std::uint8_t>((code & 0x80) | (code & 0x1f));
      INFO("data " << static_cast<int>(data) << " C " << static_cast<int>(c));
      const std::int64_t differing = mismatches(p);
      CHECK(equal_if_available(differing));
    }
  }
}

TEST_CASE("half form: narrow formats, and E5M2 where its exponents are narrow", "[fast]") {
  std::uint64_t seed = 100;
  for (const UnitDescription& unit : units()) {
    for (const char* a : {"float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn", "float8_e3m4"}) {
      const FormProblem p = make_form_problem(
          {unit, a, "float8_e4m3fn", 4, 35, 70, FormData::uniform, CData::gaussian}, ++seed);
      INFO(a);
      CHECK(equal_if_available(mismatches(p)));
    }
    for (const int lowest_field : {0, 8, 10, 12, 14, 20, 27}) {
      FormProblem p = make_form_problem(
          {unit, "float8_e5m2", "float8_e4m3fn", 4, 35, 70, FormData::uniform, CData::none},
          ++seed);
      for (auto& code : p.a.bytes) {
        if (((code >> 2) & 31) < lowest_field)
          code = static_cast<std::uint8_t>((code & 0x83) | lowest_field << 2);
      }
      // Outputs of the smallest numbers only, far below the largest product.
      const auto depth = static_cast<std::size_t>(p.k);
      for (std::size_t i = depth; i < p.a.bytes.size(); ++i)
        p.a.bytes[i] = static_cast<std::uint8_t>((p.a.bytes[i] & 0x83) | lowest_field << 2);
      for (std::size_t i = depth; i < p.b.bytes.size(); ++i) p.b.bytes[i] &= 0x87;
      INFO("lowest exponent field " << lowest_field);
      const std::int64_t differing = mismatches(p);
      CHECK((equal_if_available(differing) || (lowest_field < 12 && differing == -1)));
    }
  }
}

TEST_CASE("half form: shapes, layouts and tails of K", "[fast]") {
  for_each_shape(units(), [](const FormProblem& p) { CHECK(equal_if_available(mismatches(p))); });
}

TEST_CASE("half form: gathers with padding, dilation and stride", "[fast]") {
  std::uint64_t seed = 2000;
  for (const Convolution& shape : kConvolutions) {
    const FormProblem p = make_form_convolution(wgmma_e4m3(), shape, 6, ++seed, "float8_e4m3fn");
    CHECK(equal_if_available(mismatches(p)));
  }
}

TEST_CASE("half form: fraction bits and groups", "[fast]") {
  std::uint64_t seed = 3000;
  for (const int group : {2, 8, 32, 64}) {
    for (const int fraction_bits : {1, 7, 12, 13, 14}) {
      for (const char* reg : {"e8m13", "float32", "float16"}) {
        const FormProblem p =
            make_form_problem({fp8_unit(64, group, reg, fraction_bits), "float8_e4m3fn",
                               "float8_e4m3fn", 3, 17, 130, FormData::wide_sparse, CData::mixed},
                              ++seed);
        INFO(group << " F " << fraction_bits << " " << reg);
        const std::int64_t differing = mismatches(p);
        CHECK((fraction_bits > 13 ? differing == -1 : equal_if_available(differing)));
      }
    }
  }
}

TEST_CASE("half form: sums at the upper end of what a group can reach", "[fast]") {
  FormProblem p = make_form_problem({wgmma_e4m3(), "float8_e4m3fn", "float8_e4m3fn", 2, 3, 64}, 1);
  const auto largest = static_cast<std::uint8_t>(p.a.format->largest_code());
  for (auto& code : p.a.bytes) code = largest;
  for (std::size_t i = 0; i < p.b.bytes.size(); ++i)
    p.b.bytes[i] = i < 64 ? largest : largest | 0x80;
  CHECK(equal_if_available(mismatches(p)));
}

TEST_CASE("half form: several slices of K, blocks of rows and tiles", "[slow]") {
  for (const UnitDescription& unit : units()) {
    CHECK(equal_if_available(mismatches(make_form_problem(
        {unit, "float8_e4m3fn", "float8_e4m3fn", 260, 66, 530, FormData::gaussian, CData::mixed},
        5000))));
    CHECK(equal_if_available(mismatches(make_form_problem(
        {unit, "float8_e4m3fn", "float8_e4m3fn", 5, 530, 530, FormData::wide_sparse, CData::none},
        5001))));
  }
}

}  // namespace half_form_test
