// A network as an ONNX model whose products read what QuantizeLinear and DequantizeLinear make.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/model/onnx/tensor.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/format.hpp"

namespace numemu::net {

/// Scales of a weight in blocks: neighbours on lines of `line` elements in its order.
struct OnnxBlocks {
  const BlockFormat* format = nullptr;
  std::int64_t line = 0, size = 0;  ///< elements of a line and of a block, the last one short
  /// Outputs of a tile, whose lines have equal scales; 1: every line has its own.
  std::int64_t rows = 1;
  std::vector<std::uint8_t> scale_codes = {};  ///< [line, block], as BlockArrays has them
  float tensor_scale = 1;
  std::vector<std::int32_t> zero_points = {};  ///< [line, block]; none: 0

  std::int64_t per_line() const { return (line + size - 1) / size; }
  /// The block of element i of the weight.
  std::int64_t block_of(std::int64_t i) const { return i / line * per_line() + i % line / size; }
};

/// Whose largest magnitude gives an activation's scale where the file has none: that of each
/// sample, or of each row of its last axis.
enum class OnnxScaleOf : std::uint8_t { file, sample, row };

/// How an operand of a product is stored. ONNX computes q = saturate(round(x / scale) + zero point)
/// and y = (q - zero point) scale in float32, halves to even; of a float format q is the nearest
/// value.
struct OnnxOperand {
  const Format* format = nullptr;
  /// One; of a weight also one for each index of axis 0, or for each block. None: an activation is
  /// rounded to a float of 16 bits.
  std::vector<float> scales;
  std::int32_t zero_point = 0;
  bool shifted = false;  ///< the zero point may be any; signed integers then use every code
  std::vector<std::uint16_t> codes = {};  ///< of a weight, in its order
  std::optional<OnnxBlocks> blocks = {};
  OnnxScaleOf scale_of = OnnxScaleOf::file;  ///< else `scales` is empty
};

struct OnnxLayer {
  std::optional<OnnxOperand> weight = {}, activation = {};
  std::optional<OnnxOperand> second = {};  ///< the right operand where that is an activation, too
  std::optional<OnnxOperand> result = {};  ///< how all that read the node's result have it
};
using OnnxLayers = std::map<std::string, OnnxLayer, std::less<>>;

/// The type that stores codes of the format, with its values: integers of 4, 8 and 16 bits, floats
/// of 8 bits, in which smaller floats are contained. Nothing for other formats.
std::optional<OnnxType> storage_type(const Format&);
/// The number of an integer format's code.
std::int32_t integer_of(const Format&, std::uint32_t code);
/// The codes as raw data of that type.
std::string stored_codes(const Format&, OnnxType, const std::vector<std::uint16_t>& codes);

/// The file's bytes. Layers without an entry stay float32. Images have their channels first; an
/// activation's integers that are fewer than the type's (int6, symmetric int8) are held by a Clip
/// before QuantizeLinear. An input is int64 where nothing but tables reads it, through views or
/// directly; a table casts what it reads otherwise. The operator set is the least that has the
/// types: 13, 19 for floats of 8 bits, 21 for integers of 4 and 16. Throws Error that lists the
/// operators without a counterpart, and naming the layer whose format no type stores.
std::string export_onnx(const Graph&, const OnnxLayers&);

}  // namespace numemu::net
