#include "formats/analysis/phase_noise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/analysis/cells.hpp"
#include "formats/simd/philox.hpp"

namespace numemu {
namespace {

constexpr int kMantissa = 23;            // of float32
constexpr float kToInteger = 0x1.8p23f;  // added and taken away: rounds to nearest even
constexpr std::int32_t kMagnitude = 0x7fffffff, kExponent = 0x7f800000;

/// Fewer bits have no phase of their own within one step of zero.
constexpr int kFewestOwn = 4;
/// A scale that puts the largest number on the largest value does so within so many ulps.
constexpr std::int32_t kAtEnd = 4;

std::int32_t bits_of(float x) { return std::bit_cast<std::int32_t>(x); }
float float_of(std::int32_t bits) { return std::bit_cast<float>(bits); }

/// `yes` where the sign is negative, else `no`.
std::int32_t chosen(std::int32_t sign, std::int32_t yes, std::int32_t no) {
  const std::int32_t mask = sign >> 31;
  return (yes & mask) | (no & ~mask);
}

/// The exponent field of 2^e.
std::int32_t field_of(int e) { return std::clamp(e + 127, 1, 254) << kMantissa; }

/// Whether the step at v is 2^(max(exponent of v, least) - mantissa bits).
bool follows_exponent(const Format& f) {
  return f.kind == Kind::integer ||
         (f.kind == Kind::floating && f.field_zero == FieldZero::subnormal);
}

}  // namespace

PhaseNoise::PhaseNoise(const Conversion& c)
    : stochastic_(c.rounding.stochastic()), all_random_(c.format->bits < kFewestOwn) {
  const Format& f = *c.format;
  if (c.rounding.mode == RoundingMode::rodd) widen_ = 2;
  if (c.rounding.mode == RoundingMode::rdn || c.rounding.mode == RoundingMode::rtz) toward_ = 1;
  if (c.rounding.mode == RoundingMode::rup) toward_ = -1;
  to_zero_ = c.rounding.mode == RoundingMode::rtz;
  if (!follows_exponent(f)) {
    for (const GridPoint& point : grid_points(f, c.symmetric))
      values_.push_back(static_cast<float>(point.value));
    low_ = values_.front();
    high_ = values_.back();
    return;
  }
  const bool integer = f.kind == Kind::integer;
  // The step of integers is that of the subnormal numbers of a format with as many mantissa bits.
  const int mantissa = integer ? f.bits : f.mantissa_bits;
  const int least = integer ? f.bits : 1 - f.bias;
  mantissa_ = mantissa << kMantissa;
  // Below, the step would be no normal float32.
  least_field_ = std::max(field_of(least), field_of(mantissa - 125));
  high_ = static_cast<float>(integer && f.is_signed && c.symmetric ? std::ldexp(1.0, f.bits - 1) - 1
                                                                   : largest_value(f));
  low_ = !f.is_signed ? 0 : integer && !c.symmetric ? -high_ - 1 : -high_;
}

PhaseNoise::PhaseNoise(const Conversion& c, int zero_point)
    : PhaseNoise([&] {
        Conversion all = c;
        all.symmetric = false;
        return all;
      }()) {
  low_ -= static_cast<float>(zero_point);
  high_ -= static_cast<float>(zero_point);
}

PhaseNoise PhaseNoise::without_ends(const Conversion& c) {
  PhaseNoise noise(c);
  noise.high_ = std::ldexp(1.0f, c.format->bits);
  noise.low_ = -noise.high_;
  return noise;
}

// Selections by masks of bits, since compilers keep branches around floating comparisons. A scale
// of 0 gives quotients beyond every limit.
template <bool kSecond, bool kDirected>
void PhaseNoise::floating_errors(const Run& run) const {
  const float* const x = run.x;
  const float* const scale = run.scale;
  const float* const phase = run.phase;
  const float* const second = run.second;
  float* const error = run.error;
  const std::int32_t least = least_field_, mantissa = mantissa_;
  const std::int32_t high = bits_of(high_), low = bits_of(-low_) & kMagnitude;
  const float widen = widen_;
  const std::int32_t own = bits_of(own_phase());
  const std::int32_t toward = bits_of(toward_), sign = to_zero_ ? ~kMagnitude : 0;
  const std::int32_t first =
      kSecond || all_random_ ? 0 : bits_of(widen * float_of(least - mantissa));
#pragma omp simd
  for (std::int64_t i = 0; i < run.n; ++i) {
    const float v = x[i] / scale[i];
    const std::int32_t bits = bits_of(v), size = bits & kMagnitude, field = bits & kExponent;
    const float step = widen * float_of(chosen(field - least, least, field) - mantissa);
    const float w = v / step + float_of(chosen(size - first, own, bits_of(phase[i])));
    float steps = ((w + kToInteger) - kToInteger) - w;
    if constexpr (kDirected) {  // nearest is beyond w, seen from where it rounds to
      const float side = float_of(toward ^ (bits & sign));
      steps -= side * static_cast<float>(steps * side > 0);
    }
    if constexpr (kSecond) steps += second[i];
    const std::int32_t limit = chosen(bits, low, high);
    const float end = float_of(limit | (bits & ~kMagnitude));
    const std::int32_t beyond = bits_of(end * scale[i] - x[i]);
    const std::int32_t within = bits_of(steps * step * scale[i]);
    error[i] = float_of(chosen(-size, chosen(limit - kAtEnd - size, beyond, within), 0));
  }
}

void PhaseNoise::table_errors(const Run& run) const {
  for (std::int64_t i = 0; i < run.n; ++i) {
    const float x = run.x[i], scale = run.scale[i], v = x / scale;
    if (x == 0 || scale == 0) {
      run.error[i] = -x;
    } else if (!(v > low_ && v < high_)) {
      run.error[i] = (v <= low_ ? low_ : high_) * scale - x;
    } else {
      const auto above = std::upper_bound(values_.begin(), values_.end(), v);
      const float below = *(above - 1), step = widen_ * (*above - below);
      const bool first = !stochastic_ && !all_random_ && (below == 0 || *above == 0);
      const float w = (v - below) / step + (first ? own_phase() : run.phase[i]);
      const float side = to_zero_ ? std::copysign(toward_, v) : toward_;
      float steps = std::nearbyint(w) - w;
      if (steps * side > 0) steps -= side;
      if (stochastic_) steps += run.second[i];
      run.error[i] = steps * step * scale;
    }
  }
}

void PhaseNoise::errors(const Run& run) const {
  if (!values_.empty()) return table_errors(run);
  if (stochastic_) return floating_errors<true, false>(run);
  toward_ != 0 ? floating_errors<false, true>(run) : floating_errors<false, false>(run);
}

void fill_phases(const RandomSource& source, std::int64_t first, std::int64_t n, float* phases) {
  constexpr std::int64_t kPiece = 1024;
  std::uint32_t words[kPiece];
  for (std::int64_t at = 0; at < n; at += kPiece) {
    const std::int64_t count = std::min(kPiece, n - at);
    simd::fill_random(source, 32, static_cast<std::uint64_t>(first + at), count, words);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i)
      phases[at + i] = static_cast<float>(std::bit_cast<std::int32_t>(words[i])) * 0x1p-32f;
  }
}

