#include "policies/numerics/unit_result.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "emu/net/ops/elementwise.hpp"
#include "emu/unit/integer/requantize.hpp"
#include "formats/codec.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"
#include "policies/numerics/half_values.hpp"
#include "policies/numerics/overflow_sample.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::policies {

namespace {

/// Bytes of a two's complement register's container.
int integer_bytes(int bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : 4; }

template <class Code>
double integer_at(const void* codes, std::int64_t i, int bits) {
  const auto code = static_cast<std::uint32_t>(static_cast<const Code*>(codes)[i]);
  return static_cast<std::int32_t>(code << (32 - bits)) >> (32 - bits);
}

template <class Code>
void decode_codes(const float* table, const Code* codes, std::int64_t n, float* y) {
  net::for_each_element(n, [=](std::int64_t i) { y[i] = table[codes[i]]; });
}

}  // namespace

float rounded_product(double a, float b) {
  const double product = a * static_cast<double>(b);
  // Two float32 have an exact product; almost every sum of integers is one.
  if (static_cast<double>(static_cast<float>(a)) == a) return static_cast<float>(product);
  const double rest = std::fma(a, static_cast<double>(b), -product);
  // Rounded to odd at 53 bits, so that the rounding to 24 that follows is the only one.
  auto bits = std::bit_cast<std::uint64_t>(product);
  if (rest != 0 && std::isfinite(product) && (bits & 1) == 0)
    bits = (rest > 0) == (product > 0) ? bits | 1 : bits - 1;
  return static_cast<float>(std::bit_cast<double>(bits));
}

UnitResult::UnitResult(const unit::Unit& unit, const net::Product& product)
    : product_(product), unit_(unit), format_(unit.d_format()) {
  if (format_ == nullptr) {
    bits_ = unit::result_register(*unit.description()).bits;
    fraction_ = unit::result_register(*unit.description()).fraction;
  }
  bytes_ = format_ == nullptr ? integer_bytes(bits_) : container_bytes(*format_);
  if (format_ != nullptr && format_->name == float32().name) return;
  thread_local std::vector<std::byte> scratch;
  scratch.resize(
      static_cast<std::size_t>(product.d_stack.count() * product.m * product.n * bytes_));
  codes_ = scratch.data();
}

net::ProductResult UnitResult::target() {
  if (codes_ == nullptr) return {product_.d, sizeof(float)};
  return {codes_, bytes_};
}

SaturationCounts UnitResult::saturation() const {
  const unit::UnitDescription* const u = unit_.description();
  if (u == nullptr) return {};
  const unit::Register& r = unit::result_register(*u);
  if (!hides_overflow(r) || wraps(r)) return {};
  // D holds the register's values; both ends as its codes.
  std::uint64_t ends[2];
  for (const bool low : {false, true}) {
    if (r.format == nullptr) {
      const std::uint64_t end = (std::uint64_t{1} << (bits_ - 1)) - !low;
      ends[low] = bytes_ == 4 && low ? ~std::uint64_t{0} << (bits_ - 1) & 0xffffffff : end;
    } else {
      const Value end = decode(*r.format, r.format->largest_code(low));
      ends[low] = encode(*format_, end, {}, Overflow::ieee).code << format_->container_shift;
    }
  }
  SaturationCounts counts{.results = product_.d_stack.count() * product_.m * product_.n};
  const auto count = [&](const auto* codes) {
    using Code = std::remove_cvref_t<decltype(*codes)>;
    const Code high = static_cast<Code>(ends[0]), low = static_cast<Code>(ends[1]);
    std::int64_t found = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : found) if (counts.results > 65536)
    for (std::int64_t i = 0; i < counts.results; ++i) found += codes[i] == high || codes[i] == low;
    counts.at_end = found;
  };
  const void* const codes = codes_ != nullptr ? static_cast<const void*>(codes_) : product_.d;
  switch (bytes_) {
    case 1:
      count(static_cast<const std::uint8_t*>(codes));
      break;
    case 2:
      count(static_cast<const std::uint16_t*>(codes));
      break;
    case 4:
      count(static_cast<const std::uint32_t*>(codes));
      break;
    default:
      count(static_cast<const std::uint64_t*>(codes));
  }
  return counts;
}

void UnitResult::finish(const OperandScales& a, const OperandScales& b, const ZeroPoints& zero) {
  if (codes_ == nullptr && zero.none()) return apply_scales(product_, a, b);
  const std::int64_t n = product_.d_stack.count() * product_.m * product_.n;
  if (codes_ != nullptr && format_ != nullptr && bytes_ <= 4) {  // only float64 is wider
    if (format_->bits <= 8) {
      decode_codes(value_table(*format_), reinterpret_cast<const std::uint8_t*>(codes_), n,
                   product_.d);
    } else if (format_->bits <= 16) {
      decode_halves(*format_, reinterpret_cast<const std::uint16_t*>(codes_), n, product_.d);
    } else {
      convert_codes({.format = &float32(), .overflow = Overflow::ieee}, *format_, codes_, n,
                    product_.d);
    }
    if (zero.none()) return apply_scales(product_, a, b);
  }
  // Alpha first, as the result of 1 * alpha; then the wide number times it.
  std::vector<double> wide(static_cast<std::size_t>(n));
  const double unit = std::ldexp(1.0, -fraction_);
  for (std::int64_t i = 0; i < n; ++i) {
    if (codes_ == nullptr || (format_ != nullptr && bytes_ <= 4)) {
      wide[i] = product_.d[i];
    } else if (format_ != nullptr) {
      wide[i] = reinterpret_cast<const double*>(codes_)[i];
    } else {
      const double code = bytes_ == 1   ? integer_at<std::uint8_t>(codes_, i, bits_)
                          : bytes_ == 2 ? integer_at<std::uint16_t>(codes_, i, bits_)
                                        : integer_at<std::uint32_t>(codes_, i, bits_);
      wide[i] = code * unit;
    }
    product_.d[i] = 1;
  }
  if (!zero.none()) subtract(zero, wide);
  apply_scales(product_, a, b);
  float* const d = product_.d;
  net::for_each_element(
      n, [&](std::int64_t i) { d[i] = net::neutral(rounded_product(wide[i], d[i])); });
}

