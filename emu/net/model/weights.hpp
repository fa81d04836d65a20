// Weights in whichever format a file holds them.
#pragma once
#include <string>

#include "emu/net/model/safetensors.hpp"

namespace numemu::net {

/// Reads safetensors or .npz, told apart by the file's first bytes, not by its name. Throws Error
/// naming the file, also where it is neither.
Checkpoint read_weights(const std::string& path);

}  // namespace numemu::net
