// Operands: containers, checks, decoding by table and padding in one pass over the source.
#include "emu/unit/operand.hpp"

#include <omp.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "emu/unit/gather.hpp"
#include "emu/unit/prepared_operand.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/quantize.hpp"

namespace numemu::unit {
namespace {

/// Elements a thread decodes at a time; below this no parallel region is opened.
constexpr std::int64_t kChunk = std::int64_t{1} << 17;

std::int64_t reach(const std::vector<std::int32_t>& offsets) {
  return offsets.empty() ? 0 : *std::max_element(offsets.begin(), offsets.end());
}

bool any_negative(const std::vector<std::int32_t>& offsets) {
  return std::any_of(offsets.begin(), offsets.end(), [](std::int32_t o) { return o < 0; });
}

/// Whether the source fits inside its padded tensor.
bool consistent(const Padding& p) {
  return p.outer >= 0 && p.depth >= 0 && p.height >= 0 && p.width >= 0 && p.channels >= 0 &&
         p.dilation >= 1 && p.row_dilation() >= 1 && p.dilation_depth >= 1 && p.front >= 0 &&
         p.top >= 0 && p.left >= 0 &&
         (p.depth == 0 || p.front + (p.depth - 1) * p.dilation_depth < p.padded_depth) &&
         (p.height == 0 || p.top + (p.height - 1) * p.row_dilation() < p.padded_height) &&
         (p.width == 0 || p.left + (p.width - 1) * p.dilation < p.padded_width);
}

/// A padded array of T with element i of the source at its place: element(i), or element[i] of an
/// array of T.
template <class T, class Element>
std::unique_ptr<T[]> fill(const Padding& p, std::int64_t size, const Element& element) {
  const auto run = [&](T* out, std::int64_t from, std::int64_t to, std::int64_t count) {
    if constexpr (std::is_pointer_v<Element>) {
      std::copy_n(element + from, count, out + to);
    } else {
      const FloatGuard guard;
      for (std::int64_t i = 0; i < count; ++i) out[to + i] = element(from + i);
    }
  };
  if (p.identity()) {
    auto values = std::make_unique_for_overwrite<T[]>(size);
    T* out = values.get();
#pragma omp parallel for if (size > kChunk && !omp_in_parallel())
    for (std::int64_t i = 0; i < size; i += kChunk) run(out, i, i, std::min(kChunk, size - i));
    return values;
  }
  const std::int64_t padded = p.padded_size(), block = p.outer == 0 ? 0 : padded / p.outer;
  auto values = std::make_unique_for_overwrite<T[]>(padded);
  T* out = values.get();
#pragma omp parallel for if (padded > kChunk && !omp_in_parallel())
  for (std::int64_t o = 0; o < p.outer; ++o) {
    std::fill_n(out + o * block, block, T{});
    for_each_padding_span(p, o, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
      run(out, from, to, count);
    });
  }
  return values;
}

template <class T>
std::unique_ptr<T[]> fill_by_table(const Operand& operand, std::int64_t size, const T* table) {
  const Padding& padding = operand.gather->padding;
  if (*container_of(*operand.format) == Container::bytes) {
    const auto* codes = static_cast<const std::uint8_t*>(operand.codes);
    return fill<T>(padding, size, [=](std::int64_t i) { return table[codes[i]]; });
  }
  const auto* codes = static_cast<const std::uint16_t*>(operand.codes);
  const std::uint64_t mask = operand.format->code_mask();
  return fill<T>(padding, size, [=](std::int64_t i) { return table[codes[i] & mask]; });
}

}  // namespace

std::optional<Container> container_of(const Format& format) {
  if (format.kind == Kind::codebook) return std::nullopt;  // no hardware multiplies arbitrary reals
  if (format.bits <= 8) return Container::bytes;
  if (format.bits <= 16) return Container::halves;
  const bool top_of_float32 = format.kind == Kind::floating && format.is_signed &&
                              format.bits + format.container_shift == 32 &&
                              format.exponent_bits == 8 && format.bias == 127 &&
                              format.specials == Specials::ieee &&
                              format.field_zero == FieldZero::subnormal;
  if (top_of_float32) return Container::floats;
  if (format.name == "float64") return Container::doubles;
  return std::nullopt;
}

