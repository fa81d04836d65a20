// Scale rule nearest: log2(amax / largest element) rounded to the nearest whole number.
#include "formats/scaling/scale_exponent.hpp"

namespace numemu {

// With the exponents apart the ratio r of the mantissas lies in (1/2, 2), and log2 r rounds up to 1
// or 0 where r^2 exceeds 2 or 1/2. Equality would make 2 the square of a fraction.
extern const ScaleRule scale_nearest{
    "nearest",
    "s = round(log2(amax / largest element)), decided by squares of integers",
    /*fills_range=*/true,
    /*stores_scale=*/true,
    /*scale=*/nullptr,
    [](const ExponentRequest& r) {
      const Leading largest = leading(largest_element(*r.format));
      const std::uint64_t square = largest.mantissa * largest.mantissa;
      for_each_block(r, [&](const Leading& amax) {
        const std::uint64_t a = amax.mantissa * amax.mantissa;
        const std::int32_t s = amax.exponent - largest.exponent;
        return amax.mantissa >= largest.mantissa ? s + (a > 2 * square ? 1 : 0)
                                                 : s - (2 * a > square ? 0 : 1);
      });
    }};

}  // namespace numemu
