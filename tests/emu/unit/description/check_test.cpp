// Refusals of names, sizes, formats, registers and numbers; and every field is used or keeps its
// default.
#include <map>
#include <set>
#include <string>

#include "emu/unit/description/fields.hpp"
#include "tests/emu/unit/description/refusals.hpp"

namespace check_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

/// Values other than the defaults, for the sweep over all fields.
void differ(std::string& x) { x = "other"; }
void differ(const Format*& x) {
  x = x == format("float64") ? format("float16") : format("float64");
}
void differ(int& x) { x += 1; }
void differ(bool& x) { x = !x; }
void differ(std::optional<int>& x) { x = 5; }
void differ(Rounding& x) { x = mode(RoundingMode::rup); }
void differ(RoundingMode& x) { x = RoundingMode::rne; }
void differ(Overflow& x) { x = Overflow::saturate; }
void differ(std::uint64_t& x) { x = 0x7fffffff; }
void differ(Sparsity& x) { x = {2, 4}; }
template <Named T>
void differ(T& x) {
  x = static_cast<T>(1);
}

}  // namespace

TEST_CASE("description: one unit of each core is accepted, unnamed ones too", "[fast]") {
  for (const CoreKind core : kAllCores) {
    CHECK_NOTHROW(check_description(sample(core)));
    accepts(core, [](auto& u) { u.name.clear(); });
  }
  UnitDescription u = sample(CoreKind::exact);
  u.name.clear();
  u.k = -1;
  CHECK_THROWS_WITH(check_description(u), "unit: k: expected 0 to 1048576");
}

TEST_CASE("description: a field is used by the core or must keep its default", "[fast]") {
  // What a float32 unit of the core may have at the values of differ(), nothing else changed.
  const std::set<std::string> common = {"name", "nan_code", "sparsity"};
  const std::set<std::string> floating = {"accumulator.rounding",
                                          "accumulator.overflow",
                                          "accumulator.overflow_to_infinity",
                                          "subnormals.flush_inputs",
                                          "subnormals.flush_c",
                                          "subnormals.flush_results",
                                          "d"};
  const std::map<CoreKind, std::set<std::string>> own = {
      {CoreKind::fused,
       {"a", "b", "order", "c_entry", "alignment.fraction_bits", "alignment.rounding",
        "alignment.zero_exponent", "alignment.zero_c_counts", "alignment.floor",
        "products_overflow"}},
      {CoreKind::chain,
       {"a", "b", "k", "group", "chain.chunk", "chain.fused", "chain.kahan", "nan",
        "input.format"}},
      {CoreKind::tree,
       {"a", "b", "order", "tree.leaf", "tree.round_products", "tree.plus_zero_products",
        "input.format"}},
      {CoreKind::exact, {"a", "b", "k", "group", "input.format"}},
      {CoreKind::integer, {"k", "group", "accumulator.integer_overflow", "accumulator.bits"}},
      {CoreKind::xnor,
       {"k", "group", "accumulator.integer_overflow", "accumulator.bits", "outer.every"}},
      {CoreKind::table,
       {"k", "group", "accumulator.integer_overflow", "accumulator.bits", "outer.every"}}};
  for (const auto& [core, keys] : own) {
    UnitDescription u = sample(core);
    for_each_field(u, [&, &core = core, &keys = keys](const std::string& key, auto& field) {
      if (key == "core") return;
      auto kept = field;
      differ(field);
      // 33 bits are too many for any core.
      if (key == "accumulator.bits") u.accumulator.bits = 31;
      const std::uint64_t nan_code = u.nan_code;
      if (key == "d" && u.accumulator.format != nullptr) u.nan_code = u.d->nan_code();
      const bool integer = u.accumulator.format == nullptr;
      const bool allowed = keys.contains(key) || (!integer && floating.contains(key)) ||
                           (common.contains(key) && !(integer && key == "nan_code"));
      INFO(text_of(core) << " " << key);
      std::string message;
      try {
        check_description(u);
      } catch (const Error& error) {
        message = error.what();
      }
      CHECK(message.empty() == allowed);
      u.nan_code = nan_code;
      field = kept;
    });
  }
}

