// Plans of rounded multiply-adds: the fast loops are chosen where their proofs hold, and only
// there.
#include "emu/unit/mac/plan.hpp"
#include "tests/catch.hpp"

namespace mac_plan_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::mac;

namespace {

Register register_of(const std::string& format, const std::string& rounding = "rne") {
  Register r;
  r.format = &find_format(format);
  r.rounding = parse_rounding(rounding);
  return r;
}

Inputs inputs_of(const std::string& a, const std::string& b, std::int64_t k) {
  Inputs in;
  in.a = exponents_of(find_format(a));
  in.b = exponents_of(find_format(b));
  in.product_bits = precision(find_format(a)) + precision(find_format(b));
  in.k = k;
  return in;
}

Plan plan(const Register& r, const Inputs& in, int chunk = 0) { return *make_plan(r, chunk, in); }

}  // namespace

TEST_CASE("mac plan: ends are idle where no sum reaches them", "[fast]") {
  const Register r = register_of("hfp16_e6m9");
  Inputs in = inputs_of("float8_e4m3fn", "float8_e4m3fn", 512);
  CHECK(plan(r, in).ends == Ends::free);
  CHECK(plan(r, in).rule == Rule::plain);
  CHECK_FALSE(plan(r, in).wide);
  in.negative_zero_c = true;
  CHECK(plan(r, in).ends == Ends::guarded);
  in.negative_zero_c = false;
  in.infinite = true;
  CHECK(plan(r, in).ends == Ends::guarded);
  in.infinite = false;
  // |product| < 2^18; the register ends at 2^32 (1 - 2^-10). From 2^28 on such a product is less
  // than half a step: rounded to nearest it has no effect, rounded up it is a whole step, 512 of
  // which make a binade.
  in.k = 1 << 20;
  CHECK(plan(r, in).ends == Ends::free);
  const Register up = register_of("hfp16_e6m9", "rup");
  in.k = 3000;
  CHECK(plan(up, in).ends == Ends::free);
  in.k = 3100;
  CHECK(plan(up, in).ends == Ends::guarded);
  CHECK(plan(up, in, 64).ends == Ends::free);
  in.k = 512;
  in.largest_c = largest_value(*r.format);
  CHECK(plan(r, in).ends == Ends::free);
  CHECK(plan(up, in).ends == Ends::guarded);
  // Products below the smallest subnormal, 2^-39.
  CHECK(plan(r, inputs_of("float8_e5m2", "float8_e5m2", 1)).ends == Ends::free);
  CHECK(plan(r, inputs_of("float16", "float8_e5m2", 1)).ends == Ends::guarded);
}

TEST_CASE("mac plan: one rounding after another only where products are short", "[fast]") {
  CHECK(plan(register_of("float16"), inputs_of("float8_e4m3fn", "float8_e4m3fn", 8)).rule ==
        Rule::plain);
  CHECK(plan(register_of("float16"), inputs_of("float16", "float8_e4m3fn", 8)).rule == Rule::even);
  CHECK(plan(register_of("float8_e4m3fn"), inputs_of("float4_e2m1fn", "float4_e2m1fn", 8)).rule ==
        Rule::plain);
  CHECK(plan(register_of("float8_e4m3fn"), inputs_of("float8_e4m3fn", "float4_e2m1fn", 8)).rule ==
        Rule::even);
  CHECK(plan(register_of("e6m11"), inputs_of("float4_e2m1fn", "float4_e2m1fn", 8)).rule ==
        Rule::even);
}

TEST_CASE("mac plan: float lanes where two bits are left below the last one", "[fast]") {
  const Inputs in = inputs_of("float8_e4m3fn", "float8_e4m3fn", 64);
  CHECK_FALSE(plan(register_of("hfp16_e6m9", "sr(12)"), in).wide);
  CHECK(plan(register_of("hfp16_e6m9", "sr(13)"), in).wide);
  CHECK(plan(register_of("hfp16_e6m9", "sr(12,b)"), in).wide);
  CHECK(plan(register_of("float32"), in).wide);
  CHECK_FALSE(make_plan(register_of("float32", "sr(28)"), 0, in).has_value());
  // Sums near the end of bfloat16 have no room beside them in float32; small ones do.
  CHECK(plan(register_of("bfloat16"), inputs_of("bfloat16", "bfloat16", 64)).wide);
  CHECK_FALSE(plan(register_of("bfloat16"), in).wide);
}

}  // namespace mac_plan_test
