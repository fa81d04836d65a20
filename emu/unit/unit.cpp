// The members of a unit that follow from its description, and the names of the grades.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/unit.hpp"

#include <array>

#include "emu/unit/prepared_operand.hpp"
#include "formats/error.hpp"

namespace numemu::unit {

void Unit::require_operands(const Format& a, const Format& b) const {
  const bool a_fits = accepts_a(a);
  if (a_fits && accepts_b(b)) return;
  throw Error("unit " + row().name + " does not take operands of format " + (a_fits ? b : a).name +
              " (it takes " + operand_rule() + ")");
}

std::shared_ptr<const PreparedOperand> Unit::prepare(const Operand& operand, std::int64_t rows,
                                                     std::int64_t depth,
                                                     const std::uint8_t* scales) const {
  return std::make_shared<const PreparedOperand>(operand, rows, depth, scales,
                                                 PreparedOperand::Lifetime::products, this);
}

const Format* Unit::c_format() const {
  const UnitDescription* u = description();
  if (u == nullptr) return &find_format("float32");
  return u->c != nullptr ? u->c : result_register(*u).format;
}

const Format* Unit::d_format() const {
  const UnitDescription* u = description();
  if (u == nullptr) return &find_format("float32");
  return u->d != nullptr ? u->d : result_register(*u).format;
}

namespace {

struct GradeName {
  Grade grade;
  std::string_view name;
  char letter;
};
constexpr std::array<GradeName, 11> kGrades = {{
    {Grade::definition, "definition", 'D'},
    {Grade::silicon, "silicon", 'S'},
    {Grade::hardware, "hardware", 'H'},
    {Grade::model, "model", 'M'},
    {Grade::leeds, "leeds", 'L'},
    {Grade::emulator, "emulator", 'E'},
    {Grade::vendor, "vendor", 'V'},
    {Grade::anecdotal, "anecdotal", 'W'},
    {Grade::modelled, "modelled", '-'},
    {Grade::not_reproducible, "not reproducible", '-'},
    {Grade::described_by_you, "described by you", 'Y'},
}};

}  // namespace

std::string_view to_string(Grade grade) {
  for (const GradeName& one : kGrades) {
    if (one.grade == grade) return one.name;
  }
  return "unknown";
}

char letter_of(Grade grade) {
  for (const GradeName& one : kGrades) {
    if (one.grade == grade) return one.letter;
  }
  return '?';
}

}  // namespace numemu::unit
