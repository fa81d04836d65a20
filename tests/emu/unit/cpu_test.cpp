// A CPU without the instructions of the least vector loops.
#include "emu/unit/cpu.hpp"

#include <hwy/targets.h>

#include "tests/catch.hpp"

namespace numemu::unit::cpu_test {

TEST_CASE("cpu: one without the least vectors is told apart", "[fast]") {
  CHECK(has_least_vectors());
  hwy::SetSupportedTargetsForTest(HWY_SSSE3);  // on no machine the least that is compiled
  CHECK_FALSE(has_least_vectors());
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace numemu::unit::cpu_test
