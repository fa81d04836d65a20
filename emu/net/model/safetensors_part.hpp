// Some tensors of a safetensors file, without memory for the others.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "emu/net/model/safetensors.hpp"

namespace numemu::net {

/// read_safetensors() of the tensors that are `wanted` by name, of all where that is empty.
Checkpoint read_safetensors_part(const std::string& path, bool bytes, bool codes,
                                 const std::function<bool(std::string_view name)>& wanted);

}  // namespace numemu::net
