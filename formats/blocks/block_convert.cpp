// Elements to codes and back under the scale of their block: exact numbers, one rounding each.
#include "formats/blocks/block_convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"

namespace numemu {
namespace {

// Exact arithmetic on values in 128-bit integers; what falls below them is remembered as sticky.

__extension__ typedef unsigned __int128 Wide;

int width_of(Wide x) {
  const auto high = static_cast<std::uint64_t>(x >> 64);
  return high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<std::uint64_t>(x));
}

// A sum before it is cut to a Value; `sticky` as there.
struct Sum {
  Wide magnitude = 0;
  int exponent = 0;
  bool negative = false, sticky = false;
};

Value cut(const Sum& sum) {
  if (sum.magnitude == 0) return {};
  const int drop = width_of(sum.magnitude) - 64;
  if (drop <= 0)
    return {Class::finite, sum.negative, sum.sticky, sum.exponent,
            static_cast<std::uint64_t>(sum.magnitude)};
  const Wide kept = sum.magnitude >> drop;
  return {Class::finite, sum.negative, sum.sticky || kept << drop != sum.magnitude,
          sum.exponent + drop, static_cast<std::uint64_t>(kept)};
}

// The sum of two finite numbers. The unit is that of the smaller one, but at most 2^kReach below
// the larger one's: what lies below is sticky. The larger one then has so many bits that no
// cancellation reaches the end.
Sum add(const Value& a, const Value& b) {
  constexpr int kReach = 80;
  const bool swap = a.exponent < b.exponent;
  const Value& high = swap ? b : a;
  const Value& low = swap ? a : b;
  Sum sum;
  sum.exponent = high.exponent - low.exponent <= kReach ? low.exponent : high.exponent - kReach;
  const Wide large = Wide{high.significand} << (high.exponent - sum.exponent);
  const int drop = sum.exponent - low.exponent;
  const std::uint64_t small = drop >= 64 ? 0 : low.significand >> drop;
  sum.sticky = drop >= 64 || small << drop != low.significand;
  if (high.negative == low.negative) {
    sum.magnitude = large + small;
    sum.negative = high.negative;
  } else if (large >= small) {
    sum.magnitude = large - small - (sum.sticky ? 1 : 0);
    sum.negative = high.negative;
  } else {
    sum.magnitude = small - large;
    sum.negative = low.negative;
  }
  return sum;
}

}  // namespace

Value exact_product(const Value& a, const Value& b) {
  Value product{.negative = a.negative != b.negative};
  const bool zero = a.kind == Class::zero || b.kind == Class::zero;
  const bool infinite = a.kind == Class::infinite || b.kind == Class::infinite;
  if (a.kind == Class::nan || b.kind == Class::nan || (zero && infinite)) {
    product.kind = Class::nan;
  } else if (infinite) {
    product.kind = Class::infinite;
  } else if (!zero) {
    product.kind = Class::finite;
    product.exponent = a.exponent + b.exponent;
    product.significand = a.significand * b.significand;
  }
  return product;
}

Value exact_sum(const Value& a, const Value& b) {
  if (a.kind == Class::nan || b.kind == Class::nan) return {.kind = Class::nan};
  if (a.kind == Class::infinite && b.kind == Class::infinite && a.negative != b.negative)
    return {.kind = Class::nan};
  if (a.kind == Class::infinite) return a;
  if (b.kind == Class::infinite) return b;
  if (a.kind == Class::zero && b.kind == Class::zero) return {.negative = a.negative && b.negative};
  if (a.kind == Class::zero) return b;
  if (b.kind == Class::zero) return a;
  return cut(add(a, b));
}

// A sticky sum is at least 2^(kReach + 23) units, because a larger term whose exponent exceeds the
// other's by more than kReach is a normal float32; an exact one is aligned to the left.
Value quotient_of_difference(const Value& a, const Value& b, const Value& s) {
  Value opposite = b;
  opposite.negative = !b.negative;
  if (a.kind != Class::finite || b.kind != Class::finite) {
    const Value sum = exact_sum(a, opposite);
    return exact_quotient(sum, s);
  }
  Sum sum = add(a, opposite);
  if (sum.magnitude == 0) return {};
  if (!sum.sticky) {
    const int shift = 128 - width_of(sum.magnitude);
    sum.magnitude <<= shift;
    sum.exponent -= shift;
  }
  const Wide divided = sum.magnitude / s.significand;
  sum.sticky |= divided * s.significand != sum.magnitude;
  sum.magnitude = divided;
  sum.exponent -= s.exponent;
  return cut(sum);
}

