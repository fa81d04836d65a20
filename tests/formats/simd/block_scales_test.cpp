// Ranges of blocks, on every instruction set.
#include "formats/simd/block_scales.hpp"

#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace numemu::simd::block_scales_test {
namespace {

TEST_CASE("block scales: the range of the finite elements", "[fast]") {
  const RandomSource random{.seed = 11};
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (std::int64_t n = 0; n < 70; ++n) {
      for (const int others : {0, 1, 2}) {  // every element is finite, some, none
        std::vector<float> x;
        FiniteRange want;
        bool any = false;
        for (std::int64_t i = 0; i < n; ++i) {
          const std::uint32_t u = random.bits(static_cast<std::uint64_t>(100 * n + i), 8);
          const bool finite = others == 0 || (others == 1 && u % 3 != 0);
          const float other = u % 2 == 0 ? NAN : u % 4 == 1 ? INFINITY : -INFINITY;
          const float number = static_cast<float>(u) - 99;
          x.push_back(finite ? number : other);
          want.all = want.all && finite;
          if (!finite) continue;
          want.low = any ? std::min(want.low, number) : number;
          want.high = any ? std::max(want.high, number) : number;
          any = true;
        }
        const FiniteRange range = finite_range(x.data(), n);
        CAPTURE(hwy::TargetName(target), n, others);
        CHECK((range.low == want.low && range.high == want.high && range.all == want.all));
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace numemu::simd::block_scales_test
