// The unit table: names, documentation, look-up, and refusal of formats a unit does not take.
#include "emu/unit/unit.hpp"

#include <fstream>
#include <set>
#include <sstream>

#include "formats/error.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::unit;
using Catch::Contains;

TEST_CASE("unit table: names and aliases are unique and complete", "[fast]") {
  std::set<std::string> names;
  for (const Unit* unit : all_units()) {
    const UnitRow& row = unit->row();
    INFO(row.name);
    CHECK(names.insert(row.name).second);
    CHECK((row.alias.empty() || names.insert(row.alias).second));
    CHECK_FALSE(row.accumulation.empty());
    CHECK_FALSE(row.source.empty());
    CHECK((row.operand == "any" || find_format(row.operand).name == row.operand));
    CHECK(find_format(row.result).name == row.result);
    CHECK(to_string(row.grade) != "unknown");
    CHECK(&find_unit(row.name) == unit);
    if (!row.alias.empty()) CHECK(&find_unit(row.alias) == unit);
  }
}

TEST_CASE("unit table: every unit and its alias stand in docs/units.md", "[fast]") {
  std::ifstream file(NUMEMU_SOURCE "/docs/units.md");
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  for (const Unit* unit : all_units()) {
    CHECK_THAT(text.str(), Contains("| `" + unit->row().name + "` |"));
    if (!unit->row().alias.empty()) CHECK_THAT(text.str(), Contains("`" + unit->row().alias + "`"));
  }
}

TEST_CASE("unit: an unknown name offers the nearest", "[fast]") {
  CHECK_THROWS_WITH(find_unit("f32.sequentail"),
                    Contains("f32.sequentail") && Contains("f32.sequential"));
  CHECK_THROWS_WITH(find_unit("neutral.exakt"), Contains("neutral.exact"));
  CHECK_THROWS_AS(find_unit(""), Error);
}

TEST_CASE("unit: an unambiguous short form is accepted", "[fast]") {
  CHECK(find_unit("eigen.f32").row().name == "host.eigen.f32");
  CHECK_THROWS_AS(find_unit("f32"), Error);
  CHECK_THROWS_AS(find_unit(".f32"), Error);
}

TEST_CASE("unit: a format without a container or beyond float32 is refused, naming both",
          "[fast]") {
  float d = 0;
  const float x = 1;
  const Gather gather = Gather::matrix(1, 1);
  for (const auto& [unit, format] : {std::pair{"f32.sequential", "float64"},
                                     {"f32.sequential", "e9m3"},
                                     {"host.eigen.f32", "binary15p3se"},
                                     {"exact", "float64"},
                                     {"exact", "e5m20"}}) {
    Gemm g{1, 1, 1, {&find_format(format), &x, &gather}, {&find_format("float32"), &x, &gather}};
    g.d = &d;
    const Unit& row = find_unit(unit);
    INFO(unit << " " << format);
    CHECK_THROWS_WITH(row.multiply(g),
                      Contains(row.row().name) && Contains(find_format(format).name));
    CHECK_THROWS_AS(row.multiply_reference(g), Error);
    std::swap(g.a, g.b);
    CHECK_THROWS_WITH(row.multiply(g),
                      Contains(row.row().name) && Contains(find_format(format).name));
  }
  CHECK_NOTHROW(find_unit("exact").require_operand(find_format("binary15p3se")));
  CHECK_NOTHROW(find_unit("exact").require_operand(find_format("tfloat32")));
}
