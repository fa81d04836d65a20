// Weights in whichever format a file holds them.
#pragma once
#include <string>

#include "emu/net/model/safetensors.hpp"

namespace numemu::net {

/// Reads safetensors (with `bytes`; codes times their scales) or .npz; the file's first bytes
/// decide which, not its name. Throws Error naming the file, also where it is neither.
Checkpoint read_weights(const std::string& path);

/// Identity of all parameters, names and bits: 16 hexadecimal digits.
std::string digest_of(const Graph&);

}  // namespace numemu::net
