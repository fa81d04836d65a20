// Sorting by digits against sorting by comparisons.
#include "formats/analysis/sort_magnitudes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace sort_magnitudes_test {

using namespace numemu;

TEST_CASE("sort magnitudes: the order of comparisons", "[fast]") {
  const RandomSource random{.seed = 3};
  for (const std::size_t n : {0, 1, 2, 127, 128, 1000, 1023, 1024, 5000}) {
    for (const int digits : {32, 20, 8}) {  // few bits: many equal ones, and digits that all share
      std::vector<float> x;
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t bits = random.bits(i, 32) >> (32 - digits) << (digits == 8 ? 20 : 0);
        x.push_back(std::bit_cast<float>(bits % 0x7f800001U));  // up to infinity
      }
      std::vector<float> want = x;
      std::sort(want.begin(), want.end());
      std::vector<float> other(n);
      const float* const sorted = sort_magnitudes(x.data(), other.data(), n);
      CHECK((sorted == x.data() || sorted == other.data()));
      CHECK(std::equal(want.begin(), want.end(), sorted));
    }
  }
}

}  // namespace sort_magnitudes_test
