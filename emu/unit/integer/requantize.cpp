#include "emu/unit/integer/requantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "emu/unit/description.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::unit {

bool gives_int32(const Unit& unit) {
  const UnitDescription* const u = unit.description();
  if (u == nullptr || unit.d_format() != nullptr) return false;
  const Register& r = result_register(*u);
  return r.bits == 32 && r.fraction == 0;
}

IntegerEnds ends_of_integers(const Format& format) {
  if (!format.is_signed) return {0, (1 << format.bits) - 1};
  return {-(1 << (format.bits - 1)), (1 << (format.bits - 1)) - 1};
}

namespace {

constexpr std::int64_t kMostSum = std::numeric_limits<std::int32_t>::max(),
                       kLeastSum = std::numeric_limits<std::int32_t>::min();

constexpr std::array<RequantizationRow, kRequantizations> kRows = {{
    {"float", "RNE(RNE_f32(RNE_f32(sum) x factor)), the factor a float32",
     "ONNX Runtime (MLAS): MlasRequantizeOutput"},
    {"fixed-point-single",
     "(sum x M + 2^(30 - shift)) >> (31 - shift): one rounding, halves upward",
     "TensorFlow Lite with TFLITE_SINGLE_ROUNDING, CMSIS-NN with CMSIS_NN_USE_SINGLE_ROUNDING"},
    {"fixed-point-double",
     "doubling high multiplication, halves upward, then >> -shift, halves away from zero: two "
     "roundings",
     "gemmlowp, TensorFlow Lite: MultiplyByQuantizedMultiplier; CMSIS-NN: arm_nn_requantize"},
}};

std::int32_t saturated(std::int64_t x) {
  return static_cast<std::int32_t>(std::clamp(x, kLeastSum, kMostSum));
}

/// The doubling high half: halves upward. Only (-2^31)^2 leaves the range.
std::int32_t high_half(std::int32_t a, std::int32_t b) {
  return saturated((std::int64_t{a} * b + (std::int64_t{1} << 30)) >> 31);
}

/// x / 2^shift, halves away from zero.
std::int32_t divided(std::int32_t x, int shift) {
  const std::int64_t mask = (std::int64_t{1} << shift) - 1, rest = x & mask;
  const std::int64_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return static_cast<std::int32_t>((std::int64_t{x} >> shift) + (rest > threshold ? 1 : 0));
}

/// A magnitude 2^exponent times an integer.
struct Magnitude {
  std::uint64_t digits = 0;
  int exponent = 0;
};

/// m / 2^drop, halves to even; drop > 0.
std::uint64_t shifted_to_even(std::uint64_t m, int drop) {
  if (drop > 63) return 0;
  const std::uint64_t kept = m >> drop, rest = m & ((std::uint64_t{1} << drop) - 1);
  const std::uint64_t half = std::uint64_t{1} << (drop - 1);
  return kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0);
}

/// Rounded to the 24 digits of a float32. One below its normal numbers keeps more digits than a
/// float32 has, which the rounding to an integer does not see: both are less than a half.
Magnitude to_float32(Magnitude m) {
  const int drop = std::bit_width(m.digits) - 24;
  if (drop <= 0) return m;
  return {shifted_to_even(m.digits, drop), m.exponent + drop};
}

}  // namespace

const RequantizationRow& row_of(Requantization how) { return kRows[static_cast<std::size_t>(how)]; }

Requantization parse_requantization(std::string_view name) {
  return static_cast<Requantization>(
      index_named("requantization", name, kRows, &RequantizationRow::name));
}

FixedFactor fixed_factor(double factor) {
  const auto refuse = [factor] {
    throw Error(fmt::format("expected a factor of at least 0 and below 2^30, found {}", factor));
  };
  if (!(factor >= 0 && factor < double{1 << 30})) refuse();
  const auto bits = std::bit_cast<std::uint64_t>(factor);
  const auto field = static_cast<int>(bits >> 52 & 0x7ff);
  if (field == 0) return {};  // zero, or far below 2^-32
  // factor = mantissa 2^(shift - 53), the mantissa at least 2^52.
  const std::uint64_t mantissa = (bits & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{1} << 52;
  int shift = field - 1022;
  std::uint64_t multiplier = (mantissa + (std::uint64_t{1} << 21)) >> 22;
  if (multiplier == std::uint64_t{1} << 31) {
    multiplier >>= 1;
    ++shift;
  }
  if (shift < kLeastShift) return {};
  if (shift > kMostShift) refuse();
  return {static_cast<std::int32_t>(multiplier), shift};
}

std::int32_t requantize_fixed(Requantization how, std::int32_t sum, FixedFactor factor) {
  if (how == Requantization::fixed_single) {
    const int total = 31 - factor.shift;
    return saturated((std::int64_t{sum} * factor.multiplier + (std::int64_t{1} << (total - 1))) >>
                     total);
  }
  const int left = std::max(factor.shift, 0), right = std::max(-factor.shift, 0);
  const auto scaled = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) << left);
  return divided(high_half(scaled, factor.multiplier), right);
}

std::int32_t requantize_real(std::int32_t sum, float factor) {
  const auto bits = std::bit_cast<std::uint32_t>(factor);
  const auto field = static_cast<int>(bits >> 23 & 0xff);
  const std::uint64_t hidden = field == 0 ? 0 : std::uint64_t{1} << 23;
  const Magnitude f{(bits & 0x7fffff) | hidden, std::max(field, 1) - 150};
  const bool negative = sum < 0;
  const Magnitude s = to_float32(
      {static_cast<std::uint64_t>(negative ? -std::int64_t{sum} : std::int64_t{sum}), 0});
  const Magnitude product = to_float32({s.digits * f.digits, s.exponent + f.exponent});
  std::int64_t rounded = 0;
  if (product.digits != 0) {
    const int digits = std::bit_width(product.digits) + product.exponent;  // before the point
    if (digits > 32) {
      rounded = std::int64_t{1} << 32;
    } else {
      rounded = static_cast<std::int64_t>(product.exponent >= 0
                                              ? product.digits << product.exponent
                                              : shifted_to_even(product.digits, -product.exponent));
    }
  }
  return saturated(negative ? -rounded : rounded);
}

std::int32_t Epilogue::code(std::int32_t sum, std::int64_t channel) const {
  const auto at = [channel](const auto& values) {
    return values[values.size() == 1 ? 0 : static_cast<std::size_t>(channel)];
  };
  if (!bias.empty())
    sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) +
                                    static_cast<std::uint32_t>(at(bias)));
  const std::int64_t scaled = how == Requantization::real
                                  ? requantize_real(sum, at(factors))
                                  : requantize_fixed(how, sum, at(fixed_factors));
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(scaled + zero_point, low, high));
}

void Epilogue::set_factors(std::span<const double> given) {
  factors.clear();
  fixed_factors.clear();
  for (std::size_t i = 0; i < given.size(); ++i) {
    try {
      const FixedFactor fixed = fixed_factor(given[i]);
      if (how == Requantization::real) {
        factors.push_back(static_cast<float>(given[i]));
      } else {
        fixed_factors.push_back(fixed);
      }
    } catch (const Error& error) {
      throw Error(fmt::format("channel {}: {}", i, error.what()), error.kind());
    }
  }
}

}  // namespace numemu::unit
