// Scale rule absmax: the largest magnitude lands on the largest element (formats specification,
// real-valued scales).
#include "policies/scale_rule.hpp"

namespace numemu::policies {

extern const ScaleRule scale_absmax{
    "absmax", "largest magnitude / largest element, rounded upward to float32",
    /*fills_range=*/true, /*stores_scale=*/true,
    [](const ScaleRequest& r) { return absmax_scale(largest_magnitude(r.x, r.n), *r.conversion); }};

}  // namespace numemu::policies
