// Reference networks by name; the rows of nets.def.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::net {

/// Builds the untrained network for inputs of that shape ([height, width, channels]) and that many
/// classes. Throws Error with the nearest known name.
Graph build_net(std::string_view name, const Shape& input_shape, std::int64_t classes);
std::vector<std::string> net_names();

}  // namespace numemu::net
