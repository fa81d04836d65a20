// What gemm and dot print about a product that they have written.
#pragma once
#include "cli/product.hpp"

namespace numemu::cli {

/// A line, or with --json an object; nothing with --quiet.
void print_summary(const ProductOptions&, const unit::Unit&, const GemmArrays&);

}  // namespace numemu::cli
