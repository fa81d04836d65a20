// Where two units part: by planted differences in order, kept bits, rounding, C and result.
#include "emu/unit/reference/divergence.hpp"

#include <functional>
#include <vector>

#include "formats/containers.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"
#include "tests/emu/unit/reference/dot_case.hpp"

namespace divergence_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;
using Catch::Contains;

namespace {

UnitDescription steps_of(int group, int fraction_bits) {
  UnitDescription u = unit_of(CoreKind::fused, "float32");
  u.a = u.b = &find_format("float16");
  u.k = u.group = group;
  u.alignment.fraction_bits = fraction_bits;
  u.accumulator.rounding = {.mode = RoundingMode::rtz};
  return u;
}

/// Both on the same products times one, and C.
Divergence parted(const UnitDescription& first, const UnitDescription& second,
                  const std::vector<double>& products, double c = 0) {
  const auto k = static_cast<std::int64_t>(products.size());
  const Gather rows = Gather::matrix(1, k);
  const auto a = stored(codes_of(*first.a, products), container_bytes(*first.a));
  const auto b = stored(codes_of(*first.b, std::vector<double>(products.size(), 1)),
                        container_bytes(*first.b));
  const auto cs = stored({code_of_number(*first.accumulator.format, c)}, 4);
  Gemm g;
  g.m = g.n = 1;
  g.k = k;
  g.a = {first.a, a.data(), &rows};
  g.b = {first.b, b.data(), &rows};
  g.c = c == 0 ? nullptr : cs.data();
  return find_divergence(first, second, g, 0, 0);
}

}  // namespace

TEST_CASE("divergence: the step in which a bit is lost", "[fast]") {
  // 2^-12 beside 2 is cut at F = 12, not at F = 25; k = 8 is in the third step of four.
  std::vector<double> products(16, 1);
  products[8] = 0x1p-12;
  const Divergence d = parted(steps_of(4, 25), steps_of(4, 12), products);
  REQUIRE(d.differs);
  CHECK(d.agreed == 8);
  CHECK(d.products == 12);
  CHECK(d.first.begin == 2);
  CHECK(d.first.end == 3);
  CHECK(divergence_line(d) == "step 2, k 8..11: 0x1.6002p+3 (11.0002441) against 0x1.6p+3 (11)");
}

TEST_CASE("divergence: steps of other sizes are compared where they meet", "[fast]") {
  std::vector<double> products(16, 1);
  products[5] = 0x1p-22;
  UnitDescription chain = unit_of(CoreKind::chain, "float32");
  chain.a = chain.b = &find_format("float16");
  const Divergence d = parted(chain, steps_of(8, 25), products);
  // The chain rounds 5 + 2^-22 to 5, the fused step 8 + 2^-22 to 8.
  CHECK_FALSE(d.differs);
  CHECK(divergence_line(d) == "no difference");
  products[5] = -0x1p-22;
  const Divergence e = parted(chain, steps_of(8, 25), products);
  REQUIRE(e.differs);
  CHECK(e.products == 8);
  CHECK(e.first.begin_term == 0);
  CHECK(e.first.end_term == std::optional<std::size_t>(9));  // the start and eight products
  CHECK(divergence_line(e) ==
        "k 7 of chain, k 0..15: 0x1.cp+2 (7) against 0x1.bffffep+2 (6.99999952) in step 0, k 0..7");
}

TEST_CASE("divergence: C at the end parts where C is in, without C nowhere", "[fast]") {
  UnitDescription late = steps_of(4, 25);
  late.c_entry = CEntry::after_rounding;
  const std::vector<double> products(4, 0x1.8p-10);
  CHECK_FALSE(parted(steps_of(4, 25), late, products).differs);
  const Divergence d = parted(steps_of(4, 25), late, products, 65536);
  REQUIRE(d.differs);
  CHECK(d.products == 4);
  CHECK(d.agreed == 0);
}

TEST_CASE("divergence: results that round one sum differently", "[fast]") {
  UnitDescription nan = steps_of(4, 25);
  nan.nan_code = 0x7fffffff;
  // NaN is one number: codes of NaN are no divergence.
  CHECK_FALSE(
      parted(steps_of(4, 25), nan,
             {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()})
          .differs);
}

TEST_CASE("divergence: a unit never parts from itself; where results differ a step is named",
          "[fast]") {
  const Unit& fast = find_unit("nvidia.h100.wgmma.e4m3.f32");
  const Unit& lowered = find_unit("nvidia.h100.mma.e4m3.f32");
  std::int64_t named = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const AnyProduct product(fast, 1, 1, 96, Data::moderate, seed);
    const Gemm& g = product.gemm();
    CHECK_FALSE(find_divergence(*fast.description(), *fast.description(), g, 0, 0).differs);
    const Divergence d = find_divergence(*fast.description(), *lowered.description(), g, 0, 0);
    const bool same = same_number(d.first.result, d.second.result);
    if (!same) CHECK(d.differs);
    named += d.in_sum;
    CHECK(d.first.begin <= d.first.end);
    CHECK(d.agreed <= d.products);
  }
  CHECK(named > 25);
}

}  // namespace divergence_test
