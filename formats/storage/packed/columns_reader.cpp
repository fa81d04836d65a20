// Integer codes in words of 32 bits, less zero points, under scales of groups of inputs: GPTQ and
// AWQ, which pack columns of the transposed weight, and the rows of compressed-tensors. A product
// of a float32 and a difference of codes is exact in float64.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/storage/packed/stored_numbers.hpp"

namespace numemu {
namespace {

constexpr std::int64_t kWordBits = 32;
const std::vector<std::string_view> kWordTypes = {"I32", "U32"};
const std::vector<std::string_view> kGroupScaleTypes = {"F16", "BF16", "F32"};

/// Bits at .. at + bits - 1 of a little-endian stream of words, each `stride` after the one before.
std::uint32_t code_in(const std::uint32_t* words, std::int64_t stride, std::int64_t at, int bits) {
  const std::int64_t word = at / kWordBits;
  const int shift = static_cast<int>(at % kWordBits);
  std::uint32_t code = words[word * stride] >> shift;
  if (shift + bits > kWordBits) code |= words[(word + 1) * stride] << (kWordBits - shift);
  return code & ((std::uint32_t{1} << bits) - 1);
}

/// Of each input, its group.
class Groups {
 public:
  /// `order`: the stored group of each input; without, all have the same size.
  Groups(std::int64_t inputs, std::int64_t groups, const StoredPart& scales,
         std::optional<StoredPart> order)
      : inputs_(inputs), groups_(groups), order_(std::move(order)) {
    if (order_) {
      order_->require_type(kWordTypes);
      order_->require_shape({inputs}, "for so many inputs");
    } else if (groups < 1 || inputs % groups != 0) {
      scales.fail(fmt::format(
          "shape: expected scales of groups of one size for {} inputs (or g_idx), found {}", inputs,
          shape_text(scales.shape())));
    }
  }
  std::vector<std::int64_t> read(InputFile& file) const {
    std::vector<std::int64_t> out(static_cast<std::size_t>(inputs_));
    if (!order_) {
      for (std::int64_t k = 0; k < inputs_; ++k)
        out[static_cast<std::size_t>(k)] = k / (inputs_ / groups_);
      return out;
    }
    const std::vector<std::uint32_t> stored = order_->words(file, 0, inputs_);
    for (std::size_t k = 0; k < stored.size(); ++k) {
      if (stored[k] >= static_cast<std::uint64_t>(groups_))
        order_->fail(fmt::format("element {}: expected a group of 0..{}, found {}", k, groups_ - 1,
                                 static_cast<std::int32_t>(stored[k])));
      out[k] = stored[k];
    }
    return out;
  }
  std::string text() const {
    return order_ ? fmt::format("{} groups by g_idx", groups_)
                  : fmt::format("groups of {}", inputs_ / std::max<std::int64_t>(1, groups_));
  }

 private:
  std::int64_t inputs_, groups_;
  std::optional<StoredPart> order_;
};

std::optional<StoredPart> optional_part(const SafetensorsNames& names, const std::string& name) {
  const SafetensorsEntry* const entry = names.find(name);
  if (entry == nullptr) return std::nullopt;
  return StoredPart(names, *entry);
}

StoredPart matrix(StoredPart part, const std::vector<std::string_view>& types) {
  part.require_type(types);
  if (part.shape().size() != 2 || part.elements() == 0)
    part.fail("shape: expected a matrix with elements, found " + shape_text(part.shape()));
  return part;
}

/// The tensor whose elements `packed` reads.
template <class Packed>
PackedTensor tensor_of(const PackedGroup& group, const PackedLayout& layout, ArrayShape shape,
                       Packed packed) {
  PackedTensor tensor{.name = group.name, .layout = &layout, .shape = std::move(shape)};
  tensor.count_rows();
  tensor.stored = fmt::format("{} bits, {}", packed.bits, packed.groups.text());
  tensor.read = [packed = std::move(packed)](InputFile& file, std::int64_t first,
                                             std::int64_t count,
                                             float* out) { packed.read(file, first, count, out); };
  return tensor;
}

/// A [K, N] matrix, the transposed weight. GPTQ packs along K, AWQ along N.
struct PackedColumns {
  StoredPart codes;
  StoredScales scales;
  std::optional<StoredPart> zeros;
  Groups groups;
  std::int64_t inputs, outputs, group_count;
  int bits;
  bool awq, less_one;

