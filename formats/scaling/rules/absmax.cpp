// Scale rule absmax: the largest magnitude lands on the largest element, of real-valued scales,
// group-scaled integers and NVFP4.
#include "formats/scaling/scale_rule.hpp"

namespace numemu {

extern const ScaleRule scale_absmax{
    "absmax",
    "largest magnitude / largest element, rounded upward to the scale format",
    /*fills_range=*/true,
    /*stores_scale=*/true,
    [](const ScaleRequest& r) {
      return r.block != nullptr ? absmax_block_scale(r)
                                : absmax_scale(largest_magnitude(r.x, r.n), *r.conversion);
    },
    /*exponents=*/nullptr,
    /*reads_elements=*/false,
    /*serves_affine=*/true,
    /*lands_on=*/[](const Conversion& c) { return std::vector<double>{largest_element(c)}; },
    /*needs_largest_alone=*/true};

}  // namespace numemu
