#include "policies/numerics/quantized_tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/interned.hpp"
#include "formats/value.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {
namespace {

constexpr int kNarrowBits = 8;
// Elements that a thread converts together.
constexpr std::int64_t kChunk = std::int64_t{1} << 16;

std::vector<float> decoded(const Format& format) {
  std::vector<float> values(std::size_t{1} << format.bits);
  for (std::size_t code = 0; code < values.size(); ++code)
    values[code] = static_cast<float>(to_double(decode(format, code)));
  return values;
}

/// body(group, begin, end) over all elements of groups of `size`, in pieces of about kChunk.
template <class Body>
void for_each_piece(std::int64_t groups, std::int64_t size, const Body& body) {
  if (groups == 0 || size == 0) return;
  const std::int64_t pieces = (size + kChunk - 1) / kChunk;
  const std::int64_t together = std::max<std::int64_t>(1, kChunk / size);
  const std::int64_t tasks = (groups + together - 1) / together * pieces;
#pragma omp parallel for schedule(static) if (tasks > 1)
  for (std::int64_t task = 0; task < tasks; ++task) {
    const FloatGuard guard;
    const std::int64_t first = task / pieces * together, piece = task % pieces * kChunk;
    for (std::int64_t g = first; g < std::min(first + together, groups); ++g)
      body(g, g * size + piece, g * size + std::min(piece + kChunk, size));
  }
}

/// Room for n codes that are all written: memory that is too small goes first, and no more is
/// taken.
template <class Code>
void fit(std::int64_t n, std::vector<Code>& codes) {
  const auto size = static_cast<std::size_t>(n);
  if (codes.capacity() < size) std::vector<Code>().swap(codes);
  codes.resize(size);
}

template <class Code>
FlagCounts convert(const Conversion& conversion, const float* x, std::int64_t n,
                   const std::vector<float>& scales, std::int64_t first, Code* codes) {
  const std::int64_t groups = static_cast<std::int64_t>(scales.size());
  FlagCounts flags;
  for_each_piece(groups, groups == 0 ? 0 : n / groups,
                 [&](std::int64_t g, std::int64_t begin, std::int64_t end) {
                   const FlagCounts piece = quantize_codes(conversion, x + begin, end - begin,
                                                           scales[g], codes + begin, first + begin);
#pragma omp critical(numemu_quantized_tensor)
                   flags += piece;
                 });
  return flags;
}

template <class Code>
void decode_all(const float* table, const Code* codes, const std::vector<float>& scales,
                float zero_point, std::int64_t n, float* y) {
  const std::int64_t groups = static_cast<std::int64_t>(scales.size());
  for_each_piece(groups, groups == 0 ? 0 : n / groups,
                 [&](std::int64_t g, std::int64_t begin, std::int64_t end) {
                   const float scale = scales[g];
                   for (std::int64_t i = begin; i < end; ++i)
                     y[i] = (table[codes[i]] - zero_point) * scale;
                 });
}

}  // namespace

const float* value_table(const Format& format) {
  if (format.bits <= kNarrowBits) return decode_table(format);
  struct Table {
    std::vector<float> values;
  };
  return Interned::find<Table>(
             format.key(), [&] { return std::make_unique<const Table>(Table{decoded(format)}); })
      .values.data();
}

float QuantizedTensor::element(std::int64_t i) const {
  return value_table(*format)[is_narrow() ? narrow[i] : wide[i]] - static_cast<float>(zero_point);
}

void QuantizedTensor::values(float* y) const {
  const float* const table = value_table(*format);
  const auto zero = static_cast<float>(zero_point);
  if (is_narrow()) {
    decode_all(table, narrow.data(), scales, zero, static_cast<std::int64_t>(narrow.size()), y);
  } else {
    decode_all(table, wide.data(), scales, zero, static_cast<std::int64_t>(wide.size()), y);
  }
}

std::vector<float> choose_scales(const RoleQuantizer& quantizer, const float* x, std::int64_t n,
                                 std::int64_t groups) {
  std::vector<float> scales(static_cast<std::size_t>(groups));
  if (const std::optional<FixedScales>& fixed = quantizer.policy().fixed) {
    if (fixed->size() != 1 && std::ssize(*fixed) != groups)
      throw Error(
          fmt::format("ranges: expected one for the tensor or {}, one per channel, found {}",
                      groups, fixed->size()));
    for (std::size_t g = 0; g < scales.size(); ++g)
      scales[g] = (*fixed)[fixed->size() == 1 ? 0 : g].scale;
    return scales;
  }
  const std::int64_t size = groups == 0 ? 0 : n / groups;
  if (groups == 1) {
    scales[0] = quantizer.scale(x, n);
    return scales;
  }
#pragma omp parallel for schedule(static) if (n > kChunk)
  for (std::int64_t g = 0; g < groups; ++g) scales[g] = quantizer.scale(x + g * size, size);
  return scales;
}

