#include "policies/fast_real.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "formats/above_minimum.hpp"
#include "formats/float_guard.hpp"
#include "formats/quantize.hpp"
#include "formats/quantize_fast.hpp"
#include "formats/simd/philox.hpp"

namespace numemu::policies {
namespace {

constexpr int kMostBits = 8, kMostRandomBits = 24;
constexpr std::int64_t kBatch = 1024;
/// Bounds the error of the float64 quotient below 2^8 and one: the difference and the quotient are
/// each rounded once, by at most 2^-53 of themselves, so that it is below 2^-43.
constexpr double kNear = 0x1p-42;

}  // namespace

FastReal::FastReal(const BlockQuantization& how) : format_(*how.format), element_(how.element) {
  element_.format = format_.element;
  if (format_.element->bits > kMostBits) return;
  const Rounding& r = element_.rounding;
  const bool sr =
      r.stochastic() && r.variant == StochasticVariant::c && r.random_bits <= kMostRandomBits;
  const bool plain = format_.affine == Affine::sym && !format_.power_of_two_scale() &&
                     !format_.tensor_scale && format_.element_exponent == 0 &&
                     exact_in_float32(*format_.element);
  serves_ = plain || (format_.affine == Affine::min && (r.mode == RoundingMode::rne || sr));
}

FlagCounts FastReal::encode_plain(float scale, const float* x, std::int64_t first,
                                  std::int64_t count, void* codes, float* y) const {
  FlagCounts counts{.elements = count};
  if (codes != nullptr)
    counts = quantize_codes(element_, x + first, count, scale,
                            static_cast<std::uint8_t*>(codes) + first, first);
  if (y != nullptr) counts = quantize_values(element_, x + first, count, scale, y + first, first);
  return counts;
}

FlagCounts FastReal::encode(const BlockScale& scale, const float* x, const BlockElements& elements,
                            std::int64_t begin, std::int64_t end, void* codes, float* y) const {
  const FloatGuard guard;
  if (scale.factor.kind != Class::finite || !elements.contiguous())
    return encode_elements(format_, element_, scale, x, elements, begin, end, codes, y);
  if (format_.affine == Affine::sym)
    return encode_plain(static_cast<float>(to_double(scale.factor)), x, elements.first + begin,
                        end - begin, codes, y);
  const double factor = to_double(scale.factor), minimum = to_double(scale.minimum);
  const int high = static_cast<int>(format_.element->largest_code());
  const bool sr = element_.rounding.stochastic();
  const int bits = sr ? element_.rounding.random_bits : 0;
  const std::uint32_t mask = (std::uint32_t{1} << bits) - 1;
  const double steps = std::ldexp(1.0, bits), near = kNear * steps;
  const float lowest = decode_in_block(format_, scale, 0);
  std::array<std::uint32_t, kBatch> random;
  FlagCounts counts{.elements = end - begin};
  const auto by_reference = [&](std::int64_t i) {
    const Encoded exact = encode_in_block(format_, element_, scale, x[i], i);
    counts.add(exact.flags);
    return static_cast<int>(exact.code);
  };
  for (std::int64_t first = begin; first < end; first += kBatch) {
    const std::int64_t count = std::min(kBatch, end - first), at = elements.first + first;
    if (sr && element_.random_words == nullptr) {
      simd::fill_random(element_.random, bits, static_cast<std::uint64_t>(at), count,
                        random.data());
    } else if (sr) {
      for (std::int64_t k = 0; k < count; ++k) random[k] = element_.random_words[at + k] & mask;
    }
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t i = at + k;
      const double q = (x[i] - minimum) / factor;
      int code = 0;
      if (q > 0 && q < high) {
        // In steps of the last random bit; t is the distance from a boundary in them.
        const double fine = q * steps;
        const auto below = static_cast<std::int64_t>(fine);
        const double t = fine - static_cast<double>(below);
        if (t < near || t > 1 - near || std::fabs(t - 0.5) < near) {
          code = by_reference(i);
        } else {
          ++counts.inexact;
          code = static_cast<int>((below + (t > 0.5 ? 1 : 0) + (sr ? random[k] : 0)) >> bits);
        }
      } else if (q != 0) {  // 0 is the minimum itself, and only it
        code = by_reference(i);
      }
      if (codes != nullptr) static_cast<std::uint8_t*>(codes)[i] = static_cast<std::uint8_t>(code);
      if (y != nullptr)
        y[i] = code == 0 ? lowest
                         : above_minimum(format_, scale, static_cast<std::uint64_t>(code), factor,
                                         minimum);
    }
  }
  return counts;
}

}  // namespace numemu::policies
