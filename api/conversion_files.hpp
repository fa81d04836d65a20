// Files of numbers and codes as the commands encode, decode, quantize and dequantize convert them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/formats.hpp"
#include "formats/convert.hpp"
#include "formats/storage/packed/packed_file.hpp"
#include "formats/storage/sidecar.hpp"

namespace numemu::api {

/// What is wrong with a request is refused before anything is read; an Error names the option of
/// the command that has the member's name.
struct EncodeRequest {
  std::string format, in, out;
  std::string from;    ///< format of the codes in `in`; "": plain numbers, or the sidecar's
  std::string flags;   ///< file of exception flags; "": none
  std::string order;   ///< of packed codes: low-first or high-first
  std::string tensor;  ///< of a .safetensors file
  RoundingWords words;
  std::string random_bits;  ///< file of uint32 words for sr(N), one an element; "": by the seed
  bool packed = false;      ///< codes of 1 to 8 bits
  bool text = false;        ///< `in` has a number a line; "-" is standard input
  bool hex_codes = false;   ///< it has a code of `from` a line
  bool dry_run = false;     ///< look at the numbers, convert and write nothing
};
struct EncodedFile {
  std::string from;    ///< format of what was encoded, or "text"
  std::int64_t n = 0;  ///< elements
  ConversionPath path = ConversionPath::reference;
  EncodedArray encoded;  ///< as written; empty after a dry run
  Sidecar about;
};
EncodedFile encode_file(const EncodeRequest&, const OnProgress& = {});

struct DecodeRequest {
  std::string format;  ///< "": the sidecar's
  std::string in;
  std::string out;   ///< also of text; "-" is standard output, which is left to the caller
  std::string type;  ///< float32, float64; "": the first that is exact for every value
  std::string order, tensor;
  bool packed = false;     ///< else as the sidecar says
  bool text = false;       ///< write one hexadecimal float a line
  bool hex_codes = false;  ///< `in` has one code of the format a line

  bool to_stdout() const { return text && out == "-"; }
};
/// Codes that were read and can be written as asked for.
struct DecodedFile {
  Codes codes;
  const Format* type = nullptr;  ///< of the numbers; null: text
};
DecodedFile read_to_decode(const DecodeRequest&);
/// Writes the numbers, unless they are text for standard output (text_of_numbers()).
void write_decoded(const DecodeRequest&, const DecodedFile&);

/// A block format by name, or as an element format with a granularity and float32 scales.
struct BlockTold {
  std::string block, format, granularity;
  std::optional<std::int64_t> size = {};  ///< of --granularity block; else 32
  std::string tile = {};                  ///< of --granularity tile: "ROWS,COLUMNS"; else 128,128
  std::optional<std::int64_t> axis = {};  ///< else the last one

  int axis_or_last() const { return static_cast<int>(axis.value_or(-1)); }
};
/// Throws Error where nothing is named, or what is contradicts.
const BlockFormat& block_format_of(const BlockTold&);

/// Files of the parts of quantized numbers; "": none.
struct BlockFiles {
  std::string codes, scales, tensor_scale, zero_points;
};
struct QuantizeRequest {
  BlockTold block;
  std::string in, from, out;  ///< `out` has the quantized numbers
  BlockFiles parts;
  std::string scales_in, tensor_scale_in;  ///< files of given scales; "": the rule chooses
  QuantizeOptions options;                 ///< its block, axis and scales are those above
  std::string random_bits;
};
struct QuantizedFile {
  QuantizedArray quantized;
  Sidecar about;
  Array numbers;        ///< as read
  std::string missing;  ///< options whose files decoding would need, too; "": none
};
QuantizedFile quantize_file(const QuantizeRequest&);

struct DequantizeRequest {
  BlockTold block;
  BlockFiles parts;
  std::string out;
  bool no_tensor_scale = false;  ///< it is 1
};
struct DequantizedFile {
  const BlockFormat* format = nullptr;
  BlockLayout layout;
  Array numbers;
};
DequantizedFile dequantize_file(const DequantizeRequest&);

/// A quantized tensor of another program's checkpoint, safetensors or GGUF.
struct UnpackRequest {
  std::string in, out;
  std::string tensor = {};  ///< "": the only one
  std::string layout = {};  ///< of packed_layouts(); "": as the file says
  std::int64_t memory = 0;  ///< most bytes for a part of the tensor; 0: as many as are quick
};
struct UnpackedFile {
  PackedTensor tensor;
};
/// Writes its numbers as float32, part by part: the file may be larger than memory.
UnpackedFile unpack_file(const UnpackRequest&);
/// The tensors of such a file.
std::vector<PackedFile::Item> tensors_of(const std::string& path);

/// A conversion that is ready to run, and the random words it points to.
struct SettledConversion {
  Conversion conversion;
  Array random_words;
  std::optional<std::uint64_t> seed;  ///< nothing where the caller supplied the random bits
};
/// For an array of that shape; integers use their full two's complement range.
SettledConversion settle(const RoundingWords&, const std::string& random_bits, const Format&,
                         const ArrayShape&);

}  // namespace numemu::api