  /// The elements of columns c0 .. c1 - 1 of `rows` rows of a stored matrix of `columns`.
  static std::vector<std::uint32_t> strip(const StoredPart& part, InputFile& file,
                                          std::int64_t rows, std::int64_t columns, std::int64_t c0,
                                          std::int64_t c1) {
    if (c0 == 0 && c1 == columns) return part.words(file, 0, rows * columns);
    std::vector<std::uint32_t> out(static_cast<std::size_t>(rows * (c1 - c0)));
    for (std::int64_t r = 0; r < rows; ++r)
      part.read_bytes(file, (r * columns + c0) * 4, (c1 - c0) * 4, out.data() + r * (c1 - c0));
    return out;
  }

  /// Where AWQ has column n of a word of eight.
  static std::int64_t place(std::int64_t n) {
    constexpr std::array<std::int64_t, 8> kPlaces = {0, 4, 1, 5, 2, 6, 3, 7};
    return n / 8 * 8 + kPlaces[static_cast<std::size_t>(n % 8)];
  }

  void read(InputFile& file, std::int64_t first, std::int64_t count, float* out) const {
    if (count == 0) return;
    const FloatGuard guard;
    // Whole words of codes of 3 bits, too.
    const std::int64_t c0 = first / kWordBits * kWordBits;
    const std::int64_t c1 =
        std::min(outputs, (first + count + kWordBits - 1) / kWordBits * kWordBits);
    const std::int64_t width = c1 - c0, per = bits;
    const auto packed = [&](std::int64_t n) { return n * per / kWordBits; };
    const std::int64_t stride = awq ? packed(width) : width;
    const std::vector<std::uint32_t> words =
        awq ? strip(codes, file, inputs, packed(outputs), packed(c0), packed(c1))
            : strip(codes, file, packed(inputs), outputs, c0, c1);
    const std::vector<std::uint32_t> zero_words =
        zeros ? strip(*zeros, file, group_count, packed(outputs), packed(c0), packed(c1))
              : std::vector<std::uint32_t>();
    std::vector<double> own(static_cast<std::size_t>(group_count * width));
    for (std::int64_t g = 0; g < group_count; ++g)
      std::ranges::copy(scales.read(file, g * outputs + c0, width), own.begin() + g * width);
    const std::vector<std::int64_t> group_of = groups.read(file);
#pragma omp parallel for schedule(static)
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t n = first - c0 + j, at = (awq ? place(n) : n) * per;
      std::vector<std::int64_t> zero(static_cast<std::size_t>(group_count),
                                     std::int64_t{1} << (bits - 1));
      for (std::int64_t g = 0; zeros && g < group_count; ++g)
        zero[static_cast<std::size_t>(g)] =
            code_in(zero_words.data() + g * packed(width), 1, at, bits) + (less_one ? 1 : 0);
      float* const to = out + j * inputs;
      for (std::int64_t k = 0; k < inputs; ++k) {
        const std::int64_t code = awq ? code_in(words.data() + k * stride, 1, at, bits)
                                      : code_in(words.data() + n, stride, k * per, bits);
        const std::int64_t g = group_of[static_cast<std::size_t>(k)];
        to[k] = static_cast<float>(static_cast<double>(code - zero[static_cast<std::size_t>(g)]) *
                                   own[static_cast<std::size_t>(g * width + n)]);
      }
    }
  }
};

bool is_group_width(std::int64_t bits) { return bits == 2 || bits == 3 || bits == 4 || bits == 8; }

/// Bits of a code: `words` of them hold `codes`. 0: no width fits.
int width_of(std::int64_t words, std::int64_t codes) {
  if (codes < 1 || words > codes) return 0;
  const std::int64_t bits = words * kWordBits / codes;
  return is_group_width(bits) && bits * codes == words * kWordBits ? static_cast<int>(bits) : 0;
}

}  // namespace