TEST_CASE("description: names and sizes", "[fast]") {
  UnitDescription u = sample(CoreKind::chain);
  u.name = "two\nlines";
  CHECK_THROWS_WITH(check_description(u), "unit: name: expected printable ASCII without spaces");
  refuses(CoreKind::fused, "group: expected 0 to 1048576", [](auto& v) { v.group = -4; });
  refuses(CoreKind::fused, "k: expected 0 to 1048576", [](auto& v) { v.k = 1 << 21; });
  refuses(CoreKind::fused, "group: expected a divisor of k, 32", [](auto& v) { v.group = 12; });
  refuses(CoreKind::chain, "group: expected 0 or 1: a step of core chain is one product",
          [](auto& v) { v.group = 4; });
}

TEST_CASE("description: two levels of accumulation", "[fast]") {
  const auto outer = [](auto& u, int every) {
    u.outer = {every, {.format = u.accumulator.format}};
  };
  for (const CoreKind core : kAllCores) accepts(core, [&](auto& u) { outer(u, 64); });
  accepts(CoreKind::fused, [&](auto& u) {
    outer(u, 128);
    u.accumulator.format = format("e8m13");  // which needs no container
  });
  refuses(CoreKind::fused, "outer.every: expected a multiple of an instruction, 32 products",
          [&](auto& u) { outer(u, 48); });
  refuses(CoreKind::chain, "outer.every: expected 0 to 1048576", [&](auto& u) { outer(u, -1); });
  refuses(CoreKind::chain, "outer.format: expected together with outer.every",
          [&](auto& u) { outer(u, 0); });
  refuses(CoreKind::chain, "outer.format: expected a floating format as accumulator.format",
          [](auto& u) { u.outer.every = 16; });
  refuses(CoreKind::integer, "outer.format: expected null (two's complement) as accumulator.format",
          [](auto& u) {
            u.outer = {64, {.format = format("float32")}};
          });
  refuses(CoreKind::chain, "outer.format: expected a signed floating format with a zero, or null",
          [](auto& u) {
            u.outer = {64, {.format = format("float8_e8m0fnu")}};
          });
  refuses(CoreKind::chain, "d: expected a format that holds every value of the register's float64",
          [](auto& u) {
            u.outer = {64, {.format = format("float64")}};
          });
  refuses(CoreKind::integer,
          "outer.integer_overflow: expected wrap or saturate_once: the outer register is written "
          "once per sum",
          [](auto& u) {
            u.outer = {64, {.integer = IntegerOverflow::saturate_each}};
          });
  refuses(CoreKind::chain, "chain.chunk: expected 0 with outer.every: a sum is a chunk",
          [&](auto& u) {
            outer(u, 64);
            u.chain.chunk = 16;
          });
  refuses(CoreKind::chain, "nan: expected canonical with outer.every", [&](auto& u) {
    outer(u, 64);
    u.nan = NanRule::x86;
  });
  refuses(CoreKind::chain, "outer.rounding: expected a rounding without random bits", [&](auto& u) {
    outer(u, 64);
    u.outer.accumulator.rounding = random_bits(8);
  });
}

TEST_CASE("description: operands", "[fast]") {
  refuses(CoreKind::fused, "a: expected a format with core fused", [](auto& u) { u.a = nullptr; });
  refuses(CoreKind::fused, "b: expected a floating format with core fused",
          [](auto& u) { u.b = format("int8"); });
  refuses(CoreKind::chain, "b: expected a format of at most 16 bits, tfloat32, float32 or float64",
          [](auto& u) { u.b = format("e8m13"); });
  refuses(CoreKind::integer, "b: expected an integer format or sign1 with core integer",
          [](auto& u) { u.b = format("float16"); });
  refuses(CoreKind::xnor, "a: expected sign1 with core xnor",
          [](auto& u) { u.a = format("int2"); });
  refuses(CoreKind::table, "b: expected a format with core table", [](auto& u) { u.b = nullptr; });
  const std::string wide =
      "b: expected operands whose significands have at most 64 bits together where products are "
      "not rounded";
  const Change doubles = [](auto& u) { u.a = u.b = format("float64"); };
  refuses(CoreKind::fused, wide, doubles);
  refuses(CoreKind::tree, wide, [&](auto& u) {
    doubles(u);
    u.tree.round_products = false;
  });
  accepts(CoreKind::tree, doubles);
  accepts(CoreKind::exact, doubles);
  accepts(CoreKind::integer, [](auto& u) { u.a = format("sign1"); });
}

