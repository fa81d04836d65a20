// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/integer/int32_sums.hpp"

#include "emu/unit/description.hpp"

namespace numemu::unit {

bool gives_int32(const Unit& unit) {
  const UnitDescription* const u = unit.description();
  if (u == nullptr || unit.d_format() != nullptr) return false;
  const Register& r = result_register(*u);
  return r.bits == 32 && r.fraction == 0;
}

IntegerEnds ends_of_integers(const Format& format) {
  if (!format.is_signed) return {0, (1 << format.bits) - 1};
  return {-(1 << (format.bits - 1)), (1 << (format.bits - 1)) - 1};
}

}  // namespace numemu::unit
