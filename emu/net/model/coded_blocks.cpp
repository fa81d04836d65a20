#include "emu/net/model/coded_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/error.hpp"
#include "formats/quantize.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu::net {
namespace {

constexpr std::string_view kBlockScale = "_scale", kBlockTensorScale = "_scale_2",
                           kBlocksKey = "_blocks", kTilesKey = "_tiles",
                           kMicroScale = "float8_e8m0fnu";

bool holds_two(const Format& element) { return element.kind != Kind::integer && element.bits == 4; }

/// Taps of a weight [out, taps.., in].
std::int64_t taps_of(const Shape& shape) {
  return element_count(shape) / std::max<std::int64_t>(1, shape.front() * shape.back());
}

/// The weight's shape with a block for each of its last axis and a band of tiles for each of its
/// first; the first axis alone where blocks run along all others.
Shape block_scale_shape(const OnnxBlocks& blocks, const Shape& shape) {
  if (blocks.rows == 1 && element_count(shape) / blocks.line == shape[0])
    return {shape[0], blocks.per_line()};
  Shape out = shape;
  out.front() = (shape[0] + blocks.rows - 1) / blocks.rows;
  out.back() = blocks.per_line();
  return out;
}

std::string float32_bytes(const std::vector<float>& x) {
  return {reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float)};
}

CodedTensor block_codes(const OnnxOperand& weight, const Shape& shape, const std::string& layer) {
  const Format& format = *weight.format;
  const OnnxBlocks& blocks = *weight.blocks;
  if (holds_two(format)) {
    if (shape.back() % 2 != 0)
      throw Error(fmt::format(
          "{}: expected an even number of inputs, two codes in a byte, found {}; leave the layer "
          "out by {{\"match\": \"{}\", \"roles\": {{\"weight\": null, \"activation\": null}}}} in "
          "layers",
          layer, shape.back(), layer));
    Shape halved = shape;
    halved.back() /= 2;
    std::string bytes;
    for (std::size_t i = 0; i < weight.codes.size(); i += 2)
      bytes += static_cast<char>((weight.codes[i] & 15) | (weight.codes[i + 1] & 15) << 4);
    return {"", "U8", halved, std::move(bytes)};
  }
  if (format.kind != Kind::integer) {
    const OnnxType type = *storage_type(format);
    return {"", safetensors_type_of_format(find_format(float8_format(type)).name)->name, shape,
            stored_codes(format, type, weight.codes)};
  }
  std::string bytes;
  for (std::size_t i = 0; i < weight.codes.size(); ++i) {
    const int unused = 32 - format.bits;
    const std::uint32_t word = static_cast<std::uint32_t>(weight.codes[i]) << unused;
    const std::int32_t code = format.is_signed ? static_cast<std::int32_t>(word) >> unused
                                               : static_cast<std::int32_t>(word >> unused);
    const auto block = static_cast<std::size_t>(blocks.block_of(static_cast<std::int64_t>(i)));
    const std::int32_t zero = blocks.zero_points.empty() ? 0 : blocks.zero_points[block];
    if (code - zero < -128 || code - zero > 127)
      throw Error(fmt::format("{}: codes of {} less their zero points exceed 8 bits", layer,
                              blocks.format->name));
    bytes += static_cast<char>(code - zero);
  }
  return {"", "I8", shape, std::move(bytes)};
}

/// Without the tensor scale.
CodedTensor block_scales(const OnnxOperand& weight, const Shape& weight_shape) {
  const OnnxBlocks& blocks = *weight.blocks;
  const Shape shape = block_scale_shape(blocks, weight_shape);
  const Format& format = *blocks.format->scale;
  const std::string end(kBlockScale);
  const SafetensorsType* const type = safetensors_type_of_format(format.name);
  const bool as_codes = blocks.format->element_exponent == 0 && !blocks.scale_codes.empty() &&
                        blocks.rows == 1 && (type != nullptr || format.name == kMicroScale);
  if (as_codes)
    return {end,
            format.name == kMicroScale ? "U8" : type->name,
            shape,
            {blocks.scale_codes.begin(), blocks.scale_codes.end()}};
  std::vector<float> scales;
  const std::int64_t per_line = blocks.per_line(),
                     taps = blocks.rows == 1 ? 1 : taps_of(weight_shape),
                     lines = std::ssize(weight.scales) / per_line;
  for (std::int64_t band = 0; band < lines; band += blocks.rows * taps)
    for (std::int64_t line = band; line < band + taps; ++line)
      for (std::int64_t b = 0; b < per_line; ++b)
        scales.push_back(weight.scales[static_cast<std::size_t>(line * per_line + b)] /
                         blocks.tensor_scale);
  return {end, "F32", shape, float32_bytes(scales)};
}

[[noreturn]] void fail_blocks(const std::string& path, const std::string& tensor,
                              const std::string& expected) {
  throw Error(fmt::format("{}: tensor {}: expected {}", path, quote_name(tensor), expected));
}

const BlockFormat& block_format_named(const std::string& path, const std::string& key,
                                      const std::string& name) {
  // A codebook's name is that of a file, which metadata must not open.
  if (name.find("codebook") == std::string::npos) {
    try {
      const BlockFormat& format = find_block_format(name);
      if (format.affine != Affine::min && format.element->bits <= 8 &&
          (format.span == Span::block || format.span == Span::tile))
        return format;
    } catch (const Error&) {
    }
  }
  throw Error(fmt::format("{}: metadata: {}: expected a format of blocks, found {}", path,
                          quote_name(key), quote_name(name)));
}

