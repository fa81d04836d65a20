// The float64 form: the bits of the reference, on every target and for all data; what it declines.
#include "emu/unit/fused/double_form.hpp"

#include <omp.h>

#include "tests/catch.hpp"
#include "tests/emu/unit/fused/prepare_cases.hpp"

namespace double_form_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

const std::vector<FusedCase>& cases() {
  static const std::vector<FusedCase> all = {
      {"float16", "float16", "float32", 16, 16, 25},
      {"float16", "float16", "float16", 16, 16, 25},
      {"float16", "float16", "float32", 4, 4, 23},
      {"bfloat16", "bfloat16", "float32", 16, 8, 24},
      {"tfloat32", "tfloat32", "float32", 8, 8, 25},
      {"float32", "bfloat16", "float32", 0, 4, 30},
      {"float8_e4m3fn", "float8_e5m2", "float32", 32, 32, 25},
      {"float8_e5m2", "float8_e5m2", "float16", 32, 32, 25},
      {"float6_e3m2fn", "float4_e2m1fn", "float32", 32, 32, 25},
      {"float8_e4m3fn", "float8_e4m3fn", "e8m13", 32, 32, 13},
      {"float8_e4m3fn", "float8_e4m3fn", "float32", 32, 16, 25, true},
      {"float8_e5m2", "float8_e4m3fn", "float16", 32, 16, 25, true},
      {"float8_e4m3fn", "float8_e4m3fn", "float32", 32, 32, 25, false, true},
      {"float8_e5m2", "float8_e5m2", "float32", 32, 32, 25, false, true},
      {"float16", "float16", "float32", 64, 64, 43},
      {"float16", "float16", "float32", 3, 1, 2},
      // Registers of other widths, exponents and roundings; no bit below the largest exponent.
      {"float8_e4m3fn", "float8_e4m3fn", "e8m14", 32, 32, 14},
      {"float8_e5m2", "float8_e5m2", "e8m1", 32, 16, 6},
      {"float16", "float16", "e8m22", 16, 8, 0},
      {"float8_e4m3fn", "float8_e4m3fn", "float32", 32, 32, 0},
      {"bfloat16", "bfloat16", "float32", 16, 16, 24, false, false, true},
      {"float16", "float16", "float32", 16, 8, 25, true, false, true},
      {"float8_e4m3fn", "float8_e5m2", "e8m13", 32, 32, 13, false, false, true},
      {"float8_e5m2", "float8_e5m2", "e8m7", 32, 32, 20, false, true, true},
      {"float16", "float16", "hfp16_e6m9", 16, 16, 25, false, false, true},
      {"float8_e5m2", "float8_e5m2", "hfp16_e6m9", 32, 32, 13},
      {"float8_e4m3fn", "float8_e4m3fn", "e5m10b20", 32, 16, 20},
      {"float8_e4m3fn", "float8_e4m3fn", "e4m3", 32, 32, 30, false, false, true},
      // Orders; C after the last step, in registers that the host does not have.
      {"float8_e4m3fn", "float8_e4m3fn", "float32", 32, 4, 25, true},
      {"float16", "float16", "float32", 16, 2, 25, true},
      {"float16", "float16", "e8m13", 16, 4, 20, false, false, false, true, true},
      {"float8_e4m3fn", "float8_e4m3fn", "e8m13", 32, 32, 13, false, false, false, true},
      {"bfloat16", "bfloat16", "e8m7", 16, 16, 24, false, false, true, true},
      {"float8_e5m2", "float8_e5m2", "hfp16_e6m9", 32, 16, 13, true},
      {"float16", "float16", "float32", 16, 8, 25, false, false, true, true}};
  return all;
}

/// Some of the cases under every other rounding of addends, few fraction bits among them.
std::vector<FusedCase> aligned_cases() {
  std::vector<FusedCase> all;
  for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rdn, RoundingMode::rodd}) {
    for (const std::size_t i : {0, 1, 4, 5, 7, 9, 10, 12, 14, 15, 18, 19, 22, 23, 26, 28, 32, 33}) {
      all.push_back(cases()[i]);
      all.back().alignment = mode;
    }
    all.push_back({.a = "float8_e4m3fn", .b = "float8_e4m3fn", .group = 8, .fraction_bits = 3});
    all.back().alignment = mode;
  }
  return all;
}

}  // namespace

TEST_CASE("double form: every unit, kind of data and C gives the reference's bits", "[fast]") {
  std::uint64_t seed = 0;
  for (const FusedCase& f : cases()) {
    seed += 100;
    const AnswerCounts tally = tally_fused(multiply_fused_double, f, seed);
    INFO(f.a << " x " << f.b << " -> " << f.accumulator << ", F = " << f.fraction_bits);
    CHECK(tally.different == 0);
    if (has_double_form()) CHECK(tally.declined == 0);
  }
}

namespace {

/// Every `stride`th of them.
void check_aligned(std::size_t stride) {
  const std::vector<FusedCase> all = aligned_cases();
  for (std::size_t i = 0; i < all.size(); i += stride) {
    const FusedCase& f = all[i];
    const std::uint64_t seed = 7100 + 100 * i;
    const AnswerCounts tally = tally_fused(multiply_fused_double, f, seed);
    INFO(f.a << " x " << f.b << " -> " << f.accumulator << ", F = " << f.fraction_bits << ", mode "
             << static_cast<int>(f.alignment));
    CHECK(tally.different == 0);
    if (has_double_form()) CHECK(tally.declined == 0);
    const FusedProduct p =
        make_fused(f, {13, 51, 70, false, true}, Elements::gaussian, Addend::usual, seed);
    CHECK(answers_of_targets(multiply_fused_double, has_double_form, p) ==
          std::set<Answer>{Answer::equal});
  }
}

}  // namespace

