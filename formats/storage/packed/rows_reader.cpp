// Layouts whose codes are rows of the tensor: plain numbers, and codes of 4 and 8 bits under scales
// of blocks.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/storage/packed/stored_numbers.hpp"

namespace numemu {
namespace {

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Codes under scales: one for `rows` rows and `columns` elements of them, inside each matrix of
/// the last two axes. Every value is the exact product, or quotient by `divisor`, rounded once: a
/// product of at most 4 + 24 and 24 bits is exact in float64, and a quotient of such short numbers
/// is never nearer to a tie of float32 than float64 resolves.
struct ScaledRows {
  StoredPart codes;
  StoredScales scales;
  std::array<double, 256> values{};  ///< of the codes
  int bits = 8;
  std::int64_t length = 0, matrix_rows = 1, rows = 1, columns = 1, scale_columns = 1;
  bool one_scale = false;
  std::optional<StoredScales> factor = {};
  bool divides = false;

  std::int64_t scale_row(std::int64_t row) const {
    return row / matrix_rows * ceiling(matrix_rows, rows) + row % matrix_rows / rows;
  }

  void read(InputFile& file, std::int64_t first, std::int64_t count, float* out) const {
    const FloatGuard guard;
    const std::int64_t row_bytes = length * bits / 8;
    std::vector<std::uint8_t> packed(static_cast<std::size_t>(count * row_bytes));
    codes.read_bytes(file, first * row_bytes, count * row_bytes, packed.data());
    const std::int64_t from = one_scale ? 0 : scale_row(first);
    const std::int64_t scale_rows =
        one_scale || count == 0 ? 1 : scale_row(first + count - 1) - from + 1;
    const std::vector<double> own =
        scales.read(file, from * scale_columns, scale_rows * scale_columns);
    const double whole = factor ? factor->read(file, 0, 1)[0] : 1;
#pragma omp parallel for schedule(static)
    for (std::int64_t r = 0; r < count; ++r) {
      const std::uint8_t* const in = packed.data() + r * row_bytes;
      const double* const row =
          own.data() + (one_scale ? 0 : (scale_row(first + r) - from) * scale_columns);
      float* const to = out + r * length;
      for (std::int64_t k = 0; k < length; ++k) {
        const int code = bits == 8 ? in[k] : in[k / 2] >> 4 * (k % 2) & 15;
        const double value = values[static_cast<std::size_t>(code)] * row[k / columns];
        to[k] = static_cast<float>(divides ? value / whole : value * whole);
      }
    }
  }
};

PackedTensor described(const PackedGroup& group, const PackedLayout& layout, ArrayShape shape) {
  PackedTensor tensor{.name = group.name, .layout = &layout, .shape = std::move(shape)};
  tensor.count_rows();
  return tensor;
}

/// The name of the weight that scales are named after.
std::string weight_name(const std::string& codes) {
  constexpr std::string_view kPacked = "_packed";
  return codes.ends_with(kPacked) ? codes.substr(0, codes.size() - kPacked.size()) : codes;
}

StoredScales one_factor(const SafetensorsNames& names, const std::string& name,
                        const std::string& whole) {
  StoredPart part(names, names.at(name, whole));
  part.require_type({"F32"});
  if (part.elements() != 1)
    part.fail("shape: expected one scale of the tensor, found " + shape_text(part.shape()));
  return {std::move(part), StoredScales::Zero::refused};
}

template <class T, class Value>
void read_plain(const StoredPart& part, InputFile& file, std::int64_t first, std::int64_t count,
                float* out, const Value& value) {
  std::vector<T> stored(static_cast<std::size_t>(count));
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  part.read_bytes(file, first * kSize, count * kSize, stored.data());
  for (std::size_t i = 0; i < stored.size(); ++i) out[i] = static_cast<float>(value(stored[i]));
}

}  // namespace

PackedTensor open_plain(const SafetensorsNames& names, const PackedGroup& group,
                        const PackedLayout& layout) {
  const StoredPart part(names, *group.codes);
  part.require_type({"F16", "BF16", "F32", "F64"});
  PackedTensor tensor = described(group, layout, part.shape());
  tensor.stored = part.stored().format;
  tensor.read = [part, length = tensor.length](InputFile& file, std::int64_t first,
                                               std::int64_t count, float* out) {
    const FloatGuard guard;
    first *= length, count *= length;
    if (part.type() == "F32") {
      part.read_bytes(file, first * 4, count * 4, out);
    } else if (part.type() == "F64") {
      read_plain<double>(part, file, first, count, out, [](double x) { return x; });
    } else if (part.type() == "F16") {
      read_plain<std::uint16_t>(part, file, first, count, out, half_value);
    } else {
      read_plain<std::uint16_t>(part, file, first, count, out, brain_value);
    }
  };
  return tensor;
}

PackedTensor open_fp4(const SafetensorsNames& names, const PackedGroup& group,
                      const PackedLayout& layout) {
  const std::string& name = group.codes->name;
  const bool in_blocks = layout.name == "mxfp4-blocks", nv = layout.name.starts_with("nvfp4");
  const std::int64_t block = nv ? 16 : 32;
  StoredPart codes(names, *group.codes);
  codes.require_type(in_blocks ? std::vector<std::string_view>{"U8"}
                               : std::vector<std::string_view>{"U8", "F4"});
  ArrayShape shape = codes.shape();
  if (shape.empty()) codes.fail("shape: expected an axis of packed codes, found a scalar");
  std::string scale_name;
  if (in_blocks) {
    constexpr std::string_view kBlocks = "blocks";
    if (!name.ends_with(kBlocks) || shape.size() < 2 || shape.back() != block / 2)
      codes.fail(fmt::format("expected a tensor ..._blocks of shape [..., {}], found {}", block / 2,
                             shape_text(shape)));
    scale_name = name.substr(0, name.size() - kBlocks.size()) + "scales";
    shape.pop_back();
    shape.back() *= block;
  } else {
    scale_name = weight_name(name) + "_scale";
    if (codes.type() == "U8") shape.back() *= 2;
    if (shape.back() % 2 != 0)
      codes.fail("shape: expected rows of whole bytes, found " + shape_text(shape));
  }
  StoredPart scales(names, names.at(scale_name, group.name));
  scales.require_type(nv ? std::vector<std::string_view>{"F8_E4M3"}
                         : std::vector<std::string_view>{"U8", "F8_E8M0"});
  ArrayShape expected = shape;
  expected.back() = ceiling(shape.back(), block);
  scales.require_shape(expected, fmt::format("for blocks of {} of {}", block, shape_text(shape)));
  PackedTensor tensor = described(group, layout, std::move(shape));
  ScaledRows rows{.codes = std::move(codes),
                  .scales = {std::move(scales), StoredScales::Zero::allowed}};
  for (std::size_t i = 0; i < 16; ++i) rows.values[i] = static_cast<double>(e2m1_values()[i]);
  rows.bits = 4;
  rows.length = tensor.length;
  rows.columns = block;
  rows.scale_columns = expected.back();
  rows.divides = layout.name == "nvfp4-packed";
  if (rows.divides) {
    rows.factor = one_factor(names, weight_name(name) + "_global_scale", group.name);
  } else if (nv) {
    rows.factor = one_factor(names, weight_name(name) + "_scale_2", group.name);
  }
  tensor.stored = fmt::format("blocks of {}", block);
  tensor.read = [rows](InputFile& file, std::int64_t first, std::int64_t count, float* out) {
    rows.read(file, first, count, out);
  };
  return tensor;
}

namespace {

/// How many rows and columns share a scale of that shape: 0, 0 where the shape fits none.
std::pair<std::int64_t, std::int64_t> scale_block(const ArrayShape& codes, const StoredPart& part) {
  const ArrayShape& scales = part.shape();
  const std::int64_t n = codes.size() > 1 ? codes[codes.size() - 2] : 1, k = codes.back();
  const bool micro = part.type() == "U8" || part.type() == "F8_E8M0";
  if (codes.size() > 1 && scales == ArrayShape(codes.begin(), codes.end() - 1)) return {1, k};
  if (scales.size() != codes.size() || scales.size() < 2) return {0, 0};
  if (!std::equal(codes.begin(), codes.end() - 2, scales.begin())) return {0, 0};
  const std::int64_t up = scales[scales.size() - 2], across = scales.back();
  constexpr std::int64_t kMicro = 32, kTile = 128;
  if (micro && up == n && across == ceiling(k, kMicro)) return {1, kMicro};
  if (up == ceiling(n, kTile) && across == ceiling(k, kTile)) return {kTile, kTile};
  if (part.type() != "U8" && up == n && across > 0 && k % across == 0) return {1, k / across};
  return {0, 0};
}

}  // namespace

PackedTensor open_scaled(const SafetensorsNames& names, const PackedGroup& group,
                         const PackedLayout& layout) {
  StoredPart codes(names, *group.codes);
  codes.require_type({"F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I8"});
  const ArrayShape shape = codes.shape();
  const std::string weight = group.codes->name, inverse = weight + "_scale_inv";
  if (names.find(weight + "_zero_point") != nullptr)
    codes.fail("expected codes without zero points, found " + weight + "_zero_point");
  StoredPart scales(
      names, names.at(names.find(inverse) != nullptr ? inverse : weight + "_scale", group.name));
  scales.require_type({"F32", "F16", "BF16", "F8_E8M0", "U8"});
  PackedTensor tensor = described(group, layout, shape);
  ScaledRows rows{.codes = std::move(codes), .scales = {scales, StoredScales::Zero::refused}};
  rows.one_scale = scales.elements() == 1 && scales.type() != "U8";
  rows.length = tensor.length;
  rows.columns = std::max<std::int64_t>(1, tensor.length);
  tensor.stored = "a scale of the tensor";
  if (!rows.one_scale) {
    if (shape.empty())
      scales.fail("shape: expected one scale, found " + shape_text(scales.shape()));
    const auto [up, across] = scale_block(shape, scales);
    if (up == 0)
      scales.fail(
          fmt::format("shape: expected one scale, or one for rows, groups of rows or tiles "
                      "of 128 x 128 of {}, found {}",
                      shape_text(shape), shape_text(scales.shape())));
    rows.matrix_rows = shape.size() > 1 ? std::max<std::int64_t>(1, shape[shape.size() - 2]) : 1;
    rows.rows = up;
    rows.columns = std::max<std::int64_t>(1, across);
    rows.scale_columns = ceiling(tensor.length, rows.columns);
    tensor.stored = fmt::format("blocks of {} x {}", up, across);
  }
  if (rows.codes.type() == "I8") {
    for (std::size_t i = 0; i < 256; ++i)
      rows.values[i] = static_cast<std::int8_t>(static_cast<std::uint8_t>(i));
  } else {
    const float* const values = decode_table(find_format(rows.codes.stored().format));
    for (std::size_t i = 0; i < 256; ++i) rows.values[i] = static_cast<double>(values[i]);
  }
  tensor.stored = fmt::format("{}, {}", rows.codes.stored().format, tensor.stored);
  tensor.read = [rows](InputFile& file, std::int64_t first, std::int64_t count, float* out) {
    rows.read(file, first, count, out);
  };
  return tensor;
}

}  // namespace numemu