void Exponents::include(const Value& value) {
  if (value.kind != Class::finite) return;
  const int lowest = value.exponent + std::countr_zero(value.significand);
  const int highest = value.exponent + std::bit_width(value.significand);
  *this = empty() ? Exponents{lowest, highest}
                  : Exponents{std::min(low, lowest), std::max(top, highest)};
}

int smallest_normal_exponent(const Format& format) {
  const bool field_zero_is_normal =
      format.field_zero == FieldZero::normal || format.field_zero == FieldZero::scale;
  return (field_zero_is_normal ? 0 : 1) - format.bias;
}

Exponents exponents_of(const Format& format) {
  if (format.kind != Kind::floating) return {0, format.bits};
  Exponents range{smallest_normal_exponent(format) - format.mantissa_bits, 0};
  const Value largest = decode(format, format.largest_code());
  range.top = largest.exponent + std::bit_width(largest.significand);
  return range;
}

bool fits_float32(const Format& format) {
  const Exponents range = exponents_of(format);
  return format.mantissa_bits <= 23 && range.low >= -149 && range.top <= 128;
}

double double_or_nan(const Value& value) {
  Exponents range;
  range.include(value);
  const bool held = range.empty() || (range.low >= -1074 && range.top <= 1024);
  return held && value.kind != Class::nan ? to_double(value)
                                          : std::numeric_limits<double>::quiet_NaN();
}

std::uint64_t code_at(const Operand& operand, std::int64_t index) {
  const Format& format = *operand.format;
  switch (*container_of(format)) {
    case Container::bytes:
      return static_cast<const std::uint8_t*>(operand.codes)[index] & format.code_mask();
    case Container::halves:
      return static_cast<const std::uint16_t*>(operand.codes)[index] & format.code_mask();
    case Container::doubles:
      return std::bit_cast<std::uint64_t>(static_cast<const double*>(operand.codes)[index]);
    case Container::floats:
      break;
  }
  const float x = static_cast<const float*>(operand.codes)[index];
  return std::uint64_t{std::bit_cast<std::uint32_t>(x)} >> format.container_shift;
}

std::int64_t source_size(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  const Gather& gather = *operand.gather;
  const auto have_rows = static_cast<std::int64_t>(gather.row.size());
  const auto have_depth = static_cast<std::int64_t>(gather.depth.size());
  if (have_rows != rows || have_depth != depth) {
    throw Error("operand gathers " + std::to_string(have_rows) + " x " +
                std::to_string(have_depth) + " elements, expected " + std::to_string(rows) + " x " +
                std::to_string(depth));
  }
  const std::int64_t needed =
      rows == 0 || depth == 0 ? 0 : reach(gather.row) + reach(gather.depth) + 1;
  const Padding& padding = gather.padding;
  if (any_negative(gather.row) || any_negative(gather.depth) ||
      (!padding.identity() && (!consistent(padding) || needed > padding.padded_size()))) {
    throw Error("operand reads outside its padded source of " +
                std::to_string(padding.padded_size()) + " elements");
  }
  return padding.identity() ? needed : padding.source_size();
}

template <class T>
Source<T> decode_source(const Operand& operand, std::int64_t rows, std::int64_t depth,
                        const std::function<T(const Value&)>& map) {
  const Format& format = *operand.format;
  const std::int64_t size = source_size(operand, rows, depth);
  Source<T> source{nullptr, operand.gather->row.data(), operand.gather->depth.data(), nullptr};
  // A byte may have any value where the format has fewer bits.
  const std::int64_t codes = std::int64_t{1} << std::clamp(format.bits, 8, 16);
  if (format.bits <= 16 && size >= codes) {
    const FloatGuard guard;
    std::vector<T> table(static_cast<std::size_t>(codes));
    for (std::size_t code = 0; code < table.size(); ++code)
      table[code] = map(decode(format, code & format.code_mask()));
    source.storage = fill_by_table(operand, size, table.data());
  } else {
    source.storage = fill<T>(operand.gather->padding, size, [&](std::int64_t i) {
      return map(decode(format, code_at(operand, i)));
    });
  }
  source.values = source.storage.get();
  return source;
}