PackedTensor open_columns(const SafetensorsNames& names, const PackedGroup& group,
                          const PackedLayout& layout) {
  constexpr std::string_view kEnd = "qweight";
  const std::string& name = group.codes->name;
  StoredPart codes = matrix({names, *group.codes}, kWordTypes);
  if (!name.ends_with(kEnd)) codes.fail("expected a tensor X.qweight for " + layout.name);
  const std::string layer = name.substr(0, name.size() - kEnd.size());
  const StoredPart scales =
      matrix({names, names.at(layer + "scales", group.name)}, kGroupScaleTypes);
  const std::int64_t groups = scales.shape()[0], outputs = scales.shape()[1];
  const bool awq = layout.name == "awq";
  const std::string of = fmt::format("for scales of shape {}", shape_text(scales.shape()));
  std::optional<StoredPart> zeros = optional_part(names, layer + "qzeros"),
                            order = optional_part(names, layer + "g_idx");
  if (awq) order.reset();
  if (zeros) zeros = matrix(*zeros, kWordTypes);
  int bits = 4;
  if (!awq) {
    const std::int64_t inputs = order ? order->elements() : 0;
    bits = zeros ? width_of(zeros->shape()[1], outputs) : width_of(codes.shape()[0], inputs);
    if (bits == 0)
      (zeros ? *zeros : codes)
          .fail(fmt::format("shape: expected codes of 2, 3, 4 or 8 bits {}{}, found {}", of,
                            zeros ? "" : " and as many inputs as X.g_idx",
                            shape_text((zeros ? *zeros : codes).shape())));
  }
  const std::int64_t word_columns = outputs * bits / kWordBits;
  if (outputs * bits % kWordBits != 0)
    scales.fail(fmt::format("shape: expected outputs in whole words of {} bits, found {}",
                            kWordBits, shape_text(scales.shape())));
  if (zeros) zeros->require_shape({groups, word_columns}, of);
  const std::int64_t words = codes.shape()[0];
  codes.require_shape({words, awq ? word_columns : outputs}, of);
  const std::int64_t inputs = awq ? words : words * kWordBits / bits;
  if (!awq && words * kWordBits % bits != 0)
    codes.fail(fmt::format("shape: expected whole codes of {} bits, found {}", bits,
                           shape_text(codes.shape())));
  const Groups by_group(inputs, groups, scales, order);
  PackedTensor tensor = tensor_of(group, layout, {outputs, inputs},
                                  PackedColumns{std::move(codes),
                                                {scales, StoredScales::Zero::allowed},
                                                zeros,
                                                by_group,
                                                inputs,
                                                outputs,
                                                groups,
                                                bits,
                                                awq,
                                                layout.name == "gptq"});
  if (!zeros)
    tensor.stored +=
        fmt::format(", zero point {} (no {}qzeros)", std::int64_t{1} << (bits - 1), layer);
  return tensor;
}

namespace {

/// A [N, K] matrix packed along K.
struct PackedRowsOfWords {
  StoredPart codes;
  StoredScales scales;
  std::optional<StoredPart> zeros;  ///< packed along N
  Groups groups;
  std::int64_t inputs, words, group_count;
  int bits;

