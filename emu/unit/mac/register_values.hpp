// C as the numbers a register starts from, and the register's numbers as codes of D.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"
#include "formats/float32_converter.hpp"

namespace numemu::unit::mac {

/// Whether the loops of round-inl.hpp serve the floating register (signed, with mantissa bits and
/// subnormals, its values float32's), and C and D are floating formats of float32 values.
bool floats_known(const UnitDescription&);

/// The values of C, row-major; empty where there is no C. Its format fits float32, or it has at
/// most 32 bits in two's complement.
std::vector<double> read_c(const UnitDescription&, const Gemm&);

/// Whether C holds finite numbers that the register, then narrower than C's format, does not.
bool is_foreign(const UnitDescription&, const std::vector<double>& c);

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