namespace {

/// RNE(x), saturated to int32.
std::int32_t nearest_int32(double x) {
  constexpr double kShift = 0x1.8p52;  // a number beside it has no digits below 1
  const double rounded = std::clamp(x, -0x1p31, 0x1p31 - 1);
  return static_cast<std::int32_t>((rounded + kShift) - kShift);
}

/// Of a result's column; of grouped convolutions and heads those of all matrices beside each other.
unit::Epilogue epilogue_of(const net::Product& p, const OperandScales& a, const OperandScales& b,
                           const ResultCodes& codes) {
  if (a.kind != OperandScales::Kind::one && !a.none())
    throw Error("layer " + std::string(p.layer) +
                ", fprop: edges.requantize: expected one scale of activations");
  unit::Epilogue e{.how = codes.how, .zero_point = codes.scale.zero_point};
  const Format& format = *codes.role.format;
  const std::int32_t end = 1 << (format.bits - (format.is_signed ? 1 : 0));
  e.high = end - 1;
  // Without zero points integers are used symmetrically.
  e.low = !format.is_signed ? 0 : codes.role.zero_point ? -end : 1 - end;
  const float of_a = a.none() ? 1 : a.values[0];
  const std::int64_t channels = p.d_stack.inner * p.n;
  std::vector<double> factors;
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::size_t at = b.values.size() == 1 ? 0 : static_cast<std::size_t>(c);
    const float of_b = b.none() ? 1 : b.values[at];
    const double both = static_cast<double>(of_a) * static_cast<double>(of_b);
    factors.push_back(codes.how == unit::Requantization::real
                          ? static_cast<double>(of_a * of_b / codes.scale.scale)
                          : both / static_cast<double>(codes.scale.scale));
    if (codes.bias != nullptr)
      e.bias.push_back(
          nearest_int32(static_cast<double>(codes.bias->data[static_cast<std::size_t>(c)]) / both));
  }
  try {
    e.set_factors(factors);
  } catch (const Error& error) {
    throw Error("layer " + std::string(p.layer) + ", fprop: edges.requantize: " + error.what());
  }
  return e;
}

}  // namespace

void UnitResult::requantize(const OperandScales& a, const OperandScales& b, const ZeroPoints& zero,
                            const ResultCodes& codes) {
  const unit::Epilogue e = epilogue_of(product_, a, b, codes);
  const auto* const sums = reinterpret_cast<const std::uint32_t*>(codes_);
  const std::int64_t inner = product_.d_stack.inner, m = product_.m, n = product_.n;
  const float scale = codes.scale.scale;
  net::for_each_row(product_.d_stack.count() * m, n, [&](std::int64_t line) {
    const std::int64_t row = line / inner % m, beside = line % inner;
    const std::int64_t matrix = line / (m * inner) * inner + beside;
    for (std::int64_t j = 0; j < n; ++j) {
      std::uint32_t sum = sums[line * n + j];
      if (!zero.none()) sum -= static_cast<std::uint32_t>(zero.excess(product_, matrix, row, j));
      const std::int32_t code = e.code(static_cast<std::int32_t>(sum), beside * n + j);
      product_.d[line * n + j] = static_cast<float>(code - e.zero_point) * scale;
    }
  });
}

void UnitResult::subtract(const ZeroPoints& zero, std::vector<double>& results) const {
  const std::int64_t inner = product_.d_stack.inner, m = product_.m, n = product_.n;
  const bool integers = format_ == nullptr && fraction_ == 0;
  net::for_each_row(product_.d_stack.count() * m, n, [&](std::int64_t line) {
    const std::int64_t row = line / inner % m;
    const std::int64_t matrix = line / (m * inner) * inner + line % inner;
    for (std::int64_t j = 0; j < n; ++j) {
      double& result = results[static_cast<std::size_t>(line * n + j)];
      const std::int64_t excess = zero.excess(product_, matrix, row, j);
      if (integers) {
        const auto difference = static_cast<std::uint64_t>(static_cast<std::int64_t>(result)) -
                                static_cast<std::uint64_t>(excess);
        result = static_cast<std::int32_t>(static_cast<std::uint32_t>(difference));
      } else {
        result -= static_cast<double>(excess);
      }
    }
  });
}

}  // namespace numemu::policies