TEST_CASE("description: registers", "[fast]") {
  refuses(CoreKind::integer,
          "accumulator.format: expected null (two's complement) with core integer",
          [](auto& u) { u.accumulator.format = format("float32"); });
  for (const char* name : {"int8", "float8_e8m0fnu", "e5m2+unsigned"}) {
    refuses(CoreKind::chain,
            "accumulator.format: expected a signed floating format with a zero, or null",
            [&](auto& u) { u.accumulator.format = format(name); });
  }
  const auto fixed = [](UnitDescription& u) {
    u.c = u.d = u.accumulator.format = nullptr;
    u.nan_code = 0;
  };
  accepts(CoreKind::chain, fixed);
  for (const int bits : {1, 33}) {
    refuses(CoreKind::chain, "accumulator.bits: expected 2 to 32", [&](auto& u) {
      fixed(u);
      u.accumulator.bits = bits;
    });
  }
  refuses(CoreKind::chain, "accumulator.fraction: expected 0 to 64", [&](auto& u) {
    fixed(u);
    u.accumulator.fraction = -1;
  });
  refuses(CoreKind::integer,
          "accumulator.fraction: expected together with core fused, chain, tree or exact",
          [](auto& u) { u.accumulator.fraction = 1; });
  refuses(CoreKind::chain,
          "accumulator.overflow: expected ieee with accumulator.overflow_to_infinity", [](auto& u) {
            u.accumulator.overflow = Overflow::saturate;
            u.accumulator.overflow_to_infinity = true;
          });
  refuses(
      CoreKind::chain,
      "accumulator.overflow_to_infinity: expected together with an IEEE-like accumulator.format",
      [](auto& u) {
        u.accumulator.format = format("float8_e4m3fn");
        u.accumulator.overflow_to_infinity = true;
      });
  refuses(CoreKind::chain,
          "accumulator.integer_overflow: expected together with accumulator.format null",
          [](auto& u) { u.accumulator.integer = IntegerOverflow::saturate_each; });
  refuses(CoreKind::exact,
          "accumulator.integer_overflow: expected wrap or saturate_once: core exact writes its "
          "register once per step",
          [&](auto& u) {
            fixed(u);
            u.accumulator.integer = IntegerOverflow::saturate_each;
          });
}

TEST_CASE("description: C and D", "[fast]") {
  const std::string container =
      "expected a format of at most 16 bits, tfloat32, float32 or float64 (null is the register's "
      "e8m13)";
  const Change narrow = [](auto& u) { u.accumulator.format = format("e8m13"); };
  accepts(CoreKind::fused, narrow);
  refuses(CoreKind::fused, "d: " + container, [&](auto& u) {
    narrow(u);
    u.d = nullptr;
  });
  refuses(CoreKind::fused, "c: " + container, [&](auto& u) {
    narrow(u);
    u.c = nullptr;
  });
  refuses(CoreKind::fused, "d: expected a signed floating format",
          [](auto& u) { u.d = format("int16"); });
  refuses(CoreKind::fused, "d: expected a format that holds every value of the register's float32",
          [](auto& u) { u.d = format("float16"); });
  // The same numbers, but no infinity, and no -0.
  refuses(CoreKind::fused,
          "d: expected a format that holds every value of the register's float8_e4m3", [](auto& u) {
            u.accumulator.format = format("e4m3");
            u.c = u.d = format("e5m3+finite");
          });
  refuses(CoreKind::fused,
          "d: expected a format that holds every value of the register's float6_e2m3fn",
          [](auto& u) {
            u.accumulator.format = format("float6_e2m3fn");
            u.c = u.d = format("float8_e4m3fnuz");
          });
  refuses(CoreKind::fused, "c: expected a format whose values float16 holds: with K = 0, D is C",
          [](auto& u) {
            u.accumulator.format = u.d = format("float16");
            u.nan_code = 0x7e00;
          });
  refuses(CoreKind::integer, "c: expected together with a floating accumulator.format",
          [](auto& u) { u.c = format("float32"); });
}

using Point = Scaling::Point;

