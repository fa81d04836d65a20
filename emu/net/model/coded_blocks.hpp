// Weights in blocks as tensors of a safetensors file, in layouts that other programs read.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/model/onnx/export.hpp"

namespace numemu::net {

/// A tensor beside others of a weight: `end` follows the weight's name.
struct CodedTensor {
  std::string end;
  std::string_view type;  ///< of safetensors
  Shape shape;
  std::string bytes;
};

/// The tensors of a weight [out, ..., in]: codes as its own name has them, `_scale` of [out, ...,
/// blocks], with bands of outputs where tiles share scales, and `_scale_2`, one float32, where the
/// format has a tensor scale. Floats of 4 bits lie two in a byte of U8, the first in the low half
/// (NVIDIA ModelOpt; OCP MX); other floats as a float of 8 bits, integers less their zero points as
/// I8. Scales of E8M0 are U8, of E4M3 F8_E4M3, of 16 bits F16 or BF16, others F32. Throws Error
/// naming `layer` where the codes do not fill whole bytes.
std::vector<CodedTensor> block_tensors(const OnnxOperand&, const Shape&, const std::string& layer);

/// The metadata that names the block format of a weight, behind its name.
std::string_view blocks_key(const OnnxBlocks&);

/// The weight of that name, decoded in float32, where metadata() of its name and a key give a block
/// format; an empty tensor where it gives none. `take` gives a tensor of the file by its name, as
/// numbers. Throws Error naming `path` and the tensor where the format is none, scales do not fit
/// or are not positive and finite.
Tensor decoded_blocks(const std::string& path, const std::string& name,
                      const std::function<const std::string*(const std::string& key)>& metadata,
                      const std::function<Tensor(const std::string& name)>& take);

}  // namespace numemu::net
