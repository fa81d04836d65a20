// Decoding by vectors where the format allows it, and the copy that holds flushed and padded rows.
#include "emu/unit/lanes/side.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "emu/unit/fused/prepare_values.hpp"
#include "emu/unit/prepared_operand.hpp"

namespace numemu::unit {
namespace {

bool ieee_halves(const Format& f, int mantissa_bits) {
  return f.kind == Kind::floating && f.is_signed && f.bits == 16 &&
         f.mantissa_bits == mantissa_bits && f.bias == (1 << (14 - mantissa_bits)) - 1 &&
         f.specials == Specials::ieee && f.field_zero == FieldZero::subnormal;
}

/// The unpadded source, or null where no vector loop supports the format.
std::unique_ptr<float[]> decode_unpadded(const Operand& operand, std::int64_t size) {
  const Format& format = *operand.format;
  auto values = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(size));
  if (ieee_halves(format, 10)) {
    float16_to_float32(static_cast<const std::uint16_t*>(operand.codes), size, values.get());
  } else if (ieee_halves(format, 7)) {
    bfloat16_to_float32(static_cast<const std::uint16_t*>(operand.codes), size, values.get());
  } else if (container_of(format) == Container::floats && format.container_shift != 0) {
    const auto* codes = static_cast<const std::uint32_t*>(operand.codes);
    const std::uint32_t kept = ~std::uint32_t{0} << format.container_shift;
    for (std::int64_t i = 0; i < size; ++i) values[i] = std::bit_cast<float>(codes[i] & kept);
  } else {
    return nullptr;
  }
  return values;
}

Source<float> decode_anew(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  const std::int64_t size = source_size(operand, rows, depth);
  std::unique_ptr<float[]> values = decode_unpadded(operand, size);
  if (values == nullptr) return decode_floats(operand, rows, depth);
  const Padding& padding = operand.gather->padding;
  if (!padding.identity()) {
    auto padded =
        std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(padding.padded_size()));
    pad(padding, values.get(), padded.get(), 0.0f);
    values = std::move(padded);
  }
  Source<float> source{values.get(), operand.gather->row.data(), operand.gather->depth.data(),
                       nullptr};
  source.storage = std::move(values);
  return source;
}

}  // namespace

Source<float> decode_lanes(const Operand& operand, std::int64_t rows, std::int64_t depth) {
  struct Lanes {
    Source<float> source;
  };
  return prepared<Lanes>(operand,
                         [&](const Operand& o) { return Lanes{decode_anew(o, rows, depth)}; })
      ->source;
}

Magnitudes magnitudes(const Operand& operand, const Source<float>& source, std::int64_t rows,
                      std::int64_t depth) {
  return *prepared<Magnitudes>(operand, [&](const Operand&) {
    const Padding& padding = operand.gather->padding;
    const std::int64_t size =
        padding.identity() ? source_size(operand, rows, depth) : padding.padded_size();
    const Survey found = survey(source.values, size);
    return Magnitudes{found.least, found.most};
  });
}

int lowest_bit(const Operand& operand, const Magnitudes& found) {
  const Format& f = *operand.format;
  if (found.least == ~std::uint32_t{0}) return 0;
  return std::max(top_of(found.least) - 1, 1 - f.bias) - f.mantissa_bits;
}

int top_of(std::uint32_t magnitude) {
  const auto field = static_cast<int>(magnitude >> 23);
  return field != 0 ? field - 126 : static_cast<int>(std::bit_width(magnitude)) - 149;
}

int log2_ceil(std::int64_t n) {
  return n <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
}

bool dense_copies_fit(const Gemm& g, std::int64_t instruction) {
  constexpr std::int64_t kOffsets = std::int64_t{1} << 31;
  return std::max(g.m, g.n) <= kOffsets / (g.k + instruction);
}

LaneSide::LaneSide(const Operand& operand, const Source<float>& source, std::int64_t rows,
                   std::int64_t depth, const LaneRule& rule)
    : values_(source.values), row_(source.row), depth_(source.depth) {
  const std::int64_t padded = (depth + rule.instruction - 1) / rule.instruction * rule.instruction;
  if (padded == depth && !rule.flush) return;
  dense_ = prepared<Dense>(
      operand, [&](const Operand& o) { return dense_copy(o, source, rows, depth, padded, rule); });
  values_ = dense_->values.data();
  row_ = dense_->row.data();
  depth_ = dense_->depth.data();
}

LaneSide::Dense LaneSide::dense_copy(const Operand& operand, const Source<float>& source,
                                     std::int64_t rows, std::int64_t depth, std::int64_t padded,
                                     const LaneRule& rule) {
  const float smallest = std::ldexp(1.0f, 1 - operand.format->bias);
  Dense dense;
  dense.values.resize(static_cast<std::size_t>(rows * padded));
  dense.row.resize(static_cast<std::size_t>(rows));
  dense.depth.resize(static_cast<std::size_t>(padded));
  for (std::int64_t k = 0; k < padded; ++k) dense.depth[k] = static_cast<std::int32_t>(k);
  for (std::int64_t r = 0; r < rows; ++r) {
    dense.row[r] = static_cast<std::int32_t>(r * padded);
    const float* from = source.values + source.row[r];
    float* to = dense.values.data() + r * padded;
    for (std::int64_t k = 0; k < depth; ++k) {
      float x = from[source.depth[k]];
      // By its bits: a comparison of numbers would depend on how the host treats subnormal ones.
      const bool tiny =
          (std::bit_cast<std::uint32_t>(x) & 0x7fffffff) < std::bit_cast<std::uint32_t>(smallest);
      if (rule.flush && tiny) x = rule.to_plus_zero ? 0.0f : std::copysign(0.0f, x);
      to[k] = x;
    }
  }
  return dense;
}

}  // namespace numemu::unit