namespace {

constexpr std::uint32_t kNaN = 0x7fc00000;

// Whole numbers of 33 bits: encode() into it is rounding to an integer, with room for every zero
// point; beyond it everything saturates anyway.
const Format& whole_numbers() {
  static const Format format = [] {
    Format f;
    f.name = "int33";
    f.kind = Kind::integer;
    f.bits = 33;
    return f;
  }();
  return format;
}

// The range of q for affine formats.
struct Range {
  std::int64_t low, high;
};

std::int64_t number_of(const Format& integer, std::uint64_t code) {
  return static_cast<std::int64_t>(code) -
         ((code & integer.sign_bit()) != 0 ? std::int64_t{1} << integer.bits : 0);
}

Range range_of(const BlockFormat& f) {
  const auto high = static_cast<std::int64_t>(f.element->largest_code());
  return {f.affine == Affine::zp && f.element->is_signed ? -high - 1 : 0, high};
}

float to_float32(const Value& v) {
  return v.kind == Class::nan ? std::bit_cast<float>(kNaN) : nearest_float(v);
}

// x / factor, where factor is zero or positive.
Value divided(const Value& x, const Value& factor) {
  if (factor.kind == Class::finite) return exact_quotient(x, factor);
  Value q = x;
  if (x.kind == Class::finite) q.kind = Class::infinite;
  return q;
}

// Rounds v to a whole number, adds `shift` and saturates.
Encoded encode_shifted(const Format& element, const Range& range, const Conversion& c,
                       const Value& v, std::int64_t shift, std::int64_t i) {
  const Format& whole = whole_numbers();
  const Encoded rounded = encode(whole, v, c.rounding, Overflow::saturate, c.random_bits(i));
  const std::int64_t q = number_of(whole, rounded.code) + shift;
  Encoded result{0, static_cast<std::uint8_t>(rounded.flags & ~kOverflow)};
  if (v.kind == Class::infinite || ((q < range.low || q > range.high) && v.kind != Class::nan))
    result.flags |= kOverflow | kInexact;
  result.code =
      static_cast<std::uint64_t>(std::clamp(q, range.low, range.high)) & element.code_mask();
  return result;
}

// The first index below n that `refused` holds for; -1 for none.
template <class Refused>
std::int64_t first_refused(std::int64_t n, const Refused& refused) {
  std::atomic<std::int64_t> first = n;
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i) {
    if (!refused(i)) continue;
    std::int64_t known = first;
    while (i < known && !first.compare_exchange_weak(known, i)) {
    }
  }
  return first == n ? -1 : first.load();
}

void check_codes(const std::string& array, const Format& f, const void* codes, std::int64_t n) {
  if (f.bits >= 8 * container_bytes(f)) return;
  if (container_bytes(f) == 1) {
    const auto* bytes = static_cast<const std::uint8_t*>(codes);
    std::uint8_t any = 0;
#pragma omp simd reduction(| : any)
    for (std::int64_t i = 0; i < n; ++i) any |= bytes[i];
    if (any <= f.code_mask()) return;
  }
  const std::int64_t i =
      first_refused(n, [&](std::int64_t k) { return load_code(f, codes, k) > f.code_mask(); });
  if (i >= 0)
    throw Error(array + ": element " + std::to_string(i) + " is " +
                std::to_string(load_code(f, codes, i)) + ", expected at most " +
                std::to_string(f.code_mask()) + " for " + f.name);
}

std::string number_text(const Value& v) {
  if (v.kind == Class::nan) return "NaN";
  if (v.kind == Class::infinite) return v.negative ? "-Inf" : "Inf";
  return fmt::format("{}", to_double(v));
}

