// The other arrays of a product: block scales and the metadata of a sparse A.
#pragma once
#include <string>

#include "cli/gemm_arrays.hpp"
#include "formats/storage/stored_array.hpp"

namespace numemu::cli {

/// Reads the scales of a block-scaled unit, opened with their operands, into the product, whose m,
/// n and k are set. Throws Error where they are missing, superfluous, or of another shape.
void read_all_scales(const unit::Unit&, const GemmFiles&, StoredArray& scale_a,
                     StoredArray& scale_b, GemmArrays&);

/// The same for the metadata of a sparse unit; an illegal pattern is named with its position.
void read_meta(const unit::Unit&, const GemmFiles&, GemmArrays&);

/// Throws Error unless the shape of the file's array is the expected one; `why` explains where that
/// comes from.
void require_shape(const std::string& path, const ArrayShape& found, const ArrayShape& expected,
                   const std::string& why);

}  // namespace numemu::cli
