// gemm and dot --compare: results of the unit beside those of another program or unit.
#pragma once
#include "cli/product.hpp"

namespace numemu::cli {

/// Whether --compare names results: a .npy file. Otherwise it is a unit, by name or unit.json.
bool names_results(const std::string& compare);

/// Prints how D differs from the results or the unit of options.compare: counts, which of the two
/// is nearer to the exact sums, and the worst outputs with the step in which the two part. Throws
/// Error where the two cannot be compared.
void print_comparison(const ProductOptions&, const unit::Unit&, const GemmArrays&);

}  // namespace numemu::cli
