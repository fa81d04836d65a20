// Errors by partial moments beside the exact ones, and the scales they choose.
#include <cmath>

#include "formats/analysis/best_scale.hpp"
#include "formats/analysis/distribution.hpp"
#include "formats/analysis/error_figures.hpp"
#include "formats/analysis/scale_mse.hpp"
#include "tests/catch.hpp"

namespace cell_mse_test {

using namespace numemu;

// Of formats with cells of 2^-8 of the signal and more, which cost 16 of 53 bits.
constexpr double kCancellation = 1e-9;
// Two searches of a flat minimum.
constexpr double kSearch = 1e-6;

TEST_CASE("errors by partial moments are the exact ones", "[fast]") {
  for (const char* law : {"normal", "laplace", "uniform", "student-t:5"}) {
    const Distribution distribution = Distribution::parse(law, false);
    for (const char* name : {"float4_e2m1fn", "float8_e4m3fn", "int4", "int8", "posit(6,1)"}) {
      for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rup}) {
        INFO(law << " " << name);
        const Format& f = find_format(name);
        const Rounding rounding{.mode = mode};
        const CellMse mse(f, rounding, distribution.density(), true);
        const OutcomeLaw outcomes = outcome_law(f, rounding, Overflow::saturate);
        for (const double scale : {0.01, 0.125, 0.3, 2.0}) {
          const double exact = mean_square_error(outcomes, scale, distribution.density());
          CHECK(std::abs(mse(scale) - exact) <= kCancellation * (exact + 1));
        }
      }
    }
  }
}

TEST_CASE("the best scale by partial moments is the best one", "[fast]") {
  const Distribution normal = Distribution::parse("normal", false);
  for (const char* name : {"float4_e2m1fn", "float6_e2m3fn", "int4", "float8_e4m3fn"}) {
    INFO(name);
    const Format& f = find_format(name);
    const Density& law = normal.density();
    const BestScale best = numemu::best_scale(f, {}, law);
    const CellMse mse(f, {}, law, true);
    const double power = mse.best_scale(1, law.knots().back(), true);
    CHECK(std::ldexp(1.0, std::ilogb(power)) == power);
    CHECK(mse(power) <= mse(best.power_of_two.scale) * (1 + kSearch));
    CHECK(mse(mse.best_scale(1, law.knots().back(), false)) <=
          mse(best.real.scale) * (1 + kSearch));
  }
}

}  // namespace cell_mse_test
