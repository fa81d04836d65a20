// Scale rules: upward rounding decided exactly, the least squared error found by brute force.
#include "formats/scaling/scale_rule.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "formats/format.hpp"
#include "formats/quantize.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace scale_rule_test {

using namespace numemu;

namespace {

std::vector<float> sample(std::int64_t n, std::uint32_t tensor) {
  RandomSource random;
  random.tensor = tensor;
  std::vector<float> x(n);
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = static_cast<float>(random.uniform(2 * i) + random.uniform(2 * i + 1) - 1);
  return x;
}

}  // namespace

TEST_CASE("absmax never clips the largest magnitude and is the smallest such float32", "[fast]") {
  RandomSource random;
  for (const char* name : {"int2", "int4", "int8", "float4_e2m1fn", "float8_e4m3fn", "float8_e5m2",
                           "float16", "bfloat16"}) {
    Conversion conversion;
    conversion.format = &find_format(name);
    const double largest = largest_value(*conversion.format);
    for (int i = 0; i < 2000; ++i) {
      const float amax = static_cast<float>(std::ldexp(1 + random.uniform(i), i % 80 - 40));
      const float scale = absmax_scale(amax, conversion);
      CHECK(scale * largest >= amax);
      CHECK(std::nextafter(scale, 0.0f) * largest < amax);
    }
  }
}

TEST_CASE("zeros give 1, and NaN and infinities do not count", "[fast]") {
  Conversion conversion;
  conversion.format = &find_format("int8");
  const float zeros[3] = {0, -0.0f, 0};
  const float odd[4] = {NAN, INFINITY, -127, 3};
  for (const ScaleRule* rule : all_scale_rules()) {
    if (rule->scale == nullptr) continue;
    CHECK(rule->scale({zeros, 3, &conversion}) == 1);
    CHECK(rule->scale({zeros, 0, &conversion}) == 1);
  }
  CHECK(find_scale_rule("absmax").scale({odd, 4, &conversion}) == 1);
}

TEST_CASE("mse(17) is the best of its seventeen candidates by measurement", "[fast]") {
  const std::vector<float> x = sample(3000, 7);
  for (const char* name : {"int2", "int3", "int8", "float4_e2m1fn", "float8_e4m3fn"}) {
    INFO(name);
    const Conversion conversion{.format = &find_format(name)};
    const float widest = find_scale_rule("absmax").scale({x.data(), 3000, &conversion});
    const auto measured = [&](float scale) {
      std::vector<std::uint8_t> codes(x.size());
      quantize_codes(conversion, x.data(), 3000, scale, codes.data());
      double sum = 0;
      for (int i = 0; i < 3000; ++i)
        sum += std::pow(to_double(decode(*conversion.format, codes[i])) * scale - x[i], 2);
      return sum;
    };
    const float best = find_scale_rule("mse(17)").scale({x.data(), 3000, &conversion});
    double least = HUGE_VAL;
    float expected = 0;
    for (int j = 0; j <= 16; ++j) {
      const float scale = static_cast<float>(widest * std::pow(2.0, -j / 8.0));
      if (measured(scale) < least) {
        least = measured(scale);
        expected = scale;
      }
    }
    CHECK(best == expected);
  }
}

TEST_CASE("mse is short for mse(exact)", "[fast]") {
  CHECK(std::string(find_scale_rule("mse").name) == "mse(exact)");
  CHECK(&find_scale_rule("mse", find_block_format("mxfp4")) == &find_scale_rule("mse(exact)"));
  CHECK(scale_rule_name("mse") == "mse(exact)");
  CHECK(scale_rule_name("mse(17)") == "mse(17)");
  CHECK(scale_rule_name("bogus") == "bogus");
}

TEST_CASE("unknown rules offer the nearest", "[fast]") {
  CHECK_THROWS_WITH(find_scale_rule("absmx"), Catch::Contains("did you mean 'absmax'"));
}

