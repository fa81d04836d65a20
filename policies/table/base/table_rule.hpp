// The key `table` of a recipe: what becomes of a table that an operator looks rows up in.
#pragma once
#include "policies/policy.hpp"

namespace numemu::policies {

/// The options of a policy of the key `table`, and what they make of a table [rows, width].
struct TableRule : PolicyOptions {
  virtual net::Tensor quantized(const net::Tensor& table) const = 0;
  /// Of a whole table, its parameters too.
  virtual double stored_bits(const net::Shape&) const = 0;
};

/// Layers read the table that their rule makes: of the parameter as it is in every training step
/// (its gradient is that of the rows read), once after freeze(). Throws Error for a layer with
/// roles.embedding.
std::unique_ptr<Policy> make_table_policy(Binding, net::Numerics& inner);

/// The rule that a layer chose; null where it chose none.
const TableRule* table_rule_of(const BoundRecipe&, std::string_view layer);

}  // namespace numemu::policies