ErrorSums::ErrorSums(std::int64_t channels)
    : xx_(static_cast<std::size_t>(channels)), xe_(xx_), ee_(xx_) {}

void ErrorSums::add(const float* x, const float* error, std::int64_t lines) {
  const std::int64_t width = channels();
  double *const xx = xx_.data(), *const xe = xe_.data(), *const ee = ee_.data();
  for (std::int64_t line = 0; line < lines; ++line, x += width, error += width) {
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) {
      const double v = x[c], e = error[c];
      xx[c] += v * v;
      xe[c] += v * e;
      ee[c] += e * e;
    }
  }
}

double ErrorSums::coherent(std::int64_t c) const { return xx_[c] > 0 ? xe_[c] / xx_[c] : 0; }

double ErrorSums::residual(std::int64_t c) const {
  return std::max(0.0, ee_[c] - coherent(c) * xe_[c]);
}

void add_errors(const float* x, const ErrorSums& drawn, const ErrorSums& wanted, std::int64_t lines,
                float* error) {
  const std::int64_t width = drawn.channels();
  std::vector<float> coherent(static_cast<std::size_t>(width)), size(coherent);
  for (std::int64_t c = 0; c < width; ++c) {
    const double power = drawn.residual(c);
    const double ratio = power > 0 ? std::sqrt(wanted.residual(c) / power) : 1;
    coherent[c] = static_cast<float>(wanted.coherent(c) - ratio * drawn.coherent(c));
    size[c] = static_cast<float>(ratio);
  }
  const float *const own = coherent.data(), *const share = size.data();
  for (std::int64_t line = 0; line < lines; ++line, x += width, error += width) {
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c)
      error[c] = x[c] + (own[c] * x[c] + share[c] * error[c]);
  }
}

}  // namespace numemu
