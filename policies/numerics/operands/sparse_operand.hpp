// Products on sparse units: the masked operand compressed, matrix by matrix.
#pragma once
#include "emu/net/product.hpp"
#include "emu/unit/unit.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::policies {

/// D of every matrix. A sparse unit's A is the compressed operand: where that is the product's
/// right one, D^T = B A^T is computed (a stochastic register numbers its elements so) and turned.
/// Throws Error naming the layer and the first group that keeps more than N.
void multiply_sparse(const unit::Unit&, const net::Product&, net::Side sparse,
                     const net::SourceCodes& a, const net::SourceCodes& b,
                     const net::ProductRandom&, const net::ProductResult&);

}  // namespace numemu::policies
