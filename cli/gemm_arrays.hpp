// The files of one matrix product: read, checked against the unit and each other, ready to
// multiply.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/unit/unit.hpp"
#include "formats/storage/codes.hpp"

namespace numemu::cli {

/// The options of `gemm` about its operands.
struct GemmFiles {
  std::string a, b, c, scale_a, scale_b, meta;
  std::string format_a, format_b, format_d;
  std::string meta_layout = "index";
};

/// The arrays of a product; `gemm` points into them.
struct GemmArrays {
  Codes a, b;
  Array c, d;  ///< c.shape is empty where there is none
  Array scale_a, scale_b, kept;
  std::int64_t nan_scales = 0;
  unit::Gather gather_a, gather_b;
  unit::Gemm gemm;

  GemmArrays() = default;
  GemmArrays(const GemmArrays&) = delete;
};

/// Reads everything. Throws Error naming the file and what was expected: formats that contradict
/// the unit, shapes that do not fit each other, codes that the format does not have, metadata that
/// is not a legal pattern.
void read_gemm(const unit::Unit&, const GemmFiles&, GemmArrays&);

/// Writes D: float32 and float64 as numbers, int32 registers as int32, others as codes with their
/// sidecar, which names `seed` where the register is stochastic.
void write_gemm_result(const unit::Unit&, const std::string& path, const Array& d,
                       std::uint64_t seed);

}  // namespace numemu::cli