TEST_CASE("rules are refused where they cannot serve, by naming those that can", "[fast]") {
  using Catch::Contains;
  const auto refuse = [](const char* rule, const char* format, const char* text) {
    CAPTURE(rule, format);
    // The list has one rule of each kind that stays, whatever rules are added.
    CHECK_THROWS_WITH(find_scale_rule(rule, find_block_format(format)),
                      Contains(text) && Contains(", expected "));
  };
  refuse("absmax", "mxfp4", "scale rule 'absmax' has no scales for mxfp4, expected ");
  for (const char* serving : {"ceil", "even", "floor", "mse(exact)", "mse(17)", "nearest"}) {
    refuse("absmax", "mxfp4", serving);
    refuse("none", "mxint8", serving);
  }
  refuse("floor", "nvfp4", "scale rule 'floor' has no scales for nvfp4, expected ");
  refuse("floor", "nvfp4", "absmax");
  refuse("mse(17)", "nvfp4", "four-over-six");
  for (const char* f : {"mxfp4", "nvfp4", "group(int4,32,float16)"}) {
    refuse(f == std::string("mxfp4") ? "absmax" : "floor", f, "detuned(RULE,FACTOR)");
    refuse(f == std::string("mxfp4") ? "absmax" : "floor", f, "pow2(RULE,TO)");
  }
  refuse("floor", "group(int4,32,float16)", "lognormal(MARGIN)");
  CHECK(rules_serving(find_block_format("mxfp4")).with_arguments ==
        std::vector<std::string>{"detuned(RULE,FACTOR)", "pow2(RULE,TO)"});
  refuse("mse", "group(uint4,32,float16,zp)", "absmax");
  for (const char* serving : {"absmax", "mse(exact)", "mse(17)", "none"})
    refuse("floor", "group(int4,32,float16)", serving);
  CHECK_THROWS_WITH(find_scale_rule("flor", find_block_format("mxfp4")),
                    Contains("unknown scale rule 'flor'; did you mean 'floor'"));
  CHECK_THROWS_WITH(find_scale_rule("floor"),
                    Contains("has no real scale, it chooses powers of two") &&
                        Contains("mse(exact)") && Contains("none"));
  for (const BlockFormat* f : named_block_formats()) {
    CHECK(serves(find_scale_rule(f->default_rule, *f), *f));
    for (const ScaleRule* rule : all_scale_rules())
      CHECK(serves(*rule, *f) == (f->tensor_scale ? rule->serves_affine || rule->serves_tensor_scale
                                                  : rule->exponents != nullptr));
  }
}

TEST_CASE("an unknown rule is refused with all that are known", "[fast]") {
  using Catch::Contains;
  for (const char* known : {"absmax", "floor", "mse", "none", "pow2(mse,up)"})
    CHECK_NOTHROW(require_scale_rule(known));
  CHECK_NOTHROW(require_scale_rule("best", {"best"}));
  CHECK_THROWS_WITH(require_scale_rule("best"), Contains("unknown scale rule 'best'"));
  for (const char* known : {"absmax", "ceil", "four-over-six", " mse,", "none", "some"})
    CHECK_THROWS_WITH(require_scale_rule("bogus", {"some"}), Contains(known));
}

TEST_CASE("rules with arguments: one canonical text, nested, and errors that name the argument",
          "[fast]") {
  using Catch::Contains;
  CHECK(scale_rule_name("detuned( mse , 0.50 )") == "detuned(mse(exact),0.5)");
  CHECK(scale_rule_name("pow2(detuned(mse(17),2),up)") == "pow2(detuned(mse(17),2),up)");
  CHECK(scale_rule_name("pow2(bogus)x") == "pow2(bogus)x");
  const auto refuse = [](const char* rule, const char* text) {
    CAPTURE(rule);
    CHECK_THROWS_WITH(find_scale_rule(rule), Contains(text));
  };
  refuse("detund(absmax,2)",
         "unknown scale rule 'detund(absmax,2)'; did you mean "
         "'detuned(absmax,2)'?");
  refuse("detuned", "scale rule detuned(RULE,FACTOR): expected 2 arguments, found 0");
  refuse("detuned(absmax)", "expected 2 arguments, found 1");
  refuse("detuned(absmx,2)", "did you mean 'absmax'");
  refuse("detuned(absmax,0)", "expected a number from 1e-06 to 1000000 as FACTOR, found '0'");
  refuse("detuned(absmax,two)", "as FACTOR, found 'two'");
  refuse("pow2(absmax,upp)", "scale rule pow2(RULE,TO): unknown TO 'upp'; did you mean 'up'?");
  refuse("pow2(absmax,up,1)", "expected 1 or 2 arguments, found 3");
  refuse("lognormal()", "expected a number from -64 to 64 as MARGIN, found ''");
  refuse("pow2(floor)", "scale rule 'pow2(floor)' has no real scale");
  constexpr int kDepth = 100000;
  std::string deep;
  for (int i = 0; i < kDepth; ++i) deep += "pow2(";
  deep += "absmax" + std::string(kDepth, ')');
  refuse(deep.c_str(), "unknown scale rule");
}

}  // namespace scale_rule_test
