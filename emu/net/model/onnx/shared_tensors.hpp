// Tensors of an ONNX file that several of its nodes read.
#pragma once
#include "emu/net/model/onnx/file.hpp"
#include "emu/net/tied.hpp"

namespace numemu::net {

/// The prints of initializers and constants that are read several times, in loops too, directly or
/// through operators that give their elements in another shape or order; each with the number of
/// tensors of the file that have it.
TensorPrints shared_tensors(const OnnxModel&);

}  // namespace numemu::net
