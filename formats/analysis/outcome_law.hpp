// The image of every real: the step function of a format with its rounding, overflow and flags.
#pragma once
#include <vector>

#include "formats/format.hpp"
#include "formats/rounding.hpp"

namespace numemu {

/// What a number may become: a finite value, an infinity or NaN, and the flags that come with it.
struct PossibleResult {
  double value = 0;
  bool overflow = false;  ///< the rounded number lies beyond the largest finite value (flag OF)
  bool invalid = false;   ///< a negative number in a format without sign (flag NV)
};

/// The reals from low to high (low itself where `low_closed`) share two outcomes. A deterministic
/// piece has from == to and always gives `near`. In a stochastic one x lies at the fraction
/// d = (x - from) / (to - from) of the gap between two neighbours, `from` being the one nearer to
/// zero, and gives `far` with probability up_probability(rounding, d).
struct OutcomePiece {
  double low, high;
  bool low_closed = true;
  PossibleResult near = {}, far = {};
  double from = 0, to = 0;
  bool stochastic() const { return from != to; }
};

/// The law of a format under one rounding and one overflow rule, scale 1. Each list touches,
/// ascends and covers the line.
struct OutcomeLaw {
  Rounding rounding;
  std::vector<OutcomePiece> pieces;
  /// Value 1 where the result is tiny: rounded as if exponents had no lower end, it lies below the
  /// smallest normal number. The flag UF is raised where it is tiny and not exact.
  std::vector<OutcomePiece> tiny;
};

/// Formats of at most 16 bits whose values are doubles; Error otherwise. Signed integers leave out
/// the most negative code when `symmetric`. Infinite and NaN inputs are not covered.
OutcomeLaw outcome_law(const Format&, const Rounding&, Overflow, bool symmetric = true);

/// The piece of an ascending list that holds x, the list scaled by `scale`.
const OutcomePiece& piece_at(const std::vector<OutcomePiece>&, double x, double scale);

/// P(away from zero) of sr(n, variant) at the fraction d in [0, 1]: floor(d 2^n) / 2^n for `a`, the
/// nearest multiple of 2^-n otherwise.
double up_probability(const Rounding&, double d);

}  // namespace numemu
