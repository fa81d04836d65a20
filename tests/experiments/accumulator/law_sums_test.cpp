// Sums under laws: the model beside the unit, and names that are refused.
#include "experiments/accumulator/accumulator.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace law_sums_test {

using namespace numemu;
using namespace numemu::experiments;

TEST_CASE("law sums: chains of 64 products are predicted within 1 dB", "[fast]") {
  for (const std::string& law : sum_laws()) {
    const SumCase one{"neutral.mac.e8m7.rne", law, "float8_e4m3fn", 64};
    const MeasuredSums measured = measured_sums(one, 96, 5);
    const unit::SumError predicted = predicted_sums(one);
    INFO(law << ": predicted " << predicted.noise << ", measured " << measured.noise);
    CHECK(predicted.none.empty());
    CHECK(measured.lost == 0);
    CHECK(measured.signal > 0);
    // Of one product of 96 x 96 sums; the claim of the experiment.
    CHECK(std::fabs(10 * std::log10(predicted.noise / measured.noise)) < 1);
  }
}

TEST_CASE("law sums: integer sums are exact, laws have names", "[fast]") {
  const MeasuredSums exact = measured_sums({"neutral.mac.int32", "normal", "int8", 64}, 24, 5);
  CHECK(exact.noise == 0);
  CHECK_THROWS_AS(check_sum_law("cauchy"), Error);
}

}  // namespace law_sums_test
