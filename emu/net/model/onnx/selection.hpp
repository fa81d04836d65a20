// Operators whose results have as many elements as the values decide: on constants alone.
#pragma once
#include <optional>
#include <vector>

#include "emu/net/model/onnx/constant.hpp"

namespace numemu::net {

/// The results of NonMaxSuppression, NonZero and Unique, one for each output; nullopt for other
/// operators. Throws Error without file and node, which the caller adds.
std::optional<std::vector<OnnxConstant>> fold_selection(const OnnxNode&,
                                                        const std::vector<ConstantRef>& inputs,
                                                        OnnxFolder&);
/// Whether fold_selection() has the operator.
bool is_selection(std::string_view op);

}  // namespace numemu::net
