// Scale rule ceil: the smallest power of two under which the largest magnitude does not saturate
// (round-up mode of CUDA's e8m0 conversion).
#include "formats/scaling/scale_exponent.hpp"

namespace numemu {

extern const ScaleRule scale_ceil{"ceil",
                                  "s = ceil(log2(amax / largest element)): never saturates",
                                  /*fills_range=*/true,
                                  /*stores_scale=*/true,
                                  /*scale=*/nullptr,
                                  [](const ExponentRequest& r) {
                                    const Leading largest = leading(largest_element(*r.format));
                                    for_each_block(r, [&](const Leading& amax) {
                                      return amax.exponent - largest.exponent +
                                             (amax.mantissa > largest.mantissa ? 1 : 0);
                                    });
                                  }};

}  // namespace numemu
