// Modifiers: the table, what each does to a description, and which units take them.
#include "emu/unit/catalogue/modifiers.hpp"

#include <set>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace modifiers_test {

using namespace numemu;
using namespace numemu::unit;
using Catch::Contains;

namespace {

const UnitDescription& of(std::string_view name) { return *find_unit(name).description(); }

}  // namespace

TEST_CASE("modifiers: names are unique and every row can be found", "[fast]") {
  std::set<std::string> names;
  for (const Modifier& modifier : all_modifiers()) {
    INFO(modifier.name);
    CHECK(names.insert(modifier.name).second);
    CHECK(find_modifier(modifier.name) == &modifier);
    CHECK_FALSE(modifier.what.empty());
  }
  for (const char* name : {"leeds", "mmasim", "sp24", "satfinite", "pairwise", "ebf1"})
    CHECK(names.count(name) == 1);
  CHECK(find_modifier("sp42") == nullptr);
  CHECK(find_modifier("") == nullptr);
}

TEST_CASE("modifiers: every modifier of every unit gives a legal description", "[fast]") {
  for (const Unit* unit : all_units()) {
    const auto variants = with_modifiers(*unit);
    CHECK(variants.size() == unit->row().modifiers.size() + 1);
    CHECK(variants[0] == unit);
    for (std::size_t i = 1; i < variants.size(); ++i) {
      const std::string& modifier = unit->row().modifiers[i - 1];
      INFO(unit->row().name << " " << modifier);
      CHECK(variants[i]->row().name == unit->row().name + "." + modifier);
      CHECK(variants[i]->row().grade == find_modifier(modifier)->grade);
      CHECK_NOTHROW(check_description(*variants[i]->description()));
    }
  }
}

TEST_CASE("modifiers: the floors of NVIDIA's units, of leeds and of mmasim", "[fast]") {
  // emin of the result - 5 - (F - 23): Hopper -133, Ampere -132; float16 -21, -20 and V100 -19.
  for (const char* modifier : {"", ".leeds"}) {
    const auto floor = [&](const std::string& name) {
      return of("nvidia." + name + modifier).alignment.floor;
    };
    CHECK(floor("h100.mma.bf16.f32") == -133);
    CHECK(floor("h100.wgmma.tf32.f32") == -133);
    CHECK(floor("b200.tcgen05.f16.f32") == -133);
    CHECK(floor("a100.mma.f16.f32") == -132);
    CHECK(floor("ada.mma.tf32.f32") == -132);
    CHECK_FALSE(floor("v100.mma.f16.f32"));
    CHECK(floor("v100.mma.f16.f16") == -19);
    CHECK(floor("h100.mma.f16.f16") == -21);
    CHECK(floor("a100.mma.f16.f16") == -20);
    const bool leeds = modifier[0] != 0;
    CHECK(of(std::string("nvidia.h100.mma.bf16.f32") + modifier).alignment.zero_exponent ==
          (leeds ? std::nullopt : std::optional(-126)));
    CHECK(of(std::string("nvidia.h100.mma.bf16.f32") + modifier).alignment.zero_c_counts == leeds);
  }
  for (const char* name : {"nvidia.h100.mma.bf16.f32.mmasim", "nvidia.v100.mma.f16.f16.mmasim",
                           "nvidia.h100.wgmma.e4m3.f32", "nvidia.ada.mma.e4m3.f16",
                           "nvidia.b200.tcgen05.e4m3.f32.mx32"}) {
    const Alignment& al = of(name).alignment;
    INFO(name);
    CHECK(al.floor == -126);
    CHECK(al.zero_exponent == -126);
    CHECK(al.zero_c_counts);
  }
  CHECK_THROWS_WITH(find_unit("nvidia.h100.mma.bf16.f32.leeds.mmasim"),
                    Contains("expected one of leeds and mmasim"));
}

TEST_CASE("modifiers: sp24 is the pattern of the operands' width in the machine", "[fast]") {
  const auto pattern = [](const std::string& name) {
    const Sparsity& s = of(name + ".sp24").sparsity;
    return std::pair{s.kept, s.group};
  };
  CHECK(pattern("nvidia.a100.mma.f16.f32") == std::pair{2, 4});
  CHECK(pattern("nvidia.a100.mma.s8.s32") == std::pair{2, 4});
  CHECK(pattern("nvidia.h100.wgmma.e4m3.f32") == std::pair{2, 4});
  CHECK(pattern("nvidia.a100.mma.tf32.f32") == std::pair{1, 2});
  CHECK(pattern("nvidia.a100.mma.s4.s32") == std::pair{4, 8});
  // FP4 beside FP8 stands in 8-bit containers: 2:4 whichever operand it is.
  CHECK(pattern("nvidia.b200.tcgen05.e4m3xe2m1.f32") == std::pair{2, 4});
  CHECK(pattern("nvidia.b200.tcgen05.e2m1xe4m3.f32") == std::pair{2, 4});
}

TEST_CASE("modifiers: satfinite, pairwise and ebf1", "[fast]") {
  CHECK(of("nvidia.a100.mma.s8.s32").accumulator.integer == IntegerOverflow::wrap);
  CHECK(of("nvidia.a100.mma.s8.s32.satfinite").accumulator.integer ==
        IntegerOverflow::saturate_once);
  CHECK(of("amd.mi100.mfma.f16.f32").core == CoreKind::exact);
  CHECK(of("amd.mi100.mfma.f16.f32.pairwise").core == CoreKind::tree);
  CHECK(of("amd.mi100.mfma.f16.f32.pairwise").group == 4);
  CHECK(of("arm.neoverse.bfdot.bf16.f32").accumulator.rounding.mode == RoundingMode::rodd);
  CHECK(of("arm.neoverse.bfdot.bf16.f32").subnormals.flush_results);
  const UnitDescription& extended = of("arm.neoverse.bfdot.bf16.f32.ebf1");
  CHECK(extended.accumulator.rounding == Rounding{});
  CHECK(extended.tree.leaf == 2);
  CHECK_FALSE(extended.subnormals.flush_results);
}

TEST_CASE("modifiers: those that a unit does not take are refused", "[fast]") {
  CHECK_THROWS_WITH(find_unit("nvidia.a100.mma.f16.f32.pairwise"),
                    Contains("nvidia.a100.mma.f16.f32 has no modifier 'pairwise'") &&
                        Contains("leeds, mmasim, sp24"));
  CHECK_THROWS_WITH(find_unit("host.eigen.f32.leeds"), Contains("it has none"));
  CHECK_THROWS_AS(find_unit("neutral.exact.sp24"), Error);
}

TEST_CASE("modifiers: two of them are one unit in either order, with the weaker evidence",
          "[fast]") {
  const std::string base = "nvidia.a100.mma.f16.f32";
  CHECK_THROWS_AS(find_unit(base + ".leeds.leeds"), Error);
  const Unit& both = find_unit(base + ".leeds.sp24");
  CHECK(both.row().grade == Grade::modelled);
  CHECK_FALSE(both.description()->sparsity.dense());
  CHECK_FALSE(both.description()->alignment.zero_exponent);
  try {
    CHECK(find_unit(base + ".sp24.leeds").row().grade == Grade::modelled);
  } catch (const Error&) {
    // One order only is as good.
  }
  CHECK(find_unit("a100.mma.f16.f32.leeds").row().name == base + ".leeds");
}

}  // namespace modifiers_test
