// How often sums of independent products leave a register, and what that costs.
#pragma once

namespace numemu::unit {

/// A sum of `count` independent terms, taken as normal: means and variance of one term.
struct SumLaw {
  double mean = 0, variance = 0, count = 0;
};

/// That the sum exceeds `limit` (in magnitude: at either end) when it is complete.
double beyond_at_end(const SumLaw&, double limit);
/// The same on the way or at the end. A Brownian path with drift; the limit is moved outwards by
/// 0.5826 standard deviations of a term, as paths are looked at after whole terms only
/// (Siegmund, Sequential Analysis, 1985, chapter X).
double beyond_on_way(const SumLaw&, double limit);

/// Mean square of the error where the register stops at `limit` after every term: what is lost at
/// an end is what the path's maximum exceeds the end by.
double saturation_noise(const SumLaw&, double limit);
/// The same where the complete sum is clipped.
double clipping_noise(const SumLaw&, double limit);
/// The same where it is taken modulo 2 `limit`.
double wrapping_noise(const SumLaw&, double limit);

}  // namespace numemu::unit
