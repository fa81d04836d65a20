// Scale rule even: floor after amax has been rounded, nearest even, to the element's mantissa
// width, so that what rounds up to the next power of two gets its exponent (AMD Quark's "even").
#include "formats/scaling/scale_exponent.hpp"

namespace numemu {
namespace {

/// Bits after the leading one of the element's largest values.
int mantissa_width(const Format& element) {
  return element.kind == Kind::integer
             ? static_cast<int>(std::bit_width(element.largest_code())) - 1
             : element.mantissa_bits;
}

}  // namespace

// Only a carry to the next power of two matters. At its tie the lower neighbour has nothing but
// ones, so nearest even goes up.
extern const ScaleRule scale_even{
    "even",
    "amax rounded RNE to the element's mantissa width, then floor",
    /*fills_range=*/true,
    /*stores_scale=*/true,
    /*scale=*/nullptr,
    [](const ExponentRequest& r) {
      const Leading largest = leading(largest_element(*r.format));
      const std::uint64_t half = std::uint64_t{1} << (22 - mantissa_width(*r.format->element));
      for_each_block(r, [&](const Leading& amax) {
        const bool carries = (amax.mantissa + half) >> 24 != 0;
        return amax.exponent - largest.exponent + (carries ? 1 : 0);
      });
    }};

}  // namespace numemu