void check_minima(const std::string& array, const void* minima, std::int64_t n) {
  const auto* m = static_cast<const float*>(minima);
  const std::int64_t i = first_refused(n, [&](std::int64_t k) { return !std::isfinite(m[k]); });
  if (i >= 0)
    throw Error(fmt::format("{}: element {} is {}, expected a finite minimum", array, i,
                            number_text(value_of(m[i]))));
}

void check_source(const BlockFormat& f, const BlockLayout& layout, const BlockSource& source) {
  check_codes(source.codes_name, *f.element, source.codes, layout.elements());
  check_scales(f, source.scales_name, source.scales, layout.blocks);
  if (f.affine == Affine::zp)
    check_codes(source.zero_points_name, *f.element, source.zero_points, layout.blocks);
  if (f.affine == Affine::min)
    check_minima(source.zero_points_name, source.zero_points, layout.blocks);
  if (f.tensor_scale && !(source.tensor_scale > 0 && std::isfinite(source.tensor_scale)))
    throw Error(fmt::format("{}: element 0 is {}, expected a finite number above 0",
                            source.tensor_scale_name, number_text(value_of(source.tensor_scale))));
}

}  // namespace

void check_scales(const BlockFormat& f, const std::string& array, const void* scales,
                  std::int64_t n) {
  const Format& format = *f.scale;
  check_codes(array, format, scales, n);
  const std::int64_t i = first_refused(n, [&](std::int64_t k) {
    const std::uint64_t code = load_code(format, scales, k);
    if (format.has_nan() && code == format.nan_code()) return false;
    const Value scale = decode(format, code);
    if (scale.kind == Class::zero) return scale.negative || !f.tensor_scale;
    return scale.kind != Class::finite || scale.negative;
  });
  if (i < 0) return;
  const std::uint64_t code = load_code(format, scales, i);
  throw Error(fmt::format("{}: element {} is {} (code {:#x}), expected a scale of {} {}", array, i,
                          number_text(decode(format, code)), code, format.name,
                          f.tensor_scale ? "that is positive or 0" : "above 0"));
}

void store_scale(const BlockFormat& f, const BlockArrays& arrays, std::int64_t b,
                 const StoredScale& stored) {
  if (arrays.scales != nullptr) store_code(*f.scale, arrays.scales, b, stored.scale);
  if (arrays.zero_points == nullptr) return;
  if (f.affine == Affine::min)
    static_cast<float*>(arrays.zero_points)[b] = std::bit_cast<float>(stored.shift);
  if (f.affine == Affine::zp) store_code(*f.element, arrays.zero_points, b, stored.shift);
}

StoredScale nan_scale(const BlockFormat& f) {
  if (!f.scale->has_nan())
    throw Error("a block contains NaN or Inf, and scale format " + f.scale->name + " of " + f.name +
                " has no NaN to mark it");
  return {f.scale->nan_code(), 0};
}

BlockScale block_scale(const BlockFormat& f, const StoredScale& stored, float tensor_scale) {
  BlockScale scale;
  scale.factor = decode(*f.scale, stored.scale);
  if (f.tensor_scale) scale.factor = exact_product(scale.factor, value_of(tensor_scale));
  scale.factor.exponent += f.element_exponent;
  if (f.affine == Affine::zp) scale.zero = number_of(*f.element, stored.shift);
  if (f.affine == Affine::min) scale.minimum = value_of(std::bit_cast<float>(stored.shift));
  return scale;
}

Encoded encode_in_block(const BlockFormat& f, const Conversion& c, const BlockScale& s, float x,
                        std::int64_t i) {
  const bool nan_block = s.factor.kind == Class::nan;
  if (f.affine == Affine::sym) {
    if (nan_block) return {encode(*f.element, {}, {}, Overflow::saturate).code, 0};
    return encode_element(c, divided(value_of(x), s.factor), i);
  }
  if (nan_block) return {};
  const Value quotient = f.affine == Affine::min && s.factor.kind == Class::finite
                             ? quotient_of_difference(value_of(x), s.minimum, s.factor)
                             : divided(value_of(x), s.factor);
  return encode_shifted(*f.element, range_of(f), c, quotient, s.zero, i);
}

