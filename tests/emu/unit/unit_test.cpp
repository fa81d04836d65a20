// The unit table: names, documentation, look-up, short forms, and refusal of formats a unit does
// not take.
#include "emu/unit/unit.hpp"

#include <fstream>
#include <set>
#include <sstream>

#include "emu/unit/catalogue/modifiers.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace unit_test {

using namespace numemu;
using namespace numemu::unit;
using Catch::Contains;

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// The unit's row of docs/units.md.
std::string documented(const UnitRow& row) {
  return "| `" + row.name + "`" + (row.alias.empty() ? "" : " `" + row.alias + "`") + " | " +
         row.operand + " | " + row.result + " | " + std::string(to_string(row.grade)) + " | " +
         joined(row.modifiers) + " | " + row.accumulation + " |";
}

}  // namespace

TEST_CASE("unit table: names and aliases are unique and complete", "[fast]") {
  std::set<std::string> names;
  for (const Unit* unit : all_units()) {
    const UnitRow& row = unit->row();
    INFO(row.name);
    CHECK(names.insert(row.name).second);
    CHECK((row.alias.empty() || names.insert(row.alias).second));
    CHECK_FALSE(row.accumulation.empty());
    CHECK_FALSE(row.source.empty());
    CHECK(to_string(row.grade) != "unknown");
    CHECK(letter_of(row.grade) != '?');
    CHECK(&find_unit(row.name) == unit);
    if (!row.alias.empty()) CHECK(&find_unit(row.alias) == unit);
    for (const std::string& modifier : row.modifiers) CHECK(find_modifier(modifier) != nullptr);
  }
}

TEST_CASE("unit table: rows say what their descriptions say", "[fast]") {
  for (const Unit* unit : all_units()) {
    const UnitRow& row = unit->row();
    const UnitDescription* u = unit->description();
    INFO(row.name);
    CHECK((u == nullptr) == (row.grade == Grade::not_reproducible));
    if (u == nullptr) continue;
    CHECK(u->name == row.name);
    CHECK_NOTHROW(check_description(*u));
    CHECK((row.operand == "any") == (u->a == nullptr));
    if (u->a != nullptr) {
      CHECK(unit->accepts_a(*u->a));
      CHECK(unit->accepts_b(*u->b));
      CHECK(row.operand == u->a->name + (u->a == u->b ? "" : " x " + u->b->name));
    }
    if (unit->d_format() != nullptr) {
      CHECK(row.result == unit->d_format()->name);
      CHECK(unit->c_format() != nullptr);
    } else {
      CHECK(row.result == "int" + std::to_string(result_register(*u).bits));
    }
  }
}

TEST_CASE("unit table: every unit stands in docs/units.md as it is", "[fast]") {
  std::ifstream file(NUMEMU_SOURCE "/docs/units.md");
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  for (const Unit* unit : all_units()) {
    INFO(documented(unit->row()));
    CHECK(all.find(documented(unit->row())) != all.npos);
  }
  for (const Modifier& modifier : all_modifiers()) {
    INFO(modifier.name);
    CHECK(all.find("`" + modifier.name + "`") != all.npos);
  }
}

TEST_CASE("unit table: the names that others rely on", "[fast]") {
  for (const char* name :
       {"nvidia.h100.wgmma.e4m3.f32", "nvidia.h100.mma.e4m3xe5m2.f16", "nvidia.a100.mma.tf32.f32",
        "nvidia.b200.tcgen05.e4m3.f32.mx32", "nvidia.b200.tcgen05.e2m1.f32.nv16",
        "nvidia.b200.tcgen05.e2m1.f32.mx32", "nvidia.b200.tcgen05.k32.e2m1.f32.mx32",
        "amd.mi300.mfma.e4m3fnuz.f32", "amd.mi300.mfma.k4.f16.f32", "amd.mi200.mfma_1k.bf16.f32",
        "intel.emr.tdpbf16ps.bf16.f32", "intel.emr.vpdpbusds.u8xs8.s32", "neutral.exact",
        "neutral.f32.sequential", "host.eigen.f32", "neutral.mac.hfp16_e6m9.rne",
        "neutral.mac.int16.wrap", "neutral.mac.int16.saturate"}) {
    INFO(name);
    CHECK(find_unit(name).row().name == name);
  }
  CHECK(find_unit("exact").row().name == "neutral.exact");
  CHECK(find_unit("f32.sequential").row().name == "neutral.f32.sequential");
  CHECK(find_unit("neutral.mac.e5m10.sr8").row().name == "neutral.mac.float16.sr8");
  CHECK(find_unit("ibm.hfp8.chunk64").row().name == "neutral.chunk64.hfp16_e6m9.rne");
  std::set<std::string> chips;
  for (const Unit* unit : all_units()) {
    const std::string& name = unit->row().name;
    const std::size_t first = name.find('.') + 1;
    chips.insert(name.substr(first, name.find('.', first) - first));
  }
  for (const char* chip : {"v100", "t4", "a100", "a2", "ada", "l40s", "h100", "h200", "b200",
                           "rtxblackwell", "mi100", "mi200", "mi300", "emr", "neoverse"})
    CHECK(chips.count(chip) == 1);
}

