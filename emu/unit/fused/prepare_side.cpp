// Reads an operand of a fused product as float32 and measures what the proofs of fast paths need.
#include "emu/unit/fused/prepare_side.hpp"

#include <omp.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "emu/unit/fused/prepare_values.hpp"
#include "emu/unit/gather.hpp"
#include "formats/codec.hpp"
#include "formats/float_guard.hpp"
#include "formats/quantize.hpp"
#include "formats/simd/decode.hpp"

namespace numemu::unit {
namespace {

constexpr std::uint32_t kInfinityBits = 0x7f800000;

/// Whether every finite number of `operand` is one of `wide`, which then rounds nothing.
bool holds(const Format& wide, const Format& operand) {
  const Exponents outer = exponents_of(wide), inner = exponents_of(operand);
  return operand.mantissa_bits <= wide.mantissa_bits && inner.low >= outer.low &&
         inner.top <= outer.top;
}

/// Masks the container bits that the unit does not read; nothing where it rounds in another way.
std::optional<std::uint32_t> input_mask(const UnitDescription& unit, const Format& operand) {
  int dropped = operand.container_shift;
  if (unit.input.format != nullptr && !holds(*unit.input.format, operand)) {
    if (unit.input.rounding.mode != RoundingMode::rtz ||
        container_of(*unit.input.format) != Container::floats ||
        container_of(operand) != Container::floats)
      return std::nullopt;
    dropped = std::max(dropped, unit.input.format->container_shift);
  }
  return ~std::uint32_t{0} << dropped;
}

/// Elements [first, first + count) of the unpadded source as float32.
void decode_run(const Operand& operand, std::uint32_t mask, std::int64_t first, std::int64_t count,
                float* values) {
  const Format& format = *operand.format;
  const auto* halves = static_cast<const std::uint16_t*>(operand.codes);
  if (container_of(format) == Container::bytes) {
    const auto* codes = static_cast<const std::uint8_t*>(operand.codes);
    simd::decode_bytes(decode_table(format), codes + first, count, values, false);
  } else if (is_float16(&format)) {
    float16_to_float32(halves + first, count, values);
  } else if (is_ieee(&format, 8, 7, 127)) {
    bfloat16_to_float32(halves + first, count, values);
  } else if (container_of(format) == Container::floats) {
    const auto* codes = static_cast<const float*>(operand.codes) + first;
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(codes[i]) & mask);
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      values[i] = static_cast<float>(double_or_nan(decode(format, code_at(operand, first + i))));
  }
}

/// An operand as float32, and what occurs in it.
struct ReadValues {
  Source<float> source;
  std::int64_t size = 0;  ///< of the padded source
  Survey found;
};

/// Decodes, pads and surveys part by part, while a part is in the cache: whole outer indices of a
/// padded source, else kPart elements.
ReadValues read_values(const Operand& operand, std::int64_t rows, std::int64_t depth,
                       std::uint32_t mask) {
  constexpr std::int64_t kPart = std::int64_t{1} << 14, kOfOneThread = std::int64_t{1} << 17;
  const Padding& padding = operand.gather->padding;
  const bool padded = !padding.identity();
  ReadValues read;
  const std::int64_t source = source_size(operand, rows, depth);
  read.size = padded ? padding.padded_size() : source;
  read.source = {nullptr, operand.gather->row.data(), operand.gather->depth.data(), nullptr};
  const bool in_place =
      container_of(*operand.format) == Container::floats && mask == ~std::uint32_t{0} && !padded;
  std::unique_ptr<float[]> storage;
  if (!in_place) storage = std::make_unique_for_overwrite<float[]>(read.size);
  float* const to = storage.get();
  const float* const values = in_place ? static_cast<const float*>(operand.codes) : to;
  const std::int64_t parts = padded ? padding.outer : (read.size + kPart - 1) / kPart;
  const std::int64_t part = padded ? read.size / std::max<std::int64_t>(parts, 1) : kPart;
  const auto read_part = [&](std::int64_t p) {
    const FloatGuard guard;
    const std::int64_t first = p * part, count = std::min(part, read.size - first);
    if (padded) {
      std::fill_n(to + first, count, 0.0f);
      for_each_padding_span(padding, p, [&](std::int64_t from, std::int64_t at, std::int64_t n) {
        decode_run(operand, mask, from, n, to + at);
      });
    } else if (!in_place) {
      decode_run(operand, mask, first, count, to + first);
    }
    return survey(values + first, count);
  };
  std::uint32_t least = read.found.least, most = read.found.most;
  const auto join = [](std::uint32_t& low, std::uint32_t& high, const Survey& found) {
    low = std::min(low, found.least);
    high = std::max(high, found.most);
  };
  // Even one thread costs a parallel region more than a short operand.
  if (read.size <= kOfOneThread || omp_in_parallel()) {
    for (std::int64_t p = 0; p < parts; ++p) join(least, most, read_part(p));
  } else {
#pragma omp parallel for reduction(min : least) reduction(max : most)
    for (std::int64_t p = 0; p < parts; ++p) join(least, most, read_part(p));
  }
  read.found = {least, most};
  read.source.values = values;
  read.source.storage = std::move(storage);
  return read;
}

/// Marks the rows that hold NaN or infinity, then replaces those by +0.
void take_out_specials(FusedSide& side, std::int64_t rows, std::int64_t depth, std::int64_t size) {
  const auto special = [&](std::int64_t i) { return !std::isfinite(side.values.values[i]); };
  side.special_rows.assign(static_cast<std::size_t>(rows), 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int32_t* offsets = side.values.depth;
    side.special_rows[static_cast<std::size_t>(r)] = std::any_of(
        offsets, offsets + depth, [&](std::int32_t o) { return special(side.values.row[r] + o); });
  }
  auto finite = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) finite[i] = special(i) ? 0.0f : side.values.values[i];
  side.values.values = finite.get();
  side.values.storage = std::move(finite);
}

}  // namespace

