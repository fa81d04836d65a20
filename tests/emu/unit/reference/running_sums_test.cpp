// Sums on the way of every unit: all products join once, the last sum is the result.
#include "emu/unit/reference/running_sums.hpp"

#include <algorithm>

#include "emu/unit/reference/divergence.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"
#include "tests/emu/unit/reference/dot_case.hpp"

namespace running_sums_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

TEST_CASE("running sums: of every unit they have every product once and end in the result",
          "[fast]") {
  std::int64_t units = 0;
  for (const Unit* unit : all_units()) {
    const UnitDescription* u = unit->description();
    if (u == nullptr) continue;
    INFO(unit->row().name);
    AnyProduct product(*unit, 1, 1, 64, Data::moderate, 3);
    Trace trace;
    ReferenceDot(*u, product.gemm()).code(0, 0, &trace);
    const RunningSums sums = running_sums(*u, trace);
    REQUIRE_FALSE(sums.sums.empty());
    std::vector<std::int64_t> ks = sums.order;
    std::sort(ks.begin(), ks.end());
    CHECK(std::unique(ks.begin(), ks.end()) == ks.end());
    CHECK(static_cast<std::int64_t>(ks.size()) ==
          (u->sparsity.dense() ? 64 : 64 / u->sparsity.group * u->sparsity.kept));
    const RunningSum& last = sums.sums.back();
    CHECK(last.products == static_cast<std::int64_t>(ks.size()));
    CHECK(last.with_c);
    std::uint64_t code = trace.result;
    if (unit->d_format() != nullptr) code <<= unit->d_format()->container_shift;
    CHECK(same_number(last.held, read_element(unit->d_format(), result_register(*u), &code, 0)));
    std::int64_t before = -1;
    for (const RunningSum& s : sums.sums) {
      CHECK(s.products >= before);
      before = s.products;
    }
    ++units;
  }
  CHECK(units > 200);
}

TEST_CASE("running sums: chunks and chains count from where they join", "[fast]") {
  UnitDescription chunks = unit_of(CoreKind::chain, "float32");
  chunks.chain.chunk = 2;
  Trace trace;
  products_of(chunks, {1, 2, 4, 8}, 16).code(&trace);
  RunningSums sums = running_sums(chunks, trace);
  // Chunk 0 alone after each product, then with C, then with chunk 1.
  REQUIRE(sums.sums.size() == 5);
  CHECK(to_double(sums.sums[2].held) == 3);
  CHECK_FALSE(sums.sums[2].with_c);
  CHECK(to_double(sums.sums[3].held) == 19);
  CHECK(sums.sums[3].products == 2);
  CHECK(to_double(sums.sums[4].held) == 31);
  UnitDescription chains = unit_of(CoreKind::chain, "float32");
  chains.chain.chains = 2;
  chains.c_entry = CEntry::after_rounding;
  trace = {};
  products_of(chains, {1, 2, 4, 8}, 16).code(&trace);
  sums = running_sums(chains, trace);
  CHECK(sums.order == std::vector<std::int64_t>{0, 2, 1, 3});
  CHECK(to_double(sums.sums.back().held) == 31);
  CHECK(sums.sums.back().products == 4);
}

}  // namespace running_sums_test
