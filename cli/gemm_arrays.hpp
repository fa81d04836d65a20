// The files of a matrix product, of a batch of them or of dots: read, checked against the unit and
// each other, ready to multiply.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/unit/batch.hpp"
#include "emu/unit/sparse/pattern.hpp"
#include "emu/unit/unit.hpp"
#include "formats/storage/codes.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::cli {

/// What the axes of the arrays are.
enum class GemmShape : std::uint8_t {
  matrices,  ///< A is M x K, B is K x N, C and D are M x N; a vector is one row of A, column of B
  batches,   ///< the same, or each with a leading axis, the product; without it the array is shared
  dots,      ///< A and B are N x K, or one row for all; C and D have N elements
};

/// The options of `gemm` about its operands.
struct GemmFiles {
  GemmShape shape = GemmShape::matrices;
  std::string a, b, c, scale_a, scale_b, meta;
  std::string format_a, format_b, format_d;
  std::string b_layout = "kn";  ///< or "nk": B is N x K and its scales N x blocks
  std::string meta_layout;      ///< index where it is empty

  bool b_by_columns() const { return shape == GemmShape::dots || b_layout == "nk"; }
};

unit::MetaLayout meta_layout_of(const GemmFiles&);
/// Throws Error where the layout is unknown or there is no metadata to have it.
void check_meta_layout(const GemmFiles&);

/// What the leading axes of an operand are: products, and rows of A or columns of B.
struct GemmSide {
  bool batched = false;
  std::int64_t products = 1, lines = 0, depth = 0;

  /// The shape of an array with `width` elements for each line: scales, metadata. The lines of a
  /// dot have no axis.
  ArrayShape lines_of(GemmShape, std::int64_t width) const;
};

/// The arrays of products; `batch` points into them.
struct GemmArrays {
  Codes a, b;
  Array c, d;  ///< c.shape is empty where there is none
  Array scale_a, scale_b, kept;
  std::int64_t nan_scales = 0;
  unit::Gather gather_a, gather_b;
  GemmSide side_a, side_b;
  unit::Batch batch;
  unit::Gemm& gemm = batch.first;  ///< the only product of GemmShape::matrices

  GemmArrays() = default;
  GemmArrays(const GemmArrays&) = delete;
};

/// Reads everything. Throws Error naming the file and what was expected: formats that contradict
/// the unit, shapes that do not fit each other, codes that the format does not have, metadata that
/// is not a legal pattern.
void read_gemm(const unit::Unit&, const GemmFiles&, GemmArrays&);

/// D as another program computed it: of the type and shape of `d`.
Array read_gemm_result(const unit::Unit&, const std::string& path, const Array& d);

/// Adds D to the files: float32, float64 and integer registers of 32 and 16 bits as numbers, others
/// as codes with their sidecar, which names `seed` where the register is stochastic.
void add_gemm_result(const unit::Unit&, const std::string& path, const Array& d, std::uint64_t seed,
                     OutputFiles&);

}  // namespace numemu::cli