template Source<float> decode_source(const Operand&, std::int64_t, std::int64_t,
                                     const std::function<float(const Value&)>&);
template Source<double> decode_source(const Operand&, std::int64_t, std::int64_t,
                                      const std::function<double(const Value&)>&);
template Source<std::int16_t> decode_source(const Operand&, std::int64_t, std::int64_t,
                                            const std::function<std::int16_t(const Value&)>&);
template Source<Value> decode_source(const Operand&, std::int64_t, std::int64_t,
                                     const std::function<Value(const Value&)>&);

namespace {

Source<float> decode_floats_anew(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  const Format& format = *operand.format;
  const Container container = *container_of(format);
  if (container == Container::halves || format.container_shift != 0) {
    return decode_source<float>(operand, rows, depth, [](const Value& value) {
      return static_cast<float>(double_or_nan(value));
    });
  }
  const std::int64_t size = source_size(operand, rows, depth);
  Source<float> source{nullptr, operand.gather->row.data(), operand.gather->depth.data(), nullptr};
  if (container == Container::bytes) {
    source.storage = fill_by_table(operand, size, decode_table(format));
  } else {
    const auto* values = static_cast<const float*>(operand.codes);
    source.values = values;
    if (operand.gather->padding.identity()) return source;
    source.storage = fill<float>(operand.gather->padding, size, values);
  }
  source.values = source.storage.get();
  return source;
}

Present scan_anew(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  const Format& format = *operand.format;
  const std::int64_t size = source_size(operand, rows, depth);
  Present present;
  const auto include = [&](std::uint64_t code) {
    const Value value = decode(format, code);
    present.exponents.include(value);
    present.specials |= value.kind == Class::infinite || value.kind == Class::nan;
  };
  if (format.bits > 16) {
    for (std::int64_t i = 0; i < size; ++i) include(code_at(operand, i));
    return present;
  }
  std::vector<std::uint8_t> seen(format.bits <= 8 ? 256 : std::size_t{1} << format.bits);
  if (*container_of(format) == Container::bytes) {
    const auto* codes = static_cast<const std::uint8_t*>(operand.codes);
    for (std::int64_t i = 0; i < size; ++i) seen[codes[i]] = 1;
  } else {
    for (std::int64_t i = 0; i < size; ++i) seen[code_at(operand, i)] = 1;
  }
  for (std::size_t code = 0; code < seen.size(); ++code) {
    if (seen[code]) include(code & format.code_mask());
  }
  return present;
}

}  // namespace

Source<float> decode_floats(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  return *prepared<Source<float>>(
      operand, [&](const Operand& o) { return decode_floats_anew(o, rows, depth); });
}

template <class T>
Source<T> decode_numbers(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  if constexpr (std::is_same_v<T, float>) {
    if (fits_float32(*operand.format)) return decode_floats(operand, rows, depth);
  }
  struct Numbers {
    Source<T> source;
  };
  return prepared<Numbers>(operand,
                           [&](const Operand& o) {
                             return Numbers{decode_source<T>(o, rows, depth, [](const Value& v) {
                               return static_cast<T>(double_or_nan(v));
                             })};
                           })
      ->source;
}

template Source<float> decode_numbers(const Operand&, std::int64_t, std::int64_t);
template Source<double> decode_numbers(const Operand&, std::int64_t, std::int64_t);

Present scan(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  return *prepared<Present>(operand, [&](const Operand& o) { return scan_anew(o, rows, depth); });
}

}  // namespace numemu::unit
