// Which elements of an operand without blocks share a scale, and whether the scales can wait for
// the results of the product.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/numerics.hpp"
#include "policies/recipe/role_policy.hpp"

namespace numemu::policies {

struct ScaleGroups {
  std::int64_t count = 1;  ///< equal groups
  /// A group is a column of the source's matrices, its elements a row apart; else neighbours.
  bool columns = false;
  /// The scales can be applied to the results. Otherwise the unit has to read dequantized numbers.
  bool of_results = true;
};

/// Of the side under that policy. `operand` is what the side holds: where it is the right operand
/// of attention (key, value), `row` is a token and `channel` a channel, however the tensor lies;
/// else a row is one of the source and a channel an index of axis 0. `samples` shares of
/// granularity `tensor` have scales of their own.
ScaleGroups scale_groups(const RolePolicy&, net::Role operand, const net::Product&,
                         const net::ProductSide&, std::int64_t samples);

/// The groups of a tensor that a layer's fprop reads, without `of_results`.
ScaleGroups scale_groups(const RolePolicy&, const net::GemmLayer&, net::Role operand,
                         const net::Shape&, std::int64_t samples);

/// Whether scales of a right operand of attention can be applied to the results of fprop.
bool waits_for_results(const RolePolicy&, net::Role operand);

/// The elements group after group: the source itself, or `copy`.
const float* in_groups(const ScaleGroups&, const net::ProductSide&, std::vector<float>& copy);
/// Back to the order of the source.
template <class T>
void from_groups(const ScaleGroups&, const net::ProductSide&, std::vector<T>& elements);

}  // namespace numemu::policies
