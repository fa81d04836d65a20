// Stored tensors of scales and codes as the readers of layouts take them: checked, in parts.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/codec.hpp"
#include "formats/quantize.hpp"
#include "formats/storage/packed/layouts.hpp"

namespace numemu {

// Numbers as checkpoints store them, exact in float64.

/// Normal powers only.
inline double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// A float16.
inline double half_value(std::uint16_t bits) {
  static const std::vector<float> kValues = [] {
    std::vector<float> values(1 << 16);
    const Format& half = find_format("float16");
    for (std::uint32_t code = 0; code < values.size(); ++code)
      values[code] = nearest_float(decode(half, code));
    return values;
  }();
  return kValues[bits];
}

/// A bfloat16.
inline float brain_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// The values of the 16 codes of float4_e2m1fn.
inline const float* e2m1_values() {
  static const float* const kValues = decode_table(find_format("float4_e2m1fn"));
  return kValues;
}

/// Throws Error "PATH: tensor 'NAME': TEXT".
[[noreturn]] void fail_tensor(const std::string& path, const std::string& name,
                              const std::string& text);

/// A stored tensor, apart from the header that described it.
class StoredPart {
 public:
  StoredPart(const SafetensorsNames&, const SafetensorsEntry&);

  [[noreturn]] void fail(const std::string& text) const { fail_tensor(path_, name_, text); }
  void require_type(const std::vector<std::string_view>& accepted) const;
  /// `of`: what decides the shape.
  void require_shape(const ArrayShape& expected, const std::string& of) const;
  /// Its whole bytes `first` .. `first + count - 1` to `out`.
  void read_bytes(InputFile& file, std::int64_t first, std::int64_t count, void* out) const {
    if (count > 0) file.read_at(begin_ + first, out, count);
  }
  /// Numbers of integers of 32 bits.
  std::vector<std::uint32_t> words(InputFile&, std::int64_t first, std::int64_t count) const;

  const ArrayShape& shape() const { return shape_; }
  std::int64_t elements() const { return elements_; }
  std::string_view type() const { return type_->name; }
  const SafetensorsType& stored() const { return *type_; }

 private:
  std::string path_, name_;
  const SafetensorsType* type_;
  ArrayShape shape_;
  std::int64_t elements_, begin_;
};

/// Scales, in float64: exact.
class StoredScales {
 public:
  /// What a scale may be, besides positive and finite.
  enum class Zero : std::uint8_t { allowed, refused };
  /// Types: F16, BF16, F32, F8_E4M3, F8_E8M0, and U8 for E8M0.
  StoredScales(StoredPart part, Zero zero) : part_(std::move(part)), zero_(zero) {}

  /// Throws Error naming the first element that no scale may be.
  std::vector<double> read(InputFile&, std::int64_t first, std::int64_t count) const;
  const StoredPart& part() const { return part_; }

 private:
  StoredPart part_;
  Zero zero_;
};

// Each fits one kind of layouts (layouts.def) to the stored tensors.
PackedTensor open_plain(const SafetensorsNames&, const PackedGroup&, const PackedLayout&);
PackedTensor open_fp4(const SafetensorsNames&, const PackedGroup&, const PackedLayout&);
PackedTensor open_scaled(const SafetensorsNames&, const PackedGroup&, const PackedLayout&);
PackedTensor open_columns(const SafetensorsNames&, const PackedGroup&, const PackedLayout&);
PackedTensor open_packed_rows(const SafetensorsNames&, const PackedGroup&, const PackedLayout&);

}  // namespace numemu
