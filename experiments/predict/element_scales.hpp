// The scale that every element of a tensor is rounded by, in the tensor's order.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/product.hpp"
#include "emu/net/tensor.hpp"
#include "experiments/predict/injected_roles.hpp"

namespace numemu::experiments {

struct ElementScales {
  std::vector<float> scales;
  std::vector<float> shifts;  ///< of blocks with minima what is subtracted before; else empty
};

/// How many samples of a side have scales of their own.
std::int64_t samples_of(const InjectedRoles::Operand&, const net::Product&, net::Side);

/// Of an operand of a product as it comes: one of its numbers each for a layer, a sample, a row, or
/// for blocks along the lines that the product reduces, or tiles.
ElementScales operand_scales(const InjectedRoles::Operand&, const net::Product&, net::Side);

/// Of a table that is looked up: of its rows, of blocks in them, or of all.
std::vector<float> table_scales(const InjectedRoles::Operand&, const net::Tensor& parameter);

/// Of a tensor that is stored, whose shape is `shape`: of each of `samples` shares. `finite` has
/// its elements, [.., last axis].
ElementScales stored_scales(const InjectedRoles::Operand&, const net::Shape& shape,
                            std::int64_t samples, const net::Tensor& finite);

}  // namespace numemu::experiments
