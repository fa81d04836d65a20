// What AdaComp (Chen et al., AAAI 2018) sends of gradients that are independent standard normal
// numbers: of the first step in closed form, of later ones by a mean field.
#pragma once
#include <cstdint>

namespace numemu::experiments::adacomp {

/// Bits of an element that is sent: its place in the bin and one of three values.
std::int64_t code_bits(std::int64_t bin);
/// Float32 bits over the bits sent, `sent` elements of each bin: 32 bin / (code_bits sent).
double rate(std::int64_t bin, double sent);

/// Elements that a bin sends in the first step, without a residual: those of at least half the
/// largest magnitude. E of their number given the largest, one integral.
double first_sent(std::int64_t bin);

struct SteadyState {
  double sent = 0;      ///< elements of a bin
  double scale = 0;     ///< E of a bin's largest |G|, over the deviation of a gradient
  double residual = 0;  ///< root of the mean squared residual, the same
};
/// Where the rule comes to rest, as if the elements of a bin were independent: the law of the
/// residual that a step leaves as it is, on a grid. It neglects that the bin's elements share their
/// past largest one, and sends 2 % (bins of 50) to 8 % (bins of 500) too few.
SteadyState steady_state(std::int64_t bin);

}  // namespace numemu::experiments::adacomp