std::vector<float> choose_scales(const RolePolicy& policy, const net::Tensor& x) {
  const std::int64_t groups = policy.granularity == Granularity::channel ? x.dim(0)
                              : policy.granularity == Granularity::row && x.dim(-1) > 0
                                  ? x.size() / x.dim(-1)
                                  : 1;
  return choose_scales(RoleQuantizer(policy), x.data.data(), x.size(), groups);
}

void quantize_tensor(const RoleQuantizer& quantizer, const float* x, std::int64_t n,
                     std::vector<float> scales, const RandomPiece& random, QuantizedTensor& out) {
  const Conversion conversion = quantizer.conversion(random.source);
  out.format = conversion.format;
  out.scales = std::move(scales);
  out.zero_point = 0;
  const bool narrow = out.is_narrow();
  fit(narrow ? n : 0, out.narrow);
  fit(narrow ? 0 : n, out.wide);
  out.flags = narrow ? convert(conversion, x, n, out.scales, random.first, out.narrow.data())
                     : convert(conversion, x, n, out.scales, random.first, out.wide.data());
}

void quantize_affine(const RoleQuantizer& quantizer, const float* x, std::int64_t n,
                     const TensorScale& scale, const RandomPiece& random, QuantizedTensor& out) {
  static const Format& wide = find_format("int16");
  Conversion rounding = quantizer.conversion(random.source);
  rounding.format = &wide;
  thread_local std::vector<std::uint16_t> rounded;
  fit(n, rounded);
  out.flags = convert(rounding, x, n, {scale.scale}, random.first, rounded.data());
  out.format = quantizer.policy().format;
  out.scales = {scale.scale};
  out.zero_point = scale.zero_point;
  out.wide.clear();
  fit(n, out.narrow);
  const int bits = out.format->bits;
  const int low = out.format->is_signed ? -(1 << (bits - 1)) : 0, high = low + (1 << bits) - 1;
  const int mask = (1 << bits) - 1;
  const std::uint16_t* const from = rounded.data();
  std::uint8_t* const to = out.narrow.data();
  std::int64_t beyond = 0;
#pragma omp parallel for schedule(static) reduction(+ : beyond) if (n > kChunk)
  for (std::int64_t i = 0; i < n; ++i) {
    const int code = static_cast<std::int16_t>(from[i]) + scale.zero_point;
    const int kept = std::clamp(code, low, high);
    beyond += kept != code;
    to[i] = static_cast<std::uint8_t>(kept & mask);
  }
  out.flags.overflow = beyond;
}

void reencode(const QuantizedTensor& from, const Format& wide, QuantizedTensor& out) {
  std::vector<std::uint16_t> table(std::size_t{1} << from.format->bits);
  for (std::size_t code = 0; code < table.size(); ++code)
    table[code] = static_cast<std::uint16_t>(
        encode(wide, decode(*from.format, code), {}, Overflow::saturate).code);
  out.format = &wide;
  const auto n = static_cast<std::int64_t>(from.narrow.size() + from.wide.size());
  fit(out.is_narrow() ? n : 0, out.narrow);
  fit(out.is_narrow() ? 0 : n, out.wide);
  const auto put = [&](auto* to) {
#pragma omp parallel for schedule(static) if (n > kChunk)
    for (std::int64_t i = 0; i < n; ++i)
      to[i] = static_cast<std::remove_reference_t<decltype(*to)>>(
          table[from.is_narrow() ? from.narrow[i] : from.wide[i]]);
  };
  out.is_narrow() ? put(out.narrow.data()) : put(out.wide.data());
}

void quantize_tensor(const RolePolicy& policy, const net::Tensor& x,
                     const std::vector<float>& scales, const RandomSource& random,
                     std::int64_t first, QuantizedTensor& out) {
  quantize_tensor(RoleQuantizer(policy), x.data.data(), x.size(), scales, {random, first}, out);
}

}  // namespace numemu::policies
