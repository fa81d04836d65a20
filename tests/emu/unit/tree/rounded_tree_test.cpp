// Trees of any group, leaf and register in float64 lanes against the reference, on every target.
#include "emu/unit/tree/rounded_tree.hpp"

#include <hwy/targets.h>

#include <string>

#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"
#include "tests/emu/unit/by_path.hpp"

namespace numemu::unit::test::rounded_tree_test {
namespace {

struct TreeCase {
  std::string format = "float32";  ///< of the register
  std::string rounding = "rne";
  int k = 8, group = 8, leaf = 1;
  bool round_products = true, plus_zero = false;
  std::string result = "float32";  ///< C and D; empty: the register's
};

UnitDescription tree_of(const TreeCase& t) {
  UnitDescription u;
  u.name = "test";
  u.core = CoreKind::tree;
  u.k = t.k;
  u.group = t.group;
  u.accumulator.format = &find_format(t.format);
  u.accumulator.rounding = parse_rounding(t.rounding);
  if (!t.result.empty()) u.c = u.d = &find_format(t.result);
  u.tree.leaf = t.leaf;
  u.tree.round_products = t.round_products;
  u.tree.plus_zero_products = t.plus_zero;
  u.nan_code = (u.d != nullptr ? u.d : u.accumulator.format)->nan_code();
  return u;
}

/// Elements that differ from the reference for every kind of data; `declined` counts products.
struct Found {
  std::int64_t different = 0, declined = 0;
};
Found found_in(const UnitDescription& u, const std::string& operands, std::uint64_t seed) {
  constexpr std::int64_t kShapes[][3] = {{5, 7, 1}, {3, 37, 19}, {19, 2, 45}, {9, 33, 72}};
  Found found;
  const auto unit = make_unit(u);
  for (const Data data : kAllData) {
    const auto& s = kShapes[++seed % 4];
    AnyProduct p(*unit, s[0], s[1], s[2], data, seed, seed % 3 != 0, operands);
    if (!by_path(multiply_rounded_tree, u, p.gemm())) {
      ++found.declined;
      continue;
    }
    found.different += p.mismatches();
  }
  return found;
}

const std::vector<TreeCase>& tree_cases() {
  static const std::vector<TreeCase> all = {
      {},
      {.k = 16, .group = 16},
      {.k = 0, .group = 3},
      {.k = 0, .group = 0},
      {.k = 12, .group = 6, .plus_zero = true},
      {.k = 16, .group = 16, .leaf = 2},
      {.k = 16, .group = 8, .leaf = 4},
      {.k = 12, .group = 12, .leaf = 4},
      {.k = 4, .group = 4, .round_products = false},
      {.k = 5, .group = 5, .round_products = false},
      {.k = 1, .group = 1},
      {.format = "e8m13"},
      {.format = "e8m13", .leaf = 2},
      {.format = "e5m10", .result = ""},
      {.format = "bfloat16", .k = 16, .group = 16, .result = ""},
      {.format = "hfp16_e6m9", .leaf = 8},
      {.format = "float8_e4m3fnuz", .k = 4, .group = 4, .result = ""},
  };
  return all;
}

}  // namespace

namespace {

/// Of every register and rounding with both overflows, every `stride`th.
void check_registers(std::uint64_t stride) {
  std::uint64_t seed = 0, number = 0;
  for (TreeCase t : tree_cases()) {
    for (const char* rounding : {"rne", "rna", "rtz", "rup", "rdn", "rodd"}) {
      t.rounding = rounding;
      for (const Overflow overflow : {Overflow::ieee, Overflow::saturate}) {
        seed += 10;
        if (number++ % stride != 0) continue;
        UnitDescription u = tree_of(t);
        u.accumulator.overflow = overflow;
        INFO(t.format << " " << rounding << " group " << t.group << " leaf " << t.leaf << " "
                      << to_string(overflow));
        const Found found = found_in(u, seed % 20 == 0 ? "float8_e5m2" : "float16", seed);
        CHECK(found.different == 0);
        CHECK(found.declined == 0);
      }
    }
  }
}

}  // namespace

TEST_CASE("rounded trees: registers and roundings give the reference's bits", "[fast]") {
  // 12 of each register: 5 is prime to them, so that each register has others.
  check_registers(5);
}

TEST_CASE("rounded trees: every register and rounding gives the reference's bits", "[slow]") {
  check_registers(1);
}

TEST_CASE("rounded trees: overflow to infinity under every rounding", "[fast]") {
  for (const char* rounding : {"rtz", "rne", "rodd", "rdn"}) {
    UnitDescription u = tree_of({.format = "float16", .rounding = rounding});
    u.accumulator.overflow_to_infinity = true;
    const Found found = found_in(u, "float16", 5);
    INFO(rounding);
    CHECK(found.different == 0);
    CHECK(found.declined == 0);
  }
}

TEST_CASE("rounded trees: every target gives the same bits", "[fast]") {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    INFO(hwy::TargetName(target));
    for (const TreeCase& t : tree_cases())
      CHECK(found_in(tree_of(t), "bfloat16", 3).different == 0);
    CHECK(found_in(tree_of({.rounding = "rtz", .leaf = 4}), "float16", 8).different == 0);
    CHECK(found_in(tree_of({.format = "e8m13", .rounding = "rdn"}), "float16", 8).different == 0);
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST_CASE("rounded trees: declines what lanes do not hold", "[fast]") {
  // 2^-133 * 2^-133 beside 2^127 * 2^127.
  CHECK(found_in(tree_of({.leaf = 4}), "bfloat16", 3).declined > 0);
  CHECK(found_in(tree_of({.k = 8192, .group = 8192}), "float16", 3).declined == 6);
  UnitDescription u = tree_of({});
  u.subnormals.flush_results = true;
  CHECK(found_in(u, "float16", 3).declined == 6);
}

}  // namespace numemu::unit::test::rounded_tree_test
