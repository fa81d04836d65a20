// Orders of sums: units of known orders answer, the tree comes back.
#include "emu/oracle/identify/summation_tree.hpp"

#include "emu/unit/unit.hpp"
#include "tests/catch.hpp"

namespace summation_tree_test {

using namespace numemu;
using namespace numemu::oracle;

TEST_CASE("summation tree: the order of known units is read back", "[fast]") {
  struct Example {
    const char *unit, *words, *tree;
  };
  const Example examples[] = {
      {"neutral.f32.sequential", "one product after the other, k ascending", "(0 1 .. 31)"},
      {"neutral.chunk8.float32",
       "blocks of 8 products, one after the other; inside: one product after the other, k "
       "ascending",
       "((((0 1 .. 7) (8 9 .. 15)) (16 17 .. 23)) (24 25 .. 31))"},
      {"intel.emr.tdpbf16ps.bf16.f32", "2 chains over k mod 2, then their sums",
       "((0 2 .. 30) (1 3 .. 31))"},
      {"nvidia.h100.mma.f16.f32", "16 products at once with the sum of those before, k ascending",
       "{{0 1 .. 15} 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31}"},
      {"nvidia.h100.wgmma.e4m3.f32", "all products at once", "{0 1 .. 31}"},
      {"nvidia.h100.mma.e4m3.f32", "a tree of its own",
       "({0 1 4 5 8 9 12 13 16 17 20 21 24 25 28 29} {2 3 6 7 10 11 14 15 18 19 22 23 26 27 30 "
       "31})"},
  };
  for (const Example& example : examples) {
    INFO(example.unit);
    const unit::UnitDescription& u = *unit::find_unit(example.unit).description();
    const Ports ports = ports_of(u, 32);
    const auto tree = read_summation_tree(ports, [&](const Dot& dot) {
      return evaluate(u, ports, {&dot, 1}).front();
    });
    REQUIRE(tree);
    CHECK(order_words(*tree) == example.words);
    CHECK(to_string(*tree) == example.tree);
  }
}

TEST_CASE("summation tree: an exact sum and answers at random have none", "[fast]") {
  const unit::UnitDescription& u = *unit::find_unit("neutral.exact").description();
  const Ports ports = ports_of(u, 8);
  CHECK_FALSE(read_summation_tree(ports, [&](const Dot& dot) {
    return evaluate(u, ports, {&dot, 1}).front();
  }));
  std::uint64_t next = 0;
  CHECK_FALSE(
      read_summation_tree(ports, [&](const Dot&) { return ++next * 0x12345 % 0x7f800000; }));
}

}  // namespace summation_tree_test
