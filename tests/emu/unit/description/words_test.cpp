// Units in words: complete, one line per aspect, different for different units.
#include "emu/unit/description/words.hpp"

#include <map>

#include "emu/unit/description/json.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/description/samples.hpp"

namespace words_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;
using Catch::Contains;

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& sentence : words) text += sentence + "\n";
  return text;
}

/// An Ada-like FP8 unit.
UnitDescription fp8_unit() {
  UnitDescription u = sample(CoreKind::fused);
  u.alignment.fraction_bits = 13;
  u.accumulator.format = format("e8m13");
  u.accumulator.rounding = {.mode = RoundingMode::rtz};
  u.accumulator.overflow_to_infinity = true;
  u.nan_code = 0x7fffffff;
  return u;
}

}  // namespace

TEST_CASE("description words: an FP8 unit, aspect by aspect", "[fast]") {
  const std::vector<std::string> expected = {
      "A and B are float8_e4m3fn.",
      "An instruction takes 32 products, k ascending, in 2 steps of 16.",
      "The exponent of an exact product is the sum of its operands' exponents, whatever its "
      "significand in [0, 4); a subnormal operand counts with its format's smallest exponent. The "
      "products of a step and C are cut 13 bits below the largest exponent among them, toward zero "
      "(rtz), and added exactly.",
      "C is float32, +0 where none is given. It is one more term of the step. The register is C of "
      "the next step.",
      "The register is e8m13 (8 exponent bits, 13 fraction bits); the sum of a step is rounded "
      "toward zero (rtz). Sums of magnitude beyond the largest value's binade become infinite, "
      "whatever the rounding. D is float32, which holds every value of the register.",
      "Subnormal numbers are kept everywhere.",
      "NaN, 0 x infinity and infinities of both signs give 0x7fffffff.",
      "A zero operand counts with exponent -126. The largest exponent is at least -126. A sum of "
      "zero is +0.",
      "K is padded with +0 to a multiple of 32."};
  CHECK(description_words(fp8_unit()) == expected);
}

TEST_CASE("description line: one for each core", "[fast]") {
  CHECK(
      description_line(fp8_unit()) ==
      "16 products and C aligned to the largest exponent, 13 bits kept (rtz), sum to e8m13 rtz; C "
      "chained");
  CHECK(description_line(sample(CoreKind::chain)) ==
        "fused multiply-add chain in float32 rne from C");
  CHECK(description_line(sample(CoreKind::tree)) ==
        "8 products rounded, then added pairwise, then C, every sum rounded to float32 rne; C "
        "chained");
  CHECK(description_line(sample(CoreKind::exact)) ==
        "exact sum of all products and C, rounded once to float32 rne");
  CHECK(description_line(sample(CoreKind::integer)) == "exact integer products and C modulo 2^32");
  CHECK(description_line(sample(CoreKind::xnor)) ==
        "agreements of signs less disagreements and C modulo 2^32");
  CHECK(description_line(sample(CoreKind::table)) == "products from a table and C modulo 2^32");
}

TEST_CASE("description line: variants of the cores", "[fast]") {
  UnitDescription u = sample(CoreKind::chain);
  u.k = 32;
  u.c_entry = CEntry::after_rounding;
  u.chain.chains = 2;
  u.subnormals.flush_inputs = u.subnormals.flush_results = true;
  CHECK(
      description_line(u) ==
      "2 fused multiply-add chains (k mod 2) in float32 rne from +0, added pairwise, C added last "
      "(rne); subnormals flushed (A, B, results)");
  u = sample(CoreKind::chain);
  u.c = u.d = u.accumulator.format = nullptr;
  u.accumulator = {.bits = 24, .fraction = 12, .integer = IntegerOverflow::saturate_each};
  u.nan_code = 0;
  CHECK(description_line(u) == "fused multiply-add chain in fixed24q12 rne saturating from C");
  u = sample(CoreKind::integer);
  u.accumulator.integer = IntegerOverflow::saturate_once;
  u.sparsity = {2, 4};
  CHECK(description_line(u) ==
        "exact integer products and C, saturated to int32 once per 32 products; A sparse 2:4");
}

