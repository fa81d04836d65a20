// The tensor of a network to which a noise belongs.
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