/// Two codes of a byte each become their values.
Tensor two_of_each(const std::string& path, const std::string& name, const Format& element,
                   const Tensor& bytes) {
  if (bytes.shape.empty()) fail_blocks(path, name, "axes");
  Shape shape = bytes.shape;
  shape.back() *= 2;
  Tensor out(shape);
  const float* const table = decode_table(element);
  for (std::int64_t i = 0; i < bytes.size(); ++i) {
    const float x = bytes.data[static_cast<std::size_t>(i)];
    if (!(x >= 0 && x <= 255)) fail_blocks(path, name, "codes in bytes of U8");
    const auto byte = static_cast<unsigned>(x);
    out.data[static_cast<std::size_t>(2 * i)] = table[byte & 15];
    out.data[static_cast<std::size_t>(2 * i + 1)] = table[byte >> 4];
  }
  return out;
}

}  // namespace

std::string_view blocks_key(const OnnxBlocks& blocks) {
  return blocks.rows > 1 ? kTilesKey : kBlocksKey;
}

std::vector<CodedTensor> block_tensors(const OnnxOperand& weight, const Shape& shape,
                                       const std::string& layer) {
  const OnnxBlocks& blocks = *weight.blocks;
  std::vector<CodedTensor> out = {block_codes(weight, shape, layer), block_scales(weight, shape)};
  if (blocks.format->tensor_scale)
    out.push_back(
        {std::string(kBlockTensorScale), "F32", {}, float32_bytes({blocks.tensor_scale})});
  return out;
}

Tensor decoded_blocks(const std::string& path, const std::string& name,
                      const std::function<const std::string*(const std::string& key)>& metadata,
                      const std::function<Tensor(const std::string& name)>& take) {
  const std::string *text = nullptr, blocks = name + std::string(kBlocksKey),
                    tiles = name + std::string(kTilesKey),
                    scale_name = name + std::string(kBlockScale);
  const bool in_tiles = (text = metadata(tiles)) != nullptr;
  if (!in_tiles && (text = metadata(blocks)) == nullptr) return {};
  const BlockFormat& format = block_format_named(path, in_tiles ? tiles : blocks, *text);
  Tensor weight = take(name);
  if (holds_two(*format.element)) weight = two_of_each(path, name, *format.element, weight);
  const Tensor scale = take(scale_name);
  float tensor_scale = 1;
  if (format.tensor_scale) {
    const std::string whole = name + std::string(kBlockTensorScale);
    const Tensor given = take(whole);
    if (given.size() != 1 || !(given.data[0] > 0) || !std::isfinite(given.data[0]))
      fail_blocks(path, whole, "one positive and finite scale");
    tensor_scale = given.data[0];
  }
  if (weight.shape.empty() || scale.shape.size() < 2)
    fail_blocks(path, scale_name, "scales of lines and blocks");
  const std::int64_t lines = scale.size() / std::max<std::int64_t>(1, scale.shape.back()),
                     outputs = weight.dim(0);
  OnnxBlocks lay{.format = &format, .line = weight.shape.back(), .size = format.size};
  if (in_tiles)
    lay.rows =
        std::min<std::int64_t>(outputs, format.span == Span::tile ? format.rows : format.size);
  const bool whole_line = !in_tiles && lines == outputs;
  if (whole_line) lay.line = weight.size() / std::max<std::int64_t>(1, lines);
  const std::int64_t taps = whole_line ? 1 : taps_of(weight.shape);
  if (weight.empty() || scale.shape.back() != lay.per_line() ||
      lines != (outputs + lay.rows - 1) / lay.rows * taps)
    fail_blocks(
        path, scale_name,
        fmt::format("scales of blocks of {} elements of {}", format.size, to_string(weight.shape)));
  const bool micro = format.scale->name == kMicroScale && format.element_exponent == 0;
  std::vector<double> factors;
  for (const float x : scale.data) {
    const bool bad = micro ? !(x >= 0 && x < 255) : !(x >= 0) || !std::isfinite(x);
    if (bad || (!micro && x == 0 && !format.tensor_scale))
      fail_blocks(path, scale_name, "positive and finite scales");
    // E8M0 lies in bytes, whose numbers are exponents.
    factors.push_back(micro ? std::ldexp(1.0, static_cast<int>(x) - 127) : double{x});
  }
  const auto most = static_cast<float>(largest_value(*format.element));
  for (std::int64_t i = 0; i < weight.size(); ++i) {
    const std::int64_t row = i / lay.line, line = row / taps / lay.rows * taps + row % taps,
                       block = i % lay.line / lay.size;
    float& value = weight.data[static_cast<std::size_t>(i)];
    const bool largest = std::fabs(value) == most && !format.tensor_scale;
    // At most 8 bits of an element and 24 of a scale: their product is exact in float64, and with
    // the tensor scale's 24 rounded once.
    const double number =
        value * factors[static_cast<std::size_t>(line * lay.per_line() + block)] * tensor_scale;
    value = static_cast<float>(number);
    // Scales without a tensor scale are rounded upward. Beyond the largest code times its scale the
    // rule absmax would choose the next one; the float32 at or before it has this one, as what was
    // quantized had.
    if (largest && std::fabs(double{value}) > std::fabs(number))
      value = std::nextafter(value, 0.0f);
  }
  return weight;
}

}  // namespace numemu::net