TEST_CASE("unit: an unknown name offers the nearest", "[fast]") {
  CHECK_THROWS_WITH(find_unit("f32.sequentail"),
                    Contains("f32.sequentail") && Contains("f32.sequential"));
  CHECK_THROWS_WITH(find_unit("neutral.exakt"), Contains("neutral.exact"));
  CHECK_THROWS_WITH(find_unit("nvidia.h100.wgmma.e4m3.f33"),
                    Contains("nvidia.h100.wgmma.e4m3.f32"));
  CHECK_THROWS_AS(find_unit(""), Error);
}

TEST_CASE("unit: an unambiguous short form is accepted", "[fast]") {
  CHECK(find_unit("eigen.f32").row().name == "host.eigen.f32");
  CHECK(find_unit("h100.wgmma.e4m3.f32").row().name == "nvidia.h100.wgmma.e4m3.f32");
  CHECK(find_unit("tdpbf16ps.bf16.f32").row().name == "intel.emr.tdpbf16ps.bf16.f32");
  CHECK(find_unit("tcgen05.e2m1.f32.mx32").row().name == "nvidia.b200.tcgen05.e2m1.f32.mx32");
  CHECK(find_unit("tcgen05.k32.e2m1.f32.mx32").row().name ==
        "nvidia.b200.tcgen05.k32.e2m1.f32.mx32");
  CHECK(find_unit("v100.mma.f16.f32.leeds").row().name == "nvidia.v100.mma.f16.f32.leeds");
  CHECK_THROWS_WITH(find_unit("wgmma.e4m3.f32"), Contains("short for several") &&
                                                     Contains("nvidia.h100.wgmma.e4m3.f32") &&
                                                     Contains("nvidia.h200.wgmma.e4m3.f32"));
  CHECK_THROWS_AS(find_unit("wgmma.e4m3.f32.sp24"), Error);
  CHECK_THROWS_AS(find_unit("f32"), Error);
  CHECK_THROWS_AS(find_unit(".f32"), Error);
  CHECK_THROWS_AS(find_unit("100.wgmma.e4m3.f32"), Error);
}

TEST_CASE("unit: made on demand once, with the name it is known by", "[fast]") {
  const Unit& modified = find_unit("nvidia.a100.mma.f16.f32.leeds");
  CHECK(&find_unit("a100.mma.f16.f32.leeds") == &modified);
  CHECK(modified.row().name == "nvidia.a100.mma.f16.f32.leeds");
  CHECK(modified.row().grade == Grade::leeds);
  CHECK(modified.row().modifiers.empty());
  CHECK(&find_unit("neutral.mac.e5m10") == &find_unit("neutral.mac.float16.rne"));
}

TEST_CASE("unit: formats it does not take are refused, naming both and the rule", "[fast]") {
  float d = 0;
  const float x = 1;
  const Gather gather = Gather::matrix(1, 1);
  for (const auto& [unit, format] : {std::pair{"f32.sequential", "float64"},
                                     {"f32.sequential", "e9m3"},
                                     {"host.eigen.f32", "binary15p3se"},
                                     {"exact", "float64"},
                                     {"exact", "e5m20"},
                                     {"neutral.mac.float16", "float64"}}) {
    Gemm g{1, 1, 1, {&find_format(format), &x, &gather}, {&find_format("float32"), &x, &gather}};
    g.d = &d;
    const Unit& row = find_unit(unit);
    INFO(unit << " " << format);
    const std::string name = find_format(format).name, rule = row.operand_rule();
    CHECK_THROWS_WITH(row.multiply(g),
                      Contains(row.row().name) && Contains(name) && Contains(rule));
    CHECK_THROWS_AS(row.multiply_reference(g), Error);
    std::swap(g.a, g.b);
    CHECK_THROWS_WITH(row.multiply(g),
                      Contains(row.row().name) && Contains(name) && Contains(rule));
  }
  CHECK_NOTHROW(find_unit("exact").require_operand(find_format("binary15p3se")));
  CHECK_NOTHROW(find_unit("exact").require_operand(find_format("tfloat32")));
  const Unit& mixed = find_unit("nvidia.ada.mma.e4m3xe5m2.f32");
  const Format &e4m3 = find_format("e4m3fn"), &e5m2 = find_format("e5m2");
  CHECK_NOTHROW(mixed.require_operands(e4m3, e5m2));
  CHECK_THROWS_WITH(mixed.require_operands(e5m2, e5m2), Contains("float8_e5m2"));
  CHECK_THROWS_WITH(mixed.require_operands(e4m3, e4m3), Contains("float8_e4m3fn"));
}

}  // namespace unit_test
