// Readers of elements refuse a tensor that was released, instead of reading nothing.
#pragma once
#include <string_view>

#include "emu/net/tensor.hpp"

namespace numemu::net {

/// Throws Error naming the tensor where Tensor::release() has freed its elements.
void require_elements(const Tensor&, std::string_view name);

}  // namespace numemu::net
