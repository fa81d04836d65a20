#include "emu/unit/prepared_operand.hpp"

#include "formats/error.hpp"

namespace numemu::unit {

PreparedOperand::PreparedOperand(const Operand& operand, std::int64_t rows, std::int64_t depth,
                                 const std::uint8_t* scales, Lifetime lifetime, const Unit* unit)
    : operand_(operand), rows_(rows), depth_(depth), scales_(scales), unit_(unit) {
  operand_.prepared = nullptr;
  if (lifetime == Lifetime::product) return;
  gather_ = *operand.gather;
  operand_.gather = &gather_;
}

bool PreparedOperand::is(const Operand& operand, std::int64_t rows, std::int64_t depth,
                         const std::uint8_t* scales) const {
  return operand.format == operand_.format && operand.codes == operand_.codes && rows == rows_ &&
         depth == depth_ && scales == scales_ && *operand.gather == *operand_.gather;
}

void PreparedOperand::require(const Unit& unit, const Operand& operand, std::int64_t rows,
                              std::int64_t depth, const std::uint8_t* scales) const {
  if (unit_ == &unit && is(operand, rows, depth, scales)) return;
  throw Error("unit " + unit.row().name + ": expected an operand that its prepare() was given, " +
              (unit_ != &unit ? "another unit prepared it" : "it prepared another one"));
}

PreparedOperand::Made PreparedOperand::find_or_make(std::type_index type,
                                                    const std::function<Made()>& make) const {
  // Held while it is made, so that other threads wait for it and do not make it, too.
  const std::lock_guard lock(mutex_);
  for (const auto& [made, value] : made_) {
    if (made == type) return value;
  }
  return made_.emplace_back(type, make()).second;
}

}  // namespace numemu::unit