TEST_CASE("description words: what they must mention", "[fast]") {
  const auto says = [](const UnitDescription& u, const std::string& text) {
    check_description(u);
    CHECK_THAT(joined(description_words(u)), Contains(text));
  };
  UnitDescription u = sample(CoreKind::xnor);
  u.k = 128;

  u = fp8_unit();
  u.c_entry = CEntry::after_alignment;
  u.alignment.parts = 2;
  u.alignment.floor.reset();
  u.second.c_dropped = 25;
  says(u, "The products of even and of odd k of a step are each cut 13 bits below");
  says(u, "the sum is cut 31 bits and C 24 bits below the larger of their two exponents");
  says(u, "C counts as zero where its exponent is more than 25 below.");
  says(u, "The largest exponent has no lower bound.");
  u.alignment.zero_c_counts = false;
  says(u, "A zero operand in A or B counts with exponent -126. A zero C has no exponent");
  u = sample(CoreKind::tree);
  says(u, "zeros of negative sign alone give -0.");
  u.accumulator.rounding = {.mode = RoundingMode::rdn};
  says(u, "give -0, and so do sums that cancel where they are rounded down.");
  u.plus_zero_sums = true;
  says(u, "zeros of negative sign alone give -0.");
  u = sample(CoreKind::exact);
  u.scaling = {.point = Scaling::Point::exponents, .format = format("float8_e4m3fn"), .block = 16};
  says(u,
       "Along k each 16 elements of A, and of B, share a scale (float8_e4m3fn, its sign ignored)");
  u = sample(CoreKind::chain);
  u.input = {format("tfloat32"), {.mode = RoundingMode::rtz}};
  u.subnormals = {.flush_inputs = true, .inputs_to_plus_zero = true};
  u.sparsity = {2, 4};
  u.nan = NanRule::x86;
  says(u, "Operands are first rounded to tfloat32, toward zero (rtz).");
  says(u, "Subnormal numbers in A and B are read as +0");
  says(u, "A holds 2 of each 4 elements along k");
  says(u, "The first NaN of a, b and the accumulator results");
}

TEST_CASE("description words: two levels of accumulation", "[fast]") {
  UnitDescription u = fp8_unit();
  u.outer = {128, {.format = format("float32")}};
  check_description(u);
  const std::string words = joined(description_words(u));
  CHECK_THAT(words, Contains("C is float32, +0 where none is given. The outer register starts from "
                             "it. The register starts from +0 in each sum of 128 products. The "
                             "register is one more term of the step.\n"));
  CHECK_THAT(words,
             Contains("After each 128 products, and after the last, it is added to the outer "
                      "register. That is float32 (8 exponent bits, 23 fraction bits); the "
                      "sum of the two is rounded to nearest, ties to even (rne)."));
  CHECK(
      description_line(u) ==
      "16 products and C aligned to the largest exponent, 13 bits kept (rtz), sum to e8m13 rtz; C "
      "chained; each 128 products from +0, then added to float32 rne");
  CHECK(description_code(u) == "16+C F13 rtz->e8m13 /128 rne->f32");
}

TEST_CASE("description code: a few words for each core", "[fast]") {
  CHECK(description_code(fp8_unit()) == "16+C F13 rtz->e8m13");
  CHECK(description_code(sample(CoreKind::chain)) == "fma rne->f32");
  CHECK(description_code(sample(CoreKind::tree)) == "8 pairwise,+C rne->f32");
  CHECK(description_code(sample(CoreKind::exact)) == "K+C exact rne->f32");
  CHECK(description_code(sample(CoreKind::integer)) == "32+C int wrap->s32");
  CHECK(description_code(sample(CoreKind::xnor)) == "K+C xnor wrap->s32");
  CHECK(description_code(sample(CoreKind::table)) == "K+C table wrap->s32");
  UnitDescription u = sample(CoreKind::chain);
  u.c = u.d = u.accumulator.format = nullptr;
  u.accumulator = {.bits = 24, .fraction = 12, .integer = IntegerOverflow::saturate_each};
  CHECK(description_code(u) == "fma rne,sat each->fixed24q12");
  u = fp8_unit();
  u.scaling = {.point = Scaling::Point::exponents, .format = format("float8_e8m0fnu"), .block = 32};
  u.alignment.rounding = RoundingMode::rdn;
  u.subnormals.flush_c = true;
  CHECK(description_code(u) == "16+C F13rdn rtz->e8m13 e8m0/32 ftz");
}

TEST_CASE("description words: different units are described differently", "[fast]") {
  std::map<std::string, std::string> seen;  // words to JSON
  for (UnitDescription& u : random_valid(5, 2000)) {
    u.name.clear();
    for (const std::string& sentence : description_words(u)) {
      CHECK_FALSE(sentence.empty());
      CHECK(sentence.back() == '.');
      CHECK(sentence.find('\n') == sentence.npos);
      CHECK(sentence.find("  ") == sentence.npos);
    }
    CHECK(description_line(u).find('\n') == std::string::npos);
    // Two ways to write the same steps.
    if (u.group == u.k || u.core == CoreKind::chain) u.group = 0;
    const std::string json = description_json(u), words = joined(description_words(u));
    const auto [place, fresh] = seen.emplace(words, json);
    INFO(words);
    CHECK(place->second == json);
  }
}

}  // namespace words_test