TEST_CASE("double form: addends rounded to nearest, down and to odd", "[fast]") {
  // 19 cases of each mode: 4 is prime to them, so that each mode has others.
  check_aligned(4);
}

TEST_CASE("double form: all addends rounded to nearest, down and to odd", "[slow]") {
  check_aligned(1);
}

TEST_CASE("double form: every target with a fused multiply-add gives the same bits", "[fast]") {
  for (const FusedCase& f : cases()) {
    const FusedProduct p =
        make_fused(f, {13, 51, 70, false, true}, Elements::gaussian, Addend::usual, 5);
    INFO(f.a << " x " << f.b << " -> " << f.accumulator);
    CHECK(answers_of_targets(multiply_fused_double, has_double_form, p) ==
          std::set<Answer>{Answer::equal});
  }
}

TEST_CASE("double form: the last bits of products are cut one binade above where none is",
          "[fast]") {
  if (!has_double_form()) return;
  // 2^-9 * 2^-9 beside 24 * 24 - 24 * 24: E = 8, so 2^-18 is half of the last kept bit, 2^(8 - 25);
  // beside 16 * 15 - 16 * 15, E = 7, it is kept.
  const Format& format = find_format("float8_e4m3fn");
  const auto code = [&](double x) {
    return static_cast<std::uint8_t>(encode(format, value_of(x), {}, Overflow::ieee).code);
  };
  for (const bool above : {true, false}) {
    const FusedCase f{format.name, format.name, "float32", 32, 32, 25};
    FusedProduct p = make_fused(f, {4, 40, 32}, Elements::subnormal, Addend::none, 11);
    const double x = above ? 24 : 16, y = above ? 24 : 15;
    for (std::size_t row = 0; row < 4; ++row) {
      p.a.bytes[row * 32] = code(x);
      p.a.bytes[row * 32 + 9] = code(-x);
    }
    for (std::size_t lane = 0; lane < 40; ++lane)
      p.b.bytes[lane * 32] = p.b.bytes[lane * 32 + 9] = code(y);
    CHECK(answer_of(multiply_fused_double, p) == Answer::equal);
  }
}

TEST_CASE("double form: a negative sum that underflows to -0 meets a C of -0 at the end",
          "[fast]") {
  if (!has_double_form()) return;
  for (const std::int64_t k : {3, 32, 64}) {
    FusedProduct p = make_fused({"float8_e5m2", "float8_e5m2", "float16", 32, 16, 25, true},
                                {11, 40, k}, Elements::subnormal, Addend::usual, 13);
    for (std::size_t i = 0; i < p.half_c.size(); ++i) p.half_c[i] = i % 3 == 0 ? 0 : 0x8000;
    CHECK(answer_of(multiply_fused_double, p) == Answer::equal);
  }
}

TEST_CASE("double form: infinity meets a sum that overflows before or after it", "[fast]") {
  if (!has_double_form()) return;
  constexpr std::size_t kRows = 20, kDepth = 48;
  FusedProduct p = make_fused({"float16", "float16", "float16", 16, 16, 25}, {kRows, 50, kDepth},
                              Elements::gaussian, Addend::none, 12);
  for (std::size_t row = 0; row < kRows; ++row) {
    const std::size_t overflow = row % 2 == 0 ? 3 : 40, infinity = 20;
    p.a.halves[row * kDepth + overflow] = 0x7800;                          // 2^15
    p.a.halves[row * kDepth + infinity] = row % 3 == 0 ? 0x7c00 : 0xfc00;  // both signs
  }
  for (std::size_t lane = 0; lane < 50; ++lane) {
    for (const std::size_t k : {3, 20, 40})
      p.b.halves[lane * kDepth + k] = lane % 7 == 0 ? 0xc400 : 0x4400;  // -4, 4
  }
  CHECK(answer_of(multiply_fused_double, p) == Answer::equal);
}

TEST_CASE("double form: threads and tiles change nothing", "[fast]") {
  if (!has_double_form()) return;
  const FusedProduct p = make_fused(cases()[0], {130, 200, 64}, Elements::wide, Addend::mixed, 3);
  std::vector<std::uint8_t> one, three;
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  CHECK(multiply_fused_double(p.unit, p.gemm(one)));
  omp_set_num_threads(3);
  CHECK(multiply_fused_double(p.unit, p.gemm(three)));
  omp_set_num_threads(threads);
  CHECK(one == three);
}

TEST_CASE("double form: declines sums that 52 bits cannot hold, and other units", "[fast]") {
  const auto declines = [](const FusedProduct& p) {
    return answer_of(multiply_fused_double, p) == Answer::declined;
  };
  const auto product = [](const FusedCase& f) {
    return make_fused(f, {3, 5, 70}, Elements::gaussian, Addend::usual, 1);
  };
  // 4 * 64 + 2 > 2^8.
  CHECK(declines(product({"float16", "float16", "float32", 64, 64, 44})));
  CHECK(declines(product({"int8", "int8", "float32", 16, 16, 25})));
  FusedProduct p = product({});
  p.unit.c_entry = CEntry::after_alignment;
  CHECK(declines(p));
  p = product({});
  p.unit.core = CoreKind::exact;
  CHECK(declines(p));
  p = product({});
  p.unit.alignment.floor = -20;  // padding could then cut C
  CHECK(declines(p));
}

}  // namespace double_form_test
