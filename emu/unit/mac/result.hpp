// C and D of a product between codes of the register and numbers in vectors' lanes.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"
#include "formats/float32_converter.hpp"

namespace numemu::unit::mac {

/// The values of C, row-major; empty where there is no C. The register fits float32, or has at most
/// 32 bits in two's complement.
std::vector<double> read_c(const Register&, const Gemm&);

/// Writes values of the register as codes of D. Const functions may run in several threads.
class ResultWriter {
 public:
  ResultWriter(const UnitDescription&, const Gemm&);

  /// D(i, j) ... D(i, j + count - 1).
  void write(std::int64_t i, std::int64_t j, std::int64_t count, const float* values) const;
  void write(std::int64_t i, std::int64_t j, std::int64_t count, const double* values) const;

 private:
  template <class Code>
  void write_floats(std::int64_t first, std::int64_t count, const float* values) const;
  template <class T>
  void write_integers(std::int64_t first, std::int64_t count, const T* values) const;

  const UnitDescription& unit_;
  const Gemm& gemm_;
  Float32Converter to_code_;
};

}  // namespace numemu::unit::mac