TEST_CASE("description: subnormals", "[fast]") {
  CHECK_NOTHROW(check_description(sample(CoreKind::exact)));
  refuses(CoreKind::exact,
          "subnormals.inputs_to_plus_zero: expected together with subnormals.flush_inputs true",
          [](auto& u) { u.subnormals.inputs_to_plus_zero = true; });
  refuses(CoreKind::exact,
          "subnormals.tiny_before_rounding: expected together with subnormals.flush_results true",
          [](auto& u) { u.subnormals.tiny_before_rounding = true; });
  refuses(CoreKind::exact, "subnormals.flush_inputs: expected together with a floating operand",
          [](auto& u) {
            u.a = u.b = format("int8");
            u.subnormals.flush_inputs = true;
          });
  refuses(CoreKind::integer,
          "subnormals.flush_c: expected together with core fused, chain, tree or exact",
          [](auto& u) { u.subnormals.flush_c = true; });
  const std::string tiny =
      "expected rne with subnormals.flush_results (or tiny_before_rounding true): tiny is judged "
      "as if rounded to nearest even";
  const Change toward_zero = [](UnitDescription& u) {
    u.accumulator.rounding = mode(RoundingMode::rtz);
    u.subnormals.flush_results = true;
  };
  refuses(CoreKind::exact, "accumulator.rounding: " + tiny, toward_zero);
  accepts(CoreKind::exact, [&](auto& u) {
    toward_zero(u);
    u.subnormals.tiny_before_rounding = true;
  });
  refuses(CoreKind::chain, "c_rounding: " + tiny, [](auto& u) {
    u.c_entry = CEntry::after_rounding;
    u.c_rounding = mode(RoundingMode::rtz);
    u.subnormals.flush_results = true;
  });
  for (const bool results : {false, true}) {
    refuses(CoreKind::chain,
            std::string("subnormals.flush_") + (results ? "results" : "c") +
                ": expected together with a floating accumulator.format",
            [&](auto& u) {
              u.c = u.d = u.accumulator.format = nullptr;
              u.nan_code = 0;
              (results ? u.subnormals.flush_results : u.subnormals.flush_c) = true;
            });
  }
}

TEST_CASE("description: NaN", "[fast]") {
  const std::string expected = "nan_code: expected a NaN of float32, such as 0x7fc00000";
  for (const std::uint64_t code : {0x7f800000ull, 0x0ull, 0x17fc00000ull, 0x7fc0ull})
    refuses(CoreKind::exact, expected, [&](auto& u) { u.nan_code = code; });
  refuses(CoreKind::integer, "nan_code: expected 0x0 with a two's complement register",
          [](auto& u) { u.nan_code = 1; });
  accepts(CoreKind::integer, [](auto& u) { u.nan_code = UnitDescription{}.nan_code; });
  refuses(CoreKind::exact, "nan_code: expected a code of float6_e2m3fn, which has no NaN",
          [](auto& u) { u.c = u.d = u.accumulator.format = format("float6_e2m3fn"); });
  const Change x86 = [](UnitDescription& u) { u.nan = NanRule::x86; };
  accepts(CoreKind::chain, x86);
  refuses(CoreKind::fused,
          "nan: expected together with core chain and a floating accumulator.format", x86);
  refuses(CoreKind::chain, "a: expected a format whose NaN has a payload with nan x86",
          [&](auto& u) {
            x86(u);
            u.a = format("float8_e4m3fn");
          });
  refuses(CoreKind::chain, "c: expected a format whose NaN has a payload with nan x86",
          [&](auto& u) {
            x86(u);
            u.c = u.accumulator.format = format("dlfloat16");
          });
  accepts(CoreKind::chain, [&](auto& u) {
    x86(u);
    u.a = format("int8");  // never NaN
  });
}

