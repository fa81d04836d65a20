// The operands of a product as nodes of an ONNX model: QuantizeLinear and DequantizeLinear, codes
// and scales.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "emu/net/model/onnx/export.hpp"
#include "emu/net/model/onnx/weight_order.hpp"
#include "emu/net/model/onnx/writer.hpp"

namespace numemu::net {

/// A product of codes, in place of one of float32 operands.
struct OnnxProduct {
  std::string op;                   ///< MatMulNBits (float32), MatMulInteger or ConvInteger
  std::string name;                 ///< names of values begin with it
  std::vector<std::string> inputs;  ///< behind the activation, or with its codes
  std::vector<OnnxNodeAttribute> attributes = {};
  std::string factor = {};                    ///< of its integers; "": it has numbers
  std::vector<std::int64_t> bias_shape = {};  ///< in which the bias is added; empty: its own

  /// The nodes of it and of its factor, and the sum with `bias` unless that is "".
  void write(OnnxWriter&, const std::string& bias, const std::string& result) const;
};

/// Whether MatMulNBits has such a weight [outputs, depth]: integers of at most 4 bits, one line of
/// blocks for each output, each of a power of two from 16 on.
bool in_n_bits(const OnnxOperand& weight, const Shape&);
/// Whether MatMulInteger and ConvInteger have such operands: integers of at most 8 bits, scales of
/// the activation that are computed, weights with one scale or one for each output.
bool in_integers(const OnnxLayer&);

class OperandWriter {
 public:
  /// `writer` outlives this. Names of values begin with what the caller gives, which no other value
  /// has. `opset`: the least that is written; below 13 weights have one scale.
  explicit OperandWriter(OnnxWriter& writer, std::int64_t opset = 13)
      : writer_(&writer), opset_(opset) {}

  /// Quantizes the value x and back, and returns the result, which is `name`. Scales of samples and
  /// rows are computed: x / scale is rounded and multiplied by it again; `whole`: no axis of x is
  /// that of samples, all of it is one; else `samples` is it, 0 or, of three axes, 1. Throws Error
  /// naming `layer` where no type of ONNX stores the format, or QuantizeLinear does not round to
  /// it.
  std::string activation(const OnnxOperand&, const std::string& layer, const std::string& name,
                         const std::string& x, bool whole = false, std::size_t samples = 0);
  /// A weight `name` of those extents, from codes in the order of the file. `axis`: of the scales
  /// where there are several. Throws Error naming `layer` where no type of ONNX stores the format.
  void weight(const OnnxOperand&, const std::string& layer, const std::string& name,
              const Shape& dims, std::int64_t axis, const std::vector<std::uint16_t>& codes);
  /// A weight in blocks along the depth of its order. Throws Error naming `layer` where the file
  /// has none of the kind.
  void blocks(const OnnxOperand&, const std::string& layer, const std::string& name,
              const WeightOrder&);
  /// A product by the weight's codes, only where in_n_bits().
  OnnxProduct n_bits(const OnnxOperand&, const std::string& name, const Shape&);
  /// A product of the codes of x and of a weight of that shape, only where in_integers(). The scale
  /// of x is that of a row, of a sample on the first of `rank` axes, or of all if `whole`.
  OnnxProduct integers(const OnnxLayer&, const std::string& name, const std::string& x,
                       std::int64_t rank, bool whole, const Shape& weight);

  /// The least operator set that has what is written so far.
  std::int64_t opset() const { return opset_; }
  /// Domains beside ONNX's own of what is written so far.
  const std::set<std::string>& domains() const { return domains_; }

 private:
  OnnxType stored_as(const OnnxOperand&, const std::string& name);
  std::string dynamic(const OnnxOperand&, const std::string& layer, const std::string& name,
                      const std::string& x, bool whole, std::size_t samples);
  /// x held within the bounds; `to` starts the names.
  std::string clip(const std::string& to, const std::string& x, float low, float high);
  std::string cast(const std::string& name, const std::string& x, OnnxType to);
  std::string half(const Format&, const std::string& name, const std::string& x);
  struct Codes {
    std::string codes, scale;
  };
  /// The codes of x, as numbers, and its scale: the largest magnitude along the axes (none: all).
  Codes computed(const OnnxOperand&, const std::string& name, const std::string& x,
                 const std::vector<std::int64_t>& axes);
  std::string hold(const OnnxOperand&, OnnxType, const std::string& layer, const std::string& to,
                   const std::string& x);

  OnnxWriter* writer_;
  std::int64_t opset_;
  std::set<std::string> domains_ = {};
};

}  // namespace numemu::net
