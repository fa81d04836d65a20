// Noise of the size, shape and coherence of a format's rounding, drawn by a random phase: the grid
// is moved by a random share of a step.
#pragma once
#include <cstdint>
#include <vector>

#include "formats/conversion.hpp"

namespace numemu {

/// For v = x / scale, d the distance of the format's neighbours around v and a phase u in
/// [-1/2, 1/2), the error is (round(v / d + u) - (v / d + u)) d scale: equal numbers with equal
/// phases get equal errors. Numbers less than one step from zero keep the phase of the format: zero
/// is on every grid, and densities peak there. Of formats with fewer than 4 bits, most of whose
/// numbers lie there, they have random phases, too: the noise would be the rounding itself. What
/// lies at or beyond the largest (smallest) value becomes it, as it does where conversions
/// saturate; zeros stay zeros, and a scale of 0 makes zeros.
///
/// Rounding to nearest in any form of ties; rodd has twice the step; rtz, rup and rdn round v / d +
/// u to that side, so that errors have one sign. sr adds a second phase, one for each element:
/// twice the power, as stochastic rounding has.
class PhaseNoise {
 public:
  explicit PhaseNoise(const Conversion&);
  /// Of integers: all codes q, the most negative one too, with the values q - zero_point.
  PhaseNoise(const Conversion&, int zero_point);
  /// Of integers whose codes reach as far as the numbers do: with zero points or minima of blocks.
  static PhaseNoise without_ends(const Conversion&);

  /// The arrays of n elements whose errors are drawn.
  struct Run {
    const float* x = nullptr;
    const float* scale = nullptr;
    const float* phase = nullptr;
    const float* second = nullptr;  ///< the phases that sr adds
    std::int64_t n = 0;
    float* error = nullptr;
  };

  /// Whether runs need second phases (sr).
  bool stochastic() const { return stochastic_; }
  void errors(const Run&) const;
  /// The phase under which errors are those of the rounding itself, but for ties.
  float own_phase() const { return widen_ == 1 ? 0.0f : 0.5f; }

 private:
  template <bool kSecond, bool kDirected>
  void floating_errors(const Run&) const;
  void table_errors(const Run&) const;

  float low_, high_;  ///< smallest and largest value
  bool stochastic_;
  bool all_random_ = false;       ///< numbers within one step of zero have random phases, too
  float widen_ = 1;               ///< of the step
  float toward_ = 0;              ///< 1 rounds down, -1 up, 0 to nearest
  bool to_zero_ = false;          ///< toward_ has the sign of the number
  std::int32_t least_field_ = 0;  ///< exponent bits below which the step is that of this exponent
  std::int32_t mantissa_ = 0;     ///< mantissa bits, shifted to the exponent field
  std::vector<float> values_;     ///< of formats whose steps follow no exponent; else empty
};

/// n phases: element first + i has word first + i of the source, as a number in [-1/2, 1/2].
void fill_phases(const RandomSource&, std::int64_t first, std::int64_t n, float* phases);

/// Sums over elements x with errors e, channel by channel, in float64 and a fixed order.
class ErrorSums {
 public:
  explicit ErrorSums(std::int64_t channels);

  /// Lines of one element per channel.
  void add(const float* x, const float* error, std::int64_t lines);
  std::int64_t channels() const { return static_cast<std::int64_t>(xx_.size()); }
  /// (sum x e) / (sum x^2): how much errors lengthen the channel, negative where they shrink it.
  double coherent(std::int64_t channel) const;
  /// Power of what is left of its errors.
  double residual(std::int64_t channel) const;

 private:
  std::vector<double> xx_, xe_, ee_;
};

/// error becomes x + a x + b error, with a and b of its channel such that the errors y - x have the
/// coherent part and the residual power of `wanted`; `drawn` are the sums of what `error` holds.
void add_errors(const float* x, const ErrorSums& drawn, const ErrorSums& wanted, std::int64_t lines,
                float* error);

}  // namespace numemu