float decode_in_block(const BlockFormat& f, const BlockScale& s, std::uint64_t code) {
  if (f.affine == Affine::zp) {
    const std::int64_t q = number_of(*f.element, code) - s.zero;
    const Value value{q == 0 ? Class::zero : Class::finite, q < 0, false, 0,
                      static_cast<std::uint64_t>(q < 0 ? -q : q)};
    return to_float32(exact_product(value, s.factor));
  }
  const Value product = exact_product(decode(*f.element, code), s.factor);
  return to_float32(f.affine == Affine::min ? exact_sum(product, s.minimum) : product);
}

std::uint32_t zero_point(const BlockFormat& f, const Value& factor, float low) {
  const Range range = range_of(f);
  Value steps = divided(value_of(low), factor);
  steps.negative = false;
  const Encoded rounded = encode(whole_numbers(), steps, {}, Overflow::saturate);
  const std::int64_t z = range.low + number_of(whole_numbers(), rounded.code);
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(std::min(z, range.high)) &
                                    f.element->code_mask());
}

FlagCounts encode_elements(const BlockFormat& f, const Conversion& c, const BlockScale& s,
                           const float* x, const BlockElements& elements, std::int64_t begin,
                           std::int64_t end, void* codes, float* y) {
  FlagCounts counts{.elements = end - begin};
  for (std::int64_t k = begin; k < end; ++k) {
    const std::int64_t i = elements.at(k);
    const Encoded result = encode_in_block(f, c, s, x[i], i);
    counts.add(result.flags);
    if (codes != nullptr) store_code(*f.element, codes, i, result.code);
    if (y != nullptr) y[i] = decode_in_block(f, s, result.code);
  }
  return counts;
}

void dequantize_blocks(const BlockFormat& f, const BlockLayout& layout, const BlockSource& source,
                       float* y) {
  check_source(f, layout, source);
  const auto scale_of = [&](std::int64_t b) {
    StoredScale stored{load_code(*f.scale, source.scales, b), 0};
    if (f.affine == Affine::zp)
      stored.shift = static_cast<std::uint32_t>(load_code(*f.element, source.zero_points, b));
    if (f.affine == Affine::min)
      stored.shift = std::bit_cast<std::uint32_t>(static_cast<const float*>(source.zero_points)[b]);
    return block_scale(f, stored, source.tensor_scale);
  };
  constexpr std::int64_t kPiece = 4096;
  const std::int64_t n = layout.elements();
#pragma omp parallel for schedule(static)
  for (std::int64_t piece = 0; piece < n; piece += kPiece) {
    const FloatGuard guard;
    const std::int64_t stop = std::min(n, piece + kPiece);
    std::int64_t known = -1;
    BlockScale scale;
    bool above = false;  // a minimum, by a factor of at most 24 bits
    double factor = 0, minimum = 0;
    const auto number = [&](std::uint64_t code) {
      return above ? above_minimum(f, scale, code, factor, minimum)
                   : decode_in_block(f, scale, code);
    };
    std::array<float, 256> numbers;  // of all codes, where a run has as many elements
    for (std::int64_t i = piece; i < stop;) {
      const std::int64_t b = layout.block_of(i);
      const BlockElements elements = layout.block(b);
      const std::int64_t run =
          elements.runs > 1 ? (i - elements.first) / elements.run_step * elements.run_step : 0;
      const std::int64_t end =
          elements.step == 1 ? std::min(stop, elements.first + run + elements.count) : i + 1;
      if (b != known) {
        known = b;
        scale = scale_of(b);
        above = counts_above_minimum(f) && scale.factor.kind == Class::finite;
        if (above) factor = to_double(scale.factor), minimum = to_double(scale.minimum);
      }
      const auto codes = static_cast<std::int64_t>(f.element->code_mask()) + 1;
      if (f.element->bits <= 8 && end - i >= codes) {
        for (std::int64_t c = 0; c < codes; ++c)
          numbers[static_cast<std::size_t>(c)] = number(static_cast<std::uint64_t>(c));
        const auto* bytes = static_cast<const std::uint8_t*>(source.codes);
        for (; i < end; ++i) y[i] = numbers[bytes[i]];
      }
      for (; i < end; ++i) y[i] = number(load_code(*f.element, source.codes, i));
    }
  }
}

}  // namespace numemu
