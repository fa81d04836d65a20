// Which tensor of a network a noise belongs to.
#pragma once
#include <compare>
#include <string>

#include "emu/net/numerics.hpp"

namespace numemu::experiments {

struct TensorSource {
  std::string layer;
  net::Role role = net::Role::weight;
  friend auto operator<=>(const TensorSource&, const TensorSource&) = default;
};

}  // namespace numemu::experiments
