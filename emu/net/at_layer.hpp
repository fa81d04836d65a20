// A map by the names of layers, whose missing entries are internal errors that name the layer.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace numemu::net {

/// map.at(layer); throws std::logic_error that names the layer.
template <class Map>
const auto& at_layer(const Map& map, std::string_view layer) {
  const auto found = map.find(std::string(layer));
  if (found == map.end()) throw std::logic_error("layer '" + std::string(layer) + "' is not known");
  return found->second;
}

}  // namespace numemu::net
