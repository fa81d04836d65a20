// Checkpoints whose weights are codes with scales, for other programs and to be read back.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "emu/net/model/onnx/export.hpp"
#include "emu/net/model/safetensors.hpp"

namespace numemu::net {

/// Writes the graph's parameters to a safetensors file. The weight NAME of a layer that has codes
/// is a tensor of them, one in each element of I8, U8, I16, U16 or a float of 8 bits, beside
/// NAME_scale (float32, one or one per index of axis 0) and the metadata NAME_format; a layer's
/// quantized input has LAYER.input_scale, LAYER.input_zero_point and LAYER.input_format. All else
/// is float32. The metadata and bytes of `described` are added. Throws Error naming the layer whose
/// format no type stores.
void write_coded(const std::string& path, const Graph&, const OnnxLayers&,
                 const Checkpoint& described);

/// Weights that are codes in the safetensors file at `path`; 0 for any other file, and where the
/// file also has the network before that (is_tuned_from() of weights.hpp).
std::int64_t coded_weights_of(const std::string& path);

/// Formats, scales and zero points of the layers of a file of write_coded(), without codes; nothing
/// of any other file. Throws Error as read_weights() does where they are wrong.
std::optional<OnnxLayers> coded_layers_of(const std::string& path);

/// The format of codes that a file's metadata names for a tensor. Throws Error naming both for a
/// name that is none, or that no type stores.
const Format& code_format(const std::string& path, const std::string& tensor,
                          std::string_view name);
/// The safetensors type that stores codes of such a format.
std::string_view code_type(const Format&);

/// Of what read_safetensors() read with codes: weights become code times scale in float32, only
/// the parameters stay, in their order. Nothing happens to other checkpoints. Throws Error naming
/// `path` and the tensor where scales do not fit or are not
/// positive and finite, and where a code is beyond its format.
void decode_weights(Checkpoint&, const std::string& path);

}  // namespace numemu::net
