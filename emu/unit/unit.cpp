// The members of a unit that follow from its description, and the names of the grades.
#include "emu/unit/unit.hpp"

#include <array>
#include <cmath>

#include "emu/unit/prepared_operand.hpp"
#include "formats/convert.hpp"
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

namespace {

template <class Code>
std::vector<double> scaled(const void* d, std::int64_t count, int fraction) {
  const auto* const codes = static_cast<const Code*>(d);
  std::vector<double> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(std::ldexp(static_cast<double>(codes[i]), -fraction));
  return out;
}

}  // namespace

std::vector<double> result_values(const Unit& unit, const void* d, std::int64_t count) {
  const Format* const format = unit.d_format();
  if (format == nullptr) {
    const Register& r = result_register(*unit.description());
    if (r.bits <= 8) return scaled<std::int8_t>(d, count, r.fraction);
    if (r.bits <= 16) return scaled<std::int16_t>(d, count, r.fraction);
    return scaled<std::int32_t>(d, count, r.fraction);
  }
  if (format->bits > 32) return scaled<double>(d, count, 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  convert_codes(Conversion{.format = &find_format("float32"), .overflow = Overflow::ieee}, *format,
                d, count, values.data());
  return {values.begin(), values.end()};
}

}  // namespace numemu::unit