TEST_CASE("description: scales", "[fast]") {
  const Change exponents = [](UnitDescription& u) {
    u.scaling = {.point = Point::exponents, .format = format("float8_e8m0fnu"), .block = 32};
  };
  const Change groups = [](UnitDescription& u) {
    u.a = u.b = format("float4_e2m1fn");
    u.k = u.group = 64;
    u.scaling = {.point = Point::groups, .format = format("float8_e4m3fn"), .block = 16};
  };
  accepts(CoreKind::fused, exponents);
  accepts(CoreKind::exact, exponents);
  const auto changed = [](const Change& first, const Change& second) {
    return [=](UnitDescription& u) {
      first(u);
      second(u);
    };
  };
  refuses(CoreKind::chain, "scaling.point: expected core fused or exact with exponents", exponents);
  refuses(CoreKind::tree, "scaling.point: expected core fused with groups", groups);
  refuses(CoreKind::fused, "scaling.point: expected core exact with after_sum",
          [](auto& u) { u.scaling.point = Point::after_sum; });
  refuses(CoreKind::exact, "scaling.shift: expected 0 to 127",
          [](auto& u) { u.scaling = {.point = Point::after_sum, .shift = 128}; });
  refuses(CoreKind::fused, "scaling.shift: expected together with scaling.point after_sum",
          changed(exponents, [](auto& u) { u.scaling.shift = 1; }));
  refuses(CoreKind::exact,
          "scaling.block: expected together with scaling.point exponents or groups",
          [](auto& u) { u.scaling.block = 32; });
  refuses(CoreKind::exact,
          "scaling.format: expected together with scaling.point exponents or groups",
          [](auto& u) { u.scaling.format = format("float8_e8m0fnu"); });
  for (const Format* wrong :
       {static_cast<const Format*>(nullptr), format("float16"), format("int8")}) {
    refuses(CoreKind::fused,
            "scaling.format: expected a floating format of at most 8 bits, such as float8_e8m0fnu",
            changed(exponents, [&](auto& u) { u.scaling.format = wrong; }));
  }
  refuses(CoreKind::fused,
          "scaling.format: expected powers of two, such as float8_e8m0fnu, with scaling.point "
          "exponents",
          changed(exponents, [](auto& u) { u.scaling.format = format("float8_e4m3fn"); }));
  refuses(CoreKind::fused, "scaling.block: expected 1 to 1048576",
          changed(exponents, [](auto& u) { u.scaling.block = 0; }));
  refuses(CoreKind::fused, "sparsity: expected null with block scales",
          changed(exponents, [](auto& u) {
            u.sparsity = {2, 4};
          }));
  refuses(CoreKind::fused, "scaling.block: expected a multiple of 16 with scaling groups",
          changed(groups, [](auto& u) { u.scaling.block = 24; }));
  refuses(CoreKind::fused, "group: expected a multiple of 16 with scaling groups",
          changed(groups, [](auto& u) { u.group = 8; }));
  refuses(CoreKind::fused, "order: expected ascending with scaling groups",
          changed(groups, [](auto& u) {
            u.group = 32;
            u.order = StepOrder::pairs_mod4;
          }));
  refuses(CoreKind::fused,
          "products_overflow: expected together with core fused, without scaling groups",
          changed(groups, [](auto& u) { u.products_overflow = true; }));
  refuses(CoreKind::fused,
          "b: expected operands whose exact sums of 16 products, times both scales, fit 64 bits",
          changed(groups, [](auto& u) { u.a = u.b = format("float8_e5m2"); }));
}

TEST_CASE("description: sparsity and input rounding", "[fast]") {
  for (const Sparsity s :
       {Sparsity{5, 4}, Sparsity{0, 4}, Sparsity{2, 17}, Sparsity{-1, 4}, Sparsity{2, -4}}) {
    refuses(CoreKind::fused, "sparsity: expected N:M with 1 <= N <= M <= 16",
            [&](auto& u) { u.sparsity = s; });
  }
  refuses(CoreKind::fused, "sparsity: expected 0:0 (dense) or N:M", [](auto& u) {
    u.sparsity = {2, 0};
  });
  refuses(CoreKind::chain, "input.format: expected a signed floating format with a zero",
          [](auto& u) { u.input.format = format("int8"); });
  refuses(CoreKind::chain, "input.format: expected together with floating operands", [](auto& u) {
    u.a = format("int8");
    u.input.format = format("bfloat16");
  });
  accepts(CoreKind::fused, [](auto& u) {
    u.a = u.b = format("float32");
    u.input.format = format("float16");
  });
  accepts(CoreKind::fused, [](auto& u) {
    u.a = u.b = format("float32");
    u.input = {format("tfloat32"), mode(RoundingMode::rtz)};
  });
  refuses(CoreKind::integer,
          "input.format: expected together with core fused, chain, tree or exact",
          [](auto& u) { u.input.format = format("bfloat16"); });
}

}  // namespace check_test
