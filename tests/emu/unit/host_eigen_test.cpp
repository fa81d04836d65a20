// host.eigen.f32: near the exact product within the bound of any order; its bits are not promised.
#include <cmath>

#include "emu/unit/operand.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"

namespace host_eigen_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

TEST_CASE("host.eigen.f32: within the error bound of a float32 dot product", "[fast]") {
  const Problem problems[] = {
      make_matrices("float32", "float32", 33, 21, 150, {true, true, true}, Fill::finite, 1),
      make_convolution("float8_e4m3fn", "int4", {3, 20, 20, 2, 3, 1, 1, 1}, 6, Fill::finite, 2)};
  for (const Problem& p : problems) {
    std::vector<float> eigen, exact, magnitude;
    find_unit("host.eigen.f32").multiply(p.gemm(eigen));
    find_unit("exact").multiply(p.gemm(exact));
    const Source<float> a = decode_floats(p.a.operand(), p.m, p.k),
                        b = decode_floats(p.b.operand(), p.n, p.k);
    double worst = 0;
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        double sum = p.c.empty() ? 0 : std::fabs(p.c[i * p.n + j]);
        for (std::int64_t k = 0; k < p.k; ++k)
          sum +=
              std::fabs(double{a.values[a.row[i] + a.depth[k]]} * b.values[b.row[j] + b.depth[k]]);
        // Any order of k products and C: at most (k + 1) u (1 + small) times the sum of magnitudes
        // (Higham, ASNA 3.1), and u more for the rounding of the exact result.
        const double bound = static_cast<double>(p.k + 3) * 0x1p-24 * sum + 0x1p-149;
        worst = std::max(worst, std::fabs(double{eigen[i * p.n + j]} - exact[i * p.n + j]) / bound);
      }
    }
    CHECK(worst <= 1);
  }
  CHECK(find_unit("host.eigen.f32").row().grade == Grade::not_reproducible);
}

TEST_CASE("host.eigen.f32: has no description, takes what the chain takes, adds C last", "[fast]") {
  const Unit& unit = find_unit("host.eigen.f32");
  CHECK(unit.description() == nullptr);
  CHECK(unit.c_format()->name == "float32");
  CHECK(unit.d_format()->name == "float32");
  const Unit& chain = find_unit("neutral.f32.sequential");
  for (const Format* format : named_formats())
    CHECK(unit.accepts(*format) == chain.accepts(*format));
  CHECK(unit.operand_rule() == chain.operand_rule());
  // 2^24 + 1 + 1: a chain from C loses both, the product 2 added last does not.
  const float ones[] = {1, 1}, c = 0x1p24f;
  float d = 0;
  const Gather gather = Gather::matrix(1, 2);
  Gemm g{
      1, 1, 2, {&find_format("float32"), ones, &gather}, {&find_format("float32"), ones, &gather}};
  g.c = &c;
  g.d = &d;
  unit.multiply(g);
  CHECK(d == 0x1p24f + 2);
  unit.multiply_reference(g);
  CHECK(d == 0x1p24f);
  g.k = -1;
  CHECK_THROWS_WITH(unit.multiply(g), Catch::Contains("negative size"));
}

}  // namespace host_eigen_test
