// Described accumulators: canonical names, aliases, what each part does, every refusal.
#include "emu/unit/catalogue/find.hpp"

#include "emu/unit/unit.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace find_test {

using namespace numemu;
using namespace numemu::unit;
using Catch::Contains;

namespace {

std::string canonical(const std::string& name) { return find_unit(name).row().name; }

UnitDescription parsed(const std::string& name) {
  const auto unit = parse_described(name);
  REQUIRE(unit);
  return *unit;
}

}  // namespace

TEST_CASE("described units: canonical names write rounding and overflow out", "[fast]") {
  for (const auto& [name, full] :
       {std::pair{"neutral.mac.hfp16_e6m9", "neutral.mac.hfp16_e6m9.rne"},
        {"neutral.mac.hfp16_e6m9.rne", "neutral.mac.hfp16_e6m9.rne"},
        {"neutral.mac.e5m10.sr8", "neutral.mac.float16.sr8"},
        {"neutral.mac.e5m10.sr8c", "neutral.mac.float16.sr8"},
        {"neutral.mac.e5m10.sr12a", "neutral.mac.float16.sr12a"},
        {"neutral.mac.e5m10.sr8b", "neutral.mac.float16.sr8b"},
        {"neutral.mac.e5m10.sr8odd", "neutral.mac.float16.sr8odd"},
        {"neutral.mac.bf16.rtz.saturate", "neutral.mac.bfloat16.rtz.saturate"},
        {"neutral.mac.int16.wrap", "neutral.mac.int16.wrap"},
        {"neutral.mac.int16.saturate", "neutral.mac.int16.saturate"},
        {"neutral.mac.fixed24q12.rtz", "neutral.mac.fixed24q12.rtz.saturate"},
        {"neutral.mac.fixed24q12.wrap", "neutral.mac.fixed24q12.rne.wrap"},
        {"neutral.chunk64.hfp16_e6m9", "neutral.chunk64.hfp16_e6m9.rne"},
        {"chunk64.hfp16_e6m9", "neutral.chunk64.hfp16_e6m9.rne"},
        {"mac.bfloat16.rtz", "neutral.mac.bfloat16.rtz"},
        {"ibm.hfp8.chunk64", "neutral.chunk64.hfp16_e6m9.rne"},
        {"ibm.hfp8.chunk128", "neutral.chunk128.hfp16_e6m9.rne"},
        {"neutral.kahan.float16", "neutral.kahan.float16.rne"},
        {"neutral.mac.e8m20", "neutral.mac.e8m20.rne"}}) {
    INFO(name);
    CHECK(canonical(name) == full);
    CHECK(&find_unit(name) == &find_unit(full));
    CHECK(find_unit(name).row().grade == Grade::definition);
    CHECK(parsed(full).name == full);
  }
}

TEST_CASE("described units: one unit has one name, spelled one way", "[fast]") {
  // Numbers with leading zeros are refused or lose them.
  for (const char* name : {"neutral.chunk064.float16", "neutral.mac.int016"}) {
    INFO(name);
    try {
      CHECK_THAT(canonical(name), !Contains("chunk0") && !Contains("int0"));
    } catch (const Error&) {
    }
  }
  // What changes a result is in the name: the rounding of fractions into an integer register.
  const auto rounding = [](const std::string& name) -> std::string {
    try {
      return to_string(find_unit(name).description()->accumulator.rounding);
    } catch (const Error&) {
      return "refused";
    }
  };
  for (const char* mode : {"rup", "rtz", "rne"}) {
    const std::string found = rounding("neutral.mac.int16." + std::string(mode));
    CHECK((found == mode || found == "refused"));
  }
}