bool is_ieee(const Format* f, int exponent_bits, int mantissa_bits, int bias) {
  return f != nullptr && f->kind == Kind::floating && f->is_signed &&
         f->exponent_bits == exponent_bits && f->mantissa_bits == mantissa_bits &&
         f->bias == bias && f->specials == Specials::ieee && f->field_zero == FieldZero::subnormal;
}
bool reads_as_float32(const UnitDescription& unit, const Format& operand) {
  return container_of(operand) && operand.kind == Kind::floating && fits_float32(operand) &&
         exponents_of(operand).low >= -149 && input_mask(unit, operand);
}

FusedSide prepare_side(const UnitDescription& unit, const Operand& operand, std::int64_t rows,
                       std::int64_t depth) {
  FusedSide side;
  const std::uint32_t mask = *input_mask(unit, *operand.format);
  auto [source, size, found] = read_values(operand, rows, depth, mask);
  side.values = std::move(source);
  side.emin =
      smallest_normal_exponent(unit.input.format != nullptr ? *unit.input.format : *operand.format);
  // Of what is left of it: an input rounding shortens float32.
  side.mantissa_bits = std::min(operand.format->mantissa_bits, 23 - std::countr_zero(mask));
  if (found.most >= kInfinityBits) {
    take_out_specials(side, rows, depth, size);
    found = survey(side.values.values, size);
  }
  if (found.most == 0) return side;
  const auto exponent = [](std::uint32_t magnitude) {
    return std::max<int>(static_cast<int>(magnitude >> 23), 1) - 127;
  };
  side.lowest = std::max(exponent(found.least), side.emin);
  side.highest = std::max(exponent(found.most), side.emin);
  // The last bit is that of the number's own binade, but never below the format's.
  const int bit = exponent(found.least) - side.mantissa_bits;
  side.present = {std::max(bit, exponents_of(*operand.format).low), side.highest + 1};
  return side;
}

void read_scales(FusedSide& side, const Format& format, const std::uint8_t* codes,
                 std::int64_t rows, std::int64_t blocks) {
  side.blocks = blocks;
  side.scales.resize(static_cast<std::size_t>(rows * side.blocks));
  for (std::int64_t i = 0; i < rows * side.blocks; ++i) {
    const Value scale = decode(format, codes[i]);
    if (scale.kind == Class::finite) {
      side.scales[static_cast<std::size_t>(i)] =
          static_cast<std::int16_t>(scale.exponent + std::bit_width(scale.significand) - 1);
    } else {
      side.special_rows.resize(static_cast<std::size_t>(rows));
      side.special_rows[static_cast<std::size_t>(i / side.blocks)] = 1;
    }
  }
}

}  // namespace numemu::unit