  void read(InputFile& file, std::int64_t first, std::int64_t count, float* out) const {
    if (count == 0) return;
    const FloatGuard guard;
    const std::vector<std::uint32_t> rows = codes.words(file, first * words, count * words);
    const std::vector<double> own = scales.read(file, first * group_count, count * group_count);
    const std::int64_t zero_row = first * bits / kWordBits,
                       zero_end = (first + count) * bits / kWordBits +
                                  ((first + count) * bits % kWordBits != 0 ? 1 : 0);
    const std::vector<std::uint32_t> zero_words =
        zeros ? zeros->words(file, zero_row * group_count, (zero_end - zero_row) * group_count)
              : std::vector<std::uint32_t>();
    const std::vector<std::int64_t> group_of = groups.read(file);
#pragma omp parallel for schedule(static)
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t zero_bit = (first + j) * bits - zero_row * kWordBits;
      for (std::int64_t k = 0; k < inputs; ++k) {
        const std::int64_t g = group_of[static_cast<std::size_t>(k)];
        const std::int64_t zero = zeros
                                      ? code_in(zero_words.data() + g, group_count, zero_bit, bits)
                                      : std::int64_t{1} << (bits - 1);
        const std::int64_t code = code_in(rows.data() + j * words, 1, k * bits, bits);
        out[j * inputs + k] = static_cast<float>(
            static_cast<double>(code - zero) * own[static_cast<std::size_t>(j * group_count + g)]);
      }
    }
  }
};

/// The two numbers of W_shape.
ArrayShape stored_shape(const SafetensorsNames& names, const std::string& name,
                        const std::string& whole) {
  const StoredPart part(names, names.at(name, whole));
  part.require_type({"I64", "I32"});
  part.require_shape({2}, "for the outputs and inputs");
  InputFile file(names.path());
  ArrayShape shape(2);
  if (part.type() == "I64") {
    part.read_bytes(file, 0, 16, shape.data());
  } else {
    std::array<std::int32_t, 2> stored{};
    part.read_bytes(file, 0, 8, stored.data());
    shape.assign(stored.begin(), stored.end());
  }
  for (const std::int64_t extent : shape)
    if (extent < 1 || extent > INT64_MAX / 16)
      part.fail("expected positive extents, found " + shape_text(shape));
  return shape;
}

}  // namespace

PackedTensor open_packed_rows(const SafetensorsNames& names, const PackedGroup& group,
                              const PackedLayout& layout) {
  constexpr std::string_view kEnd = "_packed";
  const std::string& name = group.codes->name;
  StoredPart codes = matrix({names, *group.codes}, kWordTypes);
  if (!name.ends_with(kEnd)) codes.fail("expected a tensor W_packed for " + layout.name);
  const std::string weight = name.substr(0, name.size() - kEnd.size());
  const ArrayShape shape = stored_shape(names, weight + "_shape", group.name);
  const std::int64_t outputs = shape[0], inputs = shape[1], words = codes.shape()[1];
  const std::string of = fmt::format("for a weight of shape {}", shape_text(shape));
  int bits = 0;
  for (const int width : {4, 8, 2}) {
    if (bits == 0 && (inputs * width + kWordBits - 1) / kWordBits == words) bits = width;
  }
  if (bits == 0 || codes.shape()[0] != outputs)
    codes.fail(fmt::format("shape: expected rows of codes of 2, 4 or 8 bits {}, found {}", of,
                           shape_text(codes.shape())));
  const StoredPart scales =
      matrix({names, names.at(weight + "_scale", group.name)}, kGroupScaleTypes);
  const std::int64_t groups = scales.shape()[1];
  scales.require_shape({outputs, groups}, of);
  std::optional<StoredPart> zeros = optional_part(names, weight + "_zero_point");
  if (zeros) {
    zeros->require_type(kWordTypes);
    zeros->require_shape({(outputs * bits + kWordBits - 1) / kWordBits, groups}, of);
  }
  const Groups by_group(inputs, groups, scales, optional_part(names, weight + "_g_idx"));
  return tensor_of(group, layout, shape,
                   PackedRowsOfWords{std::move(codes),
                                     {scales, StoredScales::Zero::allowed},
                                     zeros,
                                     by_group,
                                     inputs,
                                     words,
                                     groups,
                                     bits});
}

}  // namespace numemu
