#include "bindings/c/units.hpp"

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "api/units.hpp"
#include "bindings/c/arrays.hpp"
#include "bindings/c/call.hpp"
#include "emu/unit/description/json.hpp"
#include "emu/unit/reference/register.hpp"

namespace numemu::c {
namespace {

const char* name_of(const Format* format) {
  return format == nullptr ? nullptr : format->name.c_str();
}

const unit::UnitDescription& described(const numemu_unit* handle) {
  const unit::Unit& unit = *required(handle, "unit").unit;
  if (unit.description() == nullptr) throw usage_error(unit.row().name + ": has no description");
  return *unit.description();
}

/// Codes of an operand whose format the unit, or the caller, knows. Numbers may stand for codes of
/// a unit that reads only their upper bits.
Codes operand(const char* name, const Format* own, const numemu_format* told,
              const numemu_array* given) {
  static const Format& float32 = find_format("float32");
  const Format* format = told != nullptr ? told->format : own;
  if (format == nullptr)
    throw usage_error(std::string("format_") + name + ": expected one: the unit takes any");
  Array array = in(name, required(given, name), api::kMostOperandElements);
  if (told == nullptr && own->container_shift != 0 && array.type == ArrayType::float32)
    format = &float32;
  if (same_bits(array.type, container_type(*format))) array.type = container_type(*format);
  return {format, std::move(array)};
}

}  // namespace

std::unique_ptr<api::Product> product_of(const numemu_unit* handle, const numemu_product& p,
                                         Out* d) {
  const api::UnitPtr& unit = required(handle, "unit").unit;
  const unit::UnitDescription* u = unit->description();
  const bool own_b = u != nullptr && u->b != nullptr;
  const numemu_format* b = p.format_b != nullptr || own_b ? p.format_b : p.format_a;
  api::Operands operands{operand("a", u == nullptr ? nullptr : u->a, p.format_a, p.a),
                         operand("b", u == nullptr ? nullptr : u->b, b, p.b)};
  operands.c = optional_in("c", p.c);
  operands.scale_a = optional_in("scale_a", p.scale_a);
  operands.scale_b = optional_in("scale_b", p.scale_b);
  operands.meta = optional_in("meta", p.meta);
  if (p.meta_layout != nullptr) operands.meta_layout = p.meta_layout;
  operands.shape = p.dots != 0 ? api::ProductShape::dots : api::ProductShape::batches;
  operands.b_by_columns = p.by_columns != 0;
  operands.seed = p.seed;
  if (d != nullptr) {
    *d = Out("d", required(p.d, "d"), api::result_type(*unit));
    operands.d = std::move(d->array());
  }
  return make_product(unit, std::move(operands));
}

}  // namespace numemu::c

using namespace numemu;
using namespace numemu::c;

numemu_status numemu_unit_open(const char* name, numemu_unit** unit) {
  return call([&] {
    required(unit, "unit") = nullptr;
    *unit = new numemu_unit{api::open_unit(&required(name, "name"))};
  });
}

void numemu_unit_close(numemu_unit* unit) { delete unit; }

const char* numemu_unit_name(int32_t i) {
  const auto& all = unit::all_units();
  return i < 0 || i >= std::ssize(all) ? nullptr
                                       : all[static_cast<std::size_t>(i)]->row().name.c_str();
}

numemu_status numemu_unit_describe(const numemu_unit* handle, numemu_unit_facts* out) {
  return call([&] {
    const unit::Unit& unit = *required(handle, "unit").unit;
    const unit::UnitRow& row = unit.row();
    numemu_unit_facts facts = {};
    facts.name = row.name.c_str();
    facts.accumulation = row.accumulation.c_str();
    facts.source = row.source.c_str();
    facts.grade = unit::letter_of(row.grade);
    facts.d = name_of(unit.d_format());
    facts.c_type = static_cast<numemu_type>(api::c_type(unit));
    facts.d_type = static_cast<numemu_type>(api::result_type(unit));
    facts.d_bits = unit.d_format() != nullptr ? unit.d_format()->bits : 0;
    if (const unit::UnitDescription* u = unit.description()) {
      const unit::Register& held = unit::result_register(*u);
      facts.a = name_of(u->a);
      facts.b = name_of(u->b);
      if (facts.d == nullptr) facts.d_bits = held.bits;
      facts.k = u->k;
      facts.block = u->scaling.block;
      facts.scale = name_of(u->scaling.format);
      facts.kept = u->sparsity.kept;
      facts.group = u->sparsity.group;
      facts.has_flags = held.format != nullptr;
      facts.is_stochastic = u->accumulator.rounding.stochastic();
    }
    give(facts, out, "facts");
  });
}

numemu_status numemu_unit_json(const numemu_unit* handle, char* text, size_t room, size_t* length) {
  return call([&] { give_text(unit::description_json(described(handle)), text, room, length); });
}

numemu_status numemu_multiply(const numemu_unit* unit, const numemu_product* given) {
  return call([&] {
    const numemu_product parts = taken(&required(given, "product"), "product");
    Out d;
    const std::unique_ptr<api::Product> product = product_of(unit, parts, &d);
    Out flags("flags", parts.flags, ArrayType::uint8, product->d.shape);
    api::MultiplyOptions options;
    if (parts.alpha != nullptr) options.alpha = *parts.alpha;
    options.reference = parts.reference != 0;
    options.flags = parts.flags != nullptr;
    api::multiply(*product, options);
    d.finish(product->d);
    if (options.flags) flags.take(product->flags);
  });
}
