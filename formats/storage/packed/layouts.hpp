// In which layouts programs store quantized tensors; one tensor in such a layout, read by rows; and
// which stored tensors of a safetensors file make one up.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/storage/array.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu {

/// What reads the layout.
enum class PackedReader : std::uint8_t { plain, columns, packed_rows, fp4, scaled, ggml };

/// A row of layouts.def. The texts are for people.
struct PackedLayout {
  std::string name;  ///< "gptq-v2"
  PackedReader reader;
  int ggml_type;  ///< -1: of safetensors files
  std::string_view elements, bits, scales, tensors, source;

  std::string_view file() const { return ggml_type < 0 ? "safetensors" : "GGUF"; }
};

std::span<const PackedLayout> packed_layouts();
/// Throws Error with the nearest name.
const PackedLayout& find_packed_layout(std::string_view name);
/// The layout of a type of ggml; null for one that is not read.
const PackedLayout* ggml_layout(std::uint32_t type);

/// A tensor as its users see it, of one or several stored ones whose shapes fit each other.
struct PackedTensor {
  std::string name;
  const PackedLayout* layout = nullptr;
  ArrayShape shape;  ///< of a layer's weight: outputs, inputs
  /// Rows along the last axis, those of all other axes together; a scalar is one row of one.
  std::int64_t rows = 1, length = 1;
  std::string stored = {};  ///< "3 bits, groups of 128": what the layout leaves open
  /// Writes rows first .. first + count - 1 as float32: the exact value of what is stored, rounded
  /// once to nearest even. Throws Error naming the file, the stored tensor and the place of a scale
  /// that none may have: NaN, infinite, negative (but for GGUF's float16), and zero where it
  /// divides or is that of floats of 8 bits.
  std::function<void(InputFile&, std::int64_t first, std::int64_t count, float* out)> read = {};

  std::int64_t elements() const { return rows * length; }
  /// Sets rows and length by the shape.
  void count_rows();
};

/// Rows that are read at a time, so that they take about `bytes` as float32; at least one.
std::int64_t rows_at_once(const PackedTensor&, std::int64_t bytes);

/// The header of an open file, by name.
class SafetensorsNames {
 public:
  /// `data` is the file's byte at which the data begin.
  SafetensorsNames(std::string path, std::int64_t data, const SafetensorsHeader& header);

  const std::string& path() const { return path_; }
  /// The file's byte at which an entry begins.
  std::int64_t begin(const SafetensorsEntry& entry) const { return data_ + entry.begin; }
  /// Null where there is none.
  const SafetensorsEntry* find(const std::string& name) const;
  /// Throws Error naming the tensor that it belongs to, where there is none.
  const SafetensorsEntry& at(const std::string& name, const std::string& whole) const;

 private:
  std::string path_;
  std::int64_t data_;
  std::vector<const SafetensorsEntry*> sorted_;
};

/// A tensor as its users see it, by the stored one that has its codes.
struct PackedGroup {
  std::string name;                      ///< "fc1.weight" of "fc1.qweight"
  const SafetensorsEntry* codes;         ///< never null
  const PackedLayout* layout = nullptr;  ///< as names, types and shapes say it; null: none fits
};

/// All of a file, in its order. Scales, zero points and what else belongs to codes are no tensors
/// of their own; scales of activations and caches are left out.
std::vector<PackedGroup> packed_groups(const SafetensorsNames&, const SafetensorsHeader&);

/// The scales beside a weight of plain floats; null for most. Such a weight is one that a quantizer
/// has still to round, or has rounded already: the file does not say.
const SafetensorsEntry* scales_of_float(const SafetensorsNames&, const SafetensorsEntry&);

/// The tensor, in a layout that may be another than the group's. Throws Error naming the file, the
/// stored tensor and what does not fit.
PackedTensor open_packed(const SafetensorsNames&, const PackedGroup&, const PackedLayout&);

}  // namespace numemu
