// Number formats: what they are, numbers to codes and back, blocks with shared scales.
//
// All functions throw numemu::Error: one line that names the file, array or option and what was
// expected. Files and command lines: api/conversion_files.hpp. Errors of a format, predicted and
// measured: api/analysis.hpp.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/progress.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/blocks/block_layout.hpp"
#include "formats/codec.hpp"
#include "formats/conversion.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "formats/storage/codes.hpp"
#include "formats/storage/json.hpp"

namespace numemu::api {

/// What `numemu formats` tells of a format beside its row. find_format() and named_formats() of
/// formats/format.hpp find it; nothing stands for a limit that is no double.
struct FormatFacts {
  std::vector<std::string> aliases;
  std::optional<double> largest, smallest_normal, smallest;
  std::optional<double> lowest;  ///< of integers, which have no smallest normal number
};
FormatFacts facts_of(const Format&);
/// All that is known of a format: `numemu formats NAME --json`, without the values.
Json format_json(const Format&);
Json block_json(const BlockFormat&);
/// The format of that name, alias or descriptor; the Error offers the nearest scalar or block
/// format.
const Format& find_scalar_format(const std::string& name);
/// Whether the text is a named block format, or has the shape of a described one.
bool is_block_name(std::string_view text);

/// An array of numbers or codes; T is as wide as the type. Throws Error unless the shape has as
/// many elements.
template <class T>
Array array_of(ArrayType type, ArrayShape shape, const std::vector<T>& elements) {
  Array array(type, std::move(shape));
  if (static_cast<std::int64_t>(elements.size() * sizeof(T)) != array.data.size())
    throw Error("array: expected the elements of shape " + shape_text(array.shape));
  std::memcpy(array.data.data(), elements.data(), elements.size() * sizeof(T));
  return array;
}
/// An array without a copy: the elements outlive all that is made of the array, and stay as they
/// are.
template <class T>
Array view_of(ArrayType type, ArrayShape shape, const T* elements) {
  return Array::borrowed(type, std::move(shape), const_cast<T*>(elements));
}
/// float32 numbers as codes of float32, for encode().
Codes float32(ArrayShape shape, const std::vector<float>& numbers);
/// Codes of a format, every element checked.
Codes codes_of(const std::string& format, Array);

/// How numbers are rounded, in the words of docs/formats.md.
struct RoundingWords {
  std::string rounding = "rne";            ///< rna, rtz, rup, rdn, rodd, sr(N), sr(N,a|b|c|odd)
  std::string overflow = "saturate";       ///< or propagate, ieee
  std::optional<std::uint64_t> seed = {};  ///< of the random bits of sr(N); else 0
};

struct EncodedArray {
  Codes codes;
  Array flags;        ///< Flag bits of each element (uint8), where they were asked for
  FlagCounts counts;  ///< elements with each flag
};
/// Each number is rounded once. Integers have their full two's complement range.
EncodedArray encode(const Codes& numbers, const std::string& format, const RoundingWords& = {},
                    bool flags = false);
Conversion conversion_of(const Format&, const RoundingWords&);
EncodedArray encode(const Codes& numbers, const Conversion&, bool flags = false,
                    const OnProgress& = {});
/// encode() into arrays of the caller, of the shape of the numbers and beside them: `codes` of
/// container_type(), `flags` uint8, or none. Throws Error where they are of another type or shape.
FlagCounts encode_into(const Codes& numbers, const Conversion&, Array& codes,
                       Array* flags = nullptr, const OnProgress& = {});
/// Numbers with at most 64 significant bits, or as many as one rounding needs; element i is line
/// i + 1 of `name` in errors.
EncodedArray encode(const std::vector<Value>& numbers, const Conversion&,
                    const std::string& name = "numbers");

/// The numbers that codes mean, exactly: float32, or float64 where float32 does not hold every
/// value of the format. Throws Error where the type, if it is given, does not.
Array decode(const Codes&, const std::string& type = "", const std::string& name = "codes");
/// decode() into an array of the caller, of the shape of the codes and of decoded_type().
void decode_into(const Codes&, Array& values);
/// The format of that type.
const Format& decoded_type(const Format&, const std::string& type, const std::string& name);

/// y = decode(encode(x / scale)) * scale, float32, into an array of the caller of the shape of x;
/// scale is finite and positive. Throws Error where float32 does not hold every value of the
/// format.
FlagCounts quantize_into(const Array& x, const Conversion&, double scale, Array& y);

/// How blocks of numbers share scales.
struct QuantizeOptions {
  std::string block;      ///< "mxfp4", "nvfp4", "group(int4,128,float16)"
  int axis = -1;          ///< of the blocks or channels; negative counts from the end
  std::string rule = {};  ///< of the scales; else the block format's own
  RoundingWords words = {};
  std::string scale_round = {};   ///< of real scales: rup (never clips) or rne
  bool ignore_nonfinite = false;  ///< else a block with NaN or Inf is NaN
  bool full_range = false;        ///< use the most negative code of symmetric integers
  bool no_tensor_scale = false;   ///< 1 (nvfp4)
  /// In place of what a rule chooses: codes of the scale format (float32 ones are numbers) of
  /// BlockLayout::scale_shape, and the tensor scale.
  const Array* scales = nullptr;
  std::optional<float> tensor_scale = {};
};

/// 10 log10 of signal over noise, over the elements that are finite before and after.
struct Sqnr {
  enum class Kind : std::uint8_t { measured, infinite, undefined };
  Kind kind = Kind::undefined;
  double db = 0;
  std::int64_t finite = 0, n = 0;
  std::int64_t became_infinite = 0;  ///< finite before, not after
};

struct QuantizedArray {
  BlockQuantization how;
  BlockLayout layout;
  Array values;        ///< float32: what the codes mean
  Array codes;         ///< of how.format->element
  Array scales;        ///< of how.format->scale, layout.scale_shape; float32 ones are numbers
  Array zero_points;   ///< of an affine format: codes of the element, or float32 minima
  BlockCounts counts;  ///< with the tensor scale
};
/// Which arrays of a quantized one are filled beside the values.
struct QuantizedParts {
  bool codes = true, scales = true, zero_points = true;
};
/// x is float32.
QuantizedArray quantize(const Array& x, const QuantizeOptions&);
QuantizedArray quantize(const Array& x, const BlockQuantization&, const BlockLayout&,
                        const QuantizedParts&);
/// quantize() into the arrays of `q` that have elements, with its `how` and `layout`; fills its
/// counts.
void quantize_into(const Array& x, QuantizedArray& q);
/// Throws Error naming the array and the position where scales are not those of such blocks, or are
/// 0 though a finite element of their block of x (float32) is not.
void check_given_scales(const std::string& name, const BlockFormat&, const BlockLayout&,
                        const Array& scales, const Array& x);
/// Throws Error where such a number is no tensor scale, or the format has none.
void check_given_tensor_scale(const std::string& name, const BlockFormat&, float scale);
/// How options quantize. Throws Error for a scale rule that does not serve the block format.
BlockQuantization quantization_of(const QuantizeOptions&, const BlockFormat&, const Conversion&);
Sqnr sqnr_of(const Array& x, const Array& y);

/// The float32 numbers that codes and their scales mean.
Array dequantize(const QuantizedArray&);
/// dequantize() into an array of the caller, float32 of the shape of the codes.
void dequantize_into(const QuantizedArray&, Array& values);

}  // namespace numemu::api