TEST_CASE("described units: their parameters", "[fast]") {
  UnitDescription u = parsed("neutral.mac.e5m10.rtz");
  CHECK(u.core == CoreKind::chain);
  CHECK(u.a == nullptr);
  CHECK(u.accumulator.format->name == "float16");
  CHECK(u.accumulator.rounding.mode == RoundingMode::rtz);
  CHECK(u.accumulator.overflow == Overflow::ieee);
  CHECK(u.nan_code == 0x7e00);
  CHECK(u.chain.fused);
  CHECK(u.chain.chunk == 0);
  CHECK_FALSE(u.chain.kahan);

  u = parsed("neutral.chunk32.float16.sr11b.saturate");
  CHECK(u.chain.chunk == 32);
  CHECK(u.accumulator.rounding.random_bits == 11);
  CHECK(u.accumulator.rounding.variant == StochasticVariant::b);
  CHECK(u.accumulator.overflow == Overflow::saturate);
  CHECK(parsed("neutral.kahan.float16").chain.kahan);

  u = parsed("neutral.mac.fixed24q12.rdn.wrap");
  CHECK(u.accumulator.format == nullptr);
  CHECK(u.accumulator.bits == 24);
  CHECK(u.accumulator.fraction == 12);
  CHECK(u.accumulator.integer == IntegerOverflow::wrap);
  CHECK(u.accumulator.rounding.mode == RoundingMode::rdn);
  CHECK(parsed("neutral.mac.int16").accumulator.integer == IntegerOverflow::saturate_each);

  // A register without a container of its own is handed out as float32.
  u = parsed("neutral.mac.e8m20");
  CHECK(u.c->name == "float32");
  CHECK(u.d->name == "float32");
  CHECK(u.nan_code == 0x7fc00000);
}

TEST_CASE("described units: every description is legal", "[fast]") {
  for (const char* name :
       {"neutral.mac.e5m10.sr8", "neutral.mac.float64.rup", "neutral.mac.hfp8_e5m2_finite",
        "neutral.mac.int8.wrap", "neutral.mac.int32", "neutral.mac.fixed32q31.rodd",
        "neutral.mac.fixed24q12.saturate", "neutral.chunk1.e8m20", "neutral.kahan.dlfloat16",
        "neutral.mac.binary8p3se.saturate", "neutral.mac.e4m3+fnuz", "neutral.mac.e5m10+ftz",
        "neutral.mac.fixed24q12.sr8.saturate"}) {
    INFO(name);
    CHECK_NOTHROW(check_description(parsed(name)));
  }
  // What check_description() refuses has no name either.
  for (const char* name : {"neutral.mac.float64.sr16", "neutral.mac.fixed24q12.sr8.wrap"}) {
    INFO(name);
    CHECK_THROWS_AS(find_unit(name), Error);
  }
}

TEST_CASE("described units: other names are not theirs", "[fast]") {
  for (const char* name :
       {"neutral", "neutral.", "neutral.exact", "neutral.macc.e5m10", "mac.e5m10", "ibm.hfp8",
        "ibm.hfp16.chunk64", "nvidia.a100.mma.f16.f32", ""}) {
    INFO(name);
    CHECK_FALSE(parse_described(name));
  }
}

TEST_CASE("described units: refusals name the part and what was expected", "[fast]") {
  for (const auto& [name, text] :
       {std::pair{"neutral.mac", "expected the register's format after mac"},
        {"neutral.chunk8", "expected the register's format after chunk8"},
        {"neutral.chunk0.float16", "'chunk0': expected chunk1 to chunk1048576"},
        {"neutral.chunk1048577.float16", "expected chunk1 to chunk1048576"},
        {"neutral.chunk.float16", "'chunk': expected chunk1"},
        {"neutral.chunk8x.float16", "'chunk8x': expected chunk1"},
        {"ibm.hfp8.chunk", "expected chunk1"},
        {"neutral.mac.int7", "'int7': expected 8 to 32 bits"},
        {"neutral.mac.int33", "'int33': expected 8 to 32 bits"},
        {"neutral.mac.fixed24q24", "fewer of them right of the point"},
        {"neutral.mac.fixed24q-1", "'fixed24q-1': expected 8 to 32 bits"},
        {"neutral.mac.fixedq4", "'fixedq4': expected fixedWqF"},
        {"neutral.mac.fixed24q", "expected fixedWqF"},
        {"neutral.mac.uint8", "'uint8': expected a signed floating format, intN or fixedWqF"},
        {"neutral.mac.sign1", "'sign1': expected a signed floating format"},
        {"neutral.mac.float8_e8m0fnu", "expected a signed floating format"},
        {"neutral.mac.e9m20", "'e9m20': expected at most 16 bits or values that are float32"},
        {"neutral.mac.flaot16", "float16"},
        {"neutral.mac.float16.rnd", "unknown rounding 'rnd'"},
        {"neutral.mac.float16.sr", "expected 1..32 random bits"},
        {"neutral.mac.float16.sr33", "expected 1..32 random bits"},
        {"neutral.mac.float16.sr8z", "sr(8,z)"},
        {"neutral.mac.float16.wrap", "'wrap': expected intN or fixedWqF before it"}}) {
    INFO(name);
    CHECK_THROWS_WITH(find_unit(name), Contains(text));
  }
}

}  // namespace find_test
