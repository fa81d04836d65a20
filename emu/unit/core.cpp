// Checks every product against its unit's row before a core computes it.
#include "emu/unit/core.hpp"

#include "emu/unit/operand.hpp"
#include "formats/error.hpp"

namespace numemu::unit {

void Core::check(const Gemm& gemm) const {
  if (gemm.m < 0 || gemm.n < 0 || gemm.k < 0) {
    throw Error("unit " + row_.name + ": negative size " + std::to_string(gemm.m) + " x " +
                std::to_string(gemm.n) + " x " + std::to_string(gemm.k));
  }
  require_operand(*gemm.a.format);
  require_operand(*gemm.b.format);
}

void Core::multiply(const Gemm& gemm) const {
  check(gemm);
  if (gemm.m != 0 && gemm.n != 0) compute(gemm);
}

void Core::multiply_reference(const Gemm& gemm) const {
  check(gemm);
  if (gemm.m != 0 && gemm.n != 0) compute_reference(gemm);
}

bool Core::accepts(const Format& format) const {
  return container_of(format).has_value() &&
         (row().operand == "any" || row().operand == format.name);
}

std::string Core::operand_rule() const {
  return row().operand == "any" ? "any format of at most 16 bits, tfloat32 or float32"
                                : row().operand;
}

bool FloatCore::accepts(const Format& format) const {
  return Core::accepts(format) && fits_float32(format);
}

std::string FloatCore::operand_rule() const {
  return row().operand == "any"
             ? "any format of at most 16 bits whose values are float32 values, tfloat32 or float32"
             : row().operand;
}

}  // namespace numemu::unit
