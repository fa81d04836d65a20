// The 32-bit integer form: the bits of the reference, on every target; what it declines.
#include "emu/unit/fused/integer_form.hpp"

#include <omp.h>

#include "tests/catch.hpp"
#include "tests/emu/unit/fused/prepare_cases.hpp"

namespace integer_form_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

const std::vector<FusedCase>& cases() {
  static const std::vector<FusedCase> all = {
      {"float16", "float16", "float32", 4, 4, 23},
      {"float16", "float16", "float16", 4, 4, 23},
      {"float16", "float16", "float32", 16, 8, 24},
      {"float16", "float16", "float16", 16, 8, 24},
      {"bfloat16", "bfloat16", "float32", 16, 8, 24},
      {"tfloat32", "tfloat32", "float32", 8, 4, 24},
      {"tfloat32", "float16", "float32", 8, 8, 25},
      {"float8_e4m3fn", "float8_e5m2", "float32", 32, 16, 24},
      {"float8_e5m2", "float8_e5m2", "float16", 32, 32, 23},
      {"float8_e4m3fn", "float8_e4m3fn", "e8m13", 32, 32, 13}};
  return all;
}

}  // namespace

TEST_CASE("integer form: every unit, kind of data and C gives the reference's bits", "[fast]") {
  std::uint64_t seed = 0;
  for (const FusedCase& f : cases()) {
    seed += 100;
    const AnswerCounts tally = tally_fused(multiply_fused_integer, f, seed);
    INFO(f.a << " x " << f.b << " -> " << f.accumulator << ", F = " << f.fraction_bits);
    CHECK(tally.different == 0);
    if (has_integer_form()) CHECK(tally.equal >= 5);
    if (has_integer_form() && f.accumulator == "float16") CHECK(tally.declined == 0);
  }
}

TEST_CASE("integer form: every target gives the same bits", "[fast]") {
  for (const FusedCase& f : cases()) {
    const FusedProduct p =
        make_fused(f, {13, 51, 70, false, true}, Elements::gaussian, Addend::usual, 5);
    INFO(f.a << " x " << f.b << " -> " << f.accumulator);
    CHECK(answers_of_targets(multiply_fused_integer, has_integer_form, p) ==
          std::set<Answer>{Answer::equal});
  }
}

TEST_CASE("integer form: the largest sums of a step fit 32 bits", "[fast]") {
  if (!has_integer_form()) return;
  // Significands just below 2 in every element and in C; F and G at the limit.
  for (const int fraction_bits : {24, 25}) {
    const FusedCase f{"float16", "float16", "float32", 8, 8, fraction_bits};
    FusedProduct p = make_fused(f, {5, 40, 64}, Elements::gaussian, Addend::usual, 9);
    for (auto& code : p.a.halves) code = 0x3fff;
    for (auto& code : p.b.halves) code = 0x3fff;
    for (float& x : p.c) x = 0x1.fffffep1f;
    CHECK(answer_of(multiply_fused_integer, p) == Answer::equal);
    for (auto& code : p.b.halves) code = 0xbfff;
    for (float& x : p.c) x = -0x1.fffffep1f;
    CHECK(answer_of(multiply_fused_integer, p) == Answer::equal);
  }
}

TEST_CASE("integer form: threads and tiles change nothing", "[fast]") {
  if (!has_integer_form()) return;
  const FusedProduct p =
      make_fused(cases()[2], {130, 200, 64}, Elements::gaussian, Addend::mixed, 3);
  std::vector<std::uint8_t> one, three;
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  CHECK(multiply_fused_integer(p.unit, p.gemm(one)));
  omp_set_num_threads(3);
  CHECK(multiply_fused_integer(p.unit, p.gemm(three)));
  omp_set_num_threads(threads);
  CHECK(one == three);
}

TEST_CASE("integer form: declines what 32 bits or float32 cannot hold", "[fast]") {
  const auto answer = [](const FusedCase& f, Elements elements, Addend addend) {
    return answer_of(multiply_fused_integer, make_fused(f, {3, 5, 70}, elements, addend, 1));
  };
  // (4 * 16 + 2) 2^25 > 2^31; products of 48 bits; scales; C at the end.
  CHECK(answer({}, Elements::gaussian, Addend::none) == Answer::declined);
  CHECK(answer({"float32", "float32", "float32", 8, 4, 24}, Elements::gaussian, Addend::none) ==
        Answer::declined);
  CHECK(answer({"float8_e4m3fn", "float8_e4m3fn", "e8m13", 32, 32, 13, false, true},
               Elements::gaussian, Addend::none) == Answer::declined);
  CHECK(answer({"float8_e4m3fn", "float8_e4m3fn", "float16", 32, 16, 13, true}, Elements::gaussian,
               Addend::none) == Answer::declined);
  // Products below float32's smallest number, and a C with bits there.
  CHECK(answer({"bfloat16", "bfloat16", "float32", 16, 8, 24}, Elements::subnormal, Addend::none) ==
        Answer::declined);
  CHECK(answer({"float16", "float16", "float32", 16, 8, 24}, Elements::gaussian, Addend::tiny) ==
        Answer::declined);
}

}  // namespace integer_form_test
