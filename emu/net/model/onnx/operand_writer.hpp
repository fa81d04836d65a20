// The operands of a product as nodes of an ONNX model: QuantizeLinear and DequantizeLinear, codes
// and scales.
#pragma once
#include <cstdint>
#include <string>

#include "emu/net/model/onnx/export.hpp"
#include "emu/net/model/onnx/weight_order.hpp"
#include "emu/net/model/onnx/writer.hpp"

namespace numemu::net {

class OperandWriter {
 public:
  /// `writer` outlives this. Names of values begin with what the caller gives, which no other value
  /// has. `opset`: the least that is written; below 13 weights have one scale.
  explicit OperandWriter(OnnxWriter& writer, std::int64_t opset = 13)
      : writer_(&writer), opset_(opset) {}

  /// Quantizes the value x and back, and returns the result, which is `name`. Scales of samples and
  /// rows are computed: x / scale is rounded and multiplied by it again; `whole`: the first axis of
  /// x is not that of samples, all of it is one. Throws Error naming
  /// `layer` where no type of ONNX stores the format, or QuantizeLinear does not round to it.
  std::string activation(const OnnxOperand&, const std::string& layer, const std::string& name,
                         const std::string& x, bool whole = false);
  /// A weight `name` of those extents, from codes in the order of the file. `axis`: of the scales
  /// where there are several. Throws Error naming `layer` where no type of ONNX stores the format.
  void weight(const OnnxOperand&, const std::string& layer, const std::string& name,
              const Shape& dims, std::int64_t axis, const std::vector<std::uint16_t>& codes);
  /// A weight in blocks along the depth of its order. Throws Error naming `layer` where the file
  /// has none of the kind.
  void blocks(const OnnxOperand&, const std::string& layer, const std::string& name,
              const WeightOrder&);

  /// The least operator set that has what is written so far.
  std::int64_t opset() const { return opset_; }

 private:
  OnnxType stored_as(const OnnxOperand&, const std::string& name);
  std::string dynamic(const OnnxOperand&, const std::string& layer, const std::string& name,
                      const std::string& x, bool whole);
  std::string half(const Format&, const std::string& name, const std::string& x);
  std::string hold(const OnnxOperand&, OnnxType, const std::string& layer, const std::string& to,
                   const std::string& x);

  OnnxWriter* writer_;
  std::int64_t opset_;
};

}  // namespace numemu::net
