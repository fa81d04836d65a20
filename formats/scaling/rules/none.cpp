// Scale rule none: values are converted as they are, as formats with a wide exponent (bfloat16) are
// used.
#include "formats/scaling/scale_rule.hpp"

namespace numemu {

extern const ScaleRule scale_none{"none", "scale 1: values are converted as they are",
                                  /*fills_range=*/false, /*stores_scale=*/false,
                                  [](const ScaleRequest&) { return 1.0f; }};

}  // namespace numemu
