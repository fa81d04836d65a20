// Parameters that are one tensor of a file (tied weights): one of them is trained, with the sum of
// the gradients of all; the others follow it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::net {

/// Axes of a tensor that is tied in another order of them.
inline constexpr std::size_t kMostTiedAxes = 5;

/// A tensor's number of elements, and a digest of these in any order.
using TensorPrint = std::pair<std::int64_t, std::uint64_t>;
TensorPrint print_of(const Tensor&);
/// How many tensors have that print.
using TensorPrints = std::map<TensorPrint, std::int64_t>;

/// Ties trained parameters that have the elements of one of these tensors, in their order or with
/// other axes (a matrix and its transpose), to the first of them. Tensors that are there twice are
/// two; those whose elements are all equal tie nothing, because exporters merge such by value.
void tie_parameters(Graph&, const TensorPrints&);

/// Ties one parameter to another, whose value stays. Throws Error naming both where one is not
/// there or not trained, and where their shapes do not fit.
void tie(Graph&, std::string_view parameter, std::string_view to, std::vector<int> axes = {});

/// Gives parameters that are tied, or those of them that are `chosen`, the value of the one that is
/// trained.
void follow_tied(Graph&, const std::function<bool(const Parameter&)>& chosen = {});
/// Of those whose value is not that of the one they are tied to (another file has two tensors, or
/// batch normalisation was folded into one), or whose one is gone: trained for themselves again.
void untie_changed(Graph&);
/// Adds the gradients of tied parameters, in the order of the network, to that of the one that is
/// trained, and leaves empty tensors in their places.
void join_tied(const Graph&, std::vector<Tensor>& gradients);

/// Names of parameters that are one, the trained one first, in the order of the network.
std::vector<std::vector<std::string>> tied_groups(const Graph&);

/// "fc1.weight is also fc2.weight", of the first parameter of the node that is one with another;
/// "" for most nodes.
std::string sharing(const Graph&, const Node&);
/// The parameter that is trained in the place of this one: itself for most.
std::string_view trained_for(const Parameter&);

/// The value of a parameter in the order of the one that it is tied to, or the other way round.
Tensor in_owner_order(const Parameter& tied, const Tensor& value, const Shape& owner);
Tensor in_tied_order(const Parameter& tied, const Tensor& owner);

}  // namespace numemu::net
