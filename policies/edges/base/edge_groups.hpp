// The tensors of a network that integer runtimes keep as codes, and which of them share a scale.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::policies {

/// What the layer that gives a tensor decides.
struct EdgeRules {
  bool quantized = false;   ///< its result is
  bool fused = true;        ///< its only reader's bounds (or normalisation) come first
  bool add_one = false;     ///< the operands of this addition share a scale
  bool concat_one = false;  ///< the operands and the result of this concatenation do
};

/// By value of the graph. Quantized are, where their layers say so: results of products, what
/// products read, and from there through additions, concatenations, bounds (ReLU, Clip),
/// normalisations with running statistics, pooling and interpolation, in both directions. Views of
/// one input are their input.
class EdgeGroups {
 public:
  static constexpr int kNone = -1;

  EdgeGroups(const net::Graph&, const std::function<EdgeRules(std::string_view layer)>&);

  /// The number of the group whose scale the value has; kNone: it stays float32.
  int group(int value) const { return group_[value]; }
  int groups() const { return groups_; }
  /// The first value of which this one is a view or has picked elements; kNone as group().
  int tensor(int value) const { return tensor_[value]; }
  /// Where the tensor is quantized that value `value` becomes by what is fused with its operator:
  /// itself where nothing is. kNone: nowhere.
  int quantized_at(int value) const { return at_[value]; }
  /// Whether the value itself is rounded when it is made: neither a view nor an input, and not
  /// fused with its reader.
  bool rounds(int value) const { return rounds_[value]; }

 private:
  std::vector<int> group_, tensor_, at_;
  std::vector<bool> rounds_;
  int groups_ = 0;
};

/// Operators whose result a product's epilogue bounds before it is rounded.
bool bounds_result(const net::Op&);

}  // namespace numemu::policies
