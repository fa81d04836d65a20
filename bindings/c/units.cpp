#include "api/units.hpp"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/text/trace.hpp"
#include "bindings/c/arrays.hpp"
#include "bindings/c/call.hpp"
#include "bindings/c/handles.hpp"
#include "emu/unit/description/json.hpp"
#include "emu/unit/reference/given_result.hpp"
#include "emu/unit/reference/register.hpp"

struct numemu_trace {
  numemu::unit::Trace trace;
  std::vector<numemu::unit::StepLosses> losses;
};

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

/// The product that a caller describes, laid out for its unit. Borrows the caller's arrays. `d`:
/// what is written; nullptr: nothing is. Throws Error as api::make_product() does.
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

/// Output i of a product, which nobody computed yet.
class Output {
 public:
  Output(const numemu_unit* unit, const numemu_product* given, std::int64_t i)
      : product_(product_of(unit, taken(&required(given, "product"), "product"), nullptr)) {
    require_within("i", i, 0, product_->batch.outputs() - 1);
    place_ = api::place_of(i, product_->batch);
  }
  api::TracedOutput traced() const { return api::trace(*product_, place_); }
  std::string text() const { return api::trace_text(traced(), api::place_text(place_, *product_)); }
  /// Lines about a code that was given in its place.
  std::string explanation(std::uint64_t given) const {
    const unit::UnitDescription* u = product_->unit->description();
    if (u == nullptr) throw usage_error(product_->unit->row().name + ": has no description");
    const Format* format = product_->unit->d_format();
    const unit::Register& held = unit::result_register(*u);
    const std::uint64_t last =
        format != nullptr ? format->last_code() : ~std::uint64_t{0} >> (64 - held.bits);
    if (given > last) throw Error("given: " + std::to_string(given) + " is not a code of D");
    const unit::Gemm gemm =
        unit::slice(*product_->unit, product_->batch, place_.product, place_.product + 1).first;
    std::string text;
    for (const std::string& line :
         unit::explain_result(*u, gemm, place_.i, place_.j, api::output_of(place_, product_->batch),
                              unit::element_value(format, held, given)))
      text += line + "\n";
    return text;
  }

 private:
  std::unique_ptr<api::Product> product_;
  api::Place place_;
};

double rounded(const std::optional<Value>& value) {
  if (!value) return std::numeric_limits<double>::quiet_NaN();
  static const Format& float64 = find_format("float64");
  return to_double(decode(float64, encode(float64, *value, {}, Overflow::propagate).code));
}

}  // namespace
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

numemu_status numemu_trace_text(const numemu_unit* unit, const numemu_product* product, int64_t i,
                                char* text, size_t room, size_t* length) {
  return call([&] { give_text(Output(unit, product, i).text(), text, room, length); });
}

numemu_status numemu_explain(const numemu_unit* unit, const numemu_product* product, int64_t i,
                             uint64_t given, char* text, size_t room, size_t* length) {
  return call([&] { give_text(Output(unit, product, i).explanation(given), text, room, length); });
}

numemu_status numemu_trace_open(const numemu_unit* unit, const numemu_product* product, int64_t i,
                                numemu_trace** out) {
  return call([&] {
    required(out, "out") = nullptr;
    const Output output(unit, product, i);
    api::TracedOutput traced = output.traced();
    *out = new numemu_trace{std::move(traced.trace), std::move(traced.losses)};
  });
}

void numemu_trace_close(numemu_trace* trace) { delete trace; }

int64_t numemu_trace_steps(const numemu_trace* trace) {
  return trace == nullptr ? 0 : std::ssize(trace->trace.steps);
}

numemu_status numemu_trace_step_of(const numemu_trace* trace, int64_t i, numemu_trace_step* out) {
  return call([&] {
    const auto& steps = required(trace, "trace").trace.steps;
    require_within("step", i, 0, std::ssize(steps) - 1);
    const unit::TraceStep& step = steps[static_cast<std::size_t>(i)];
    const unit::StepLosses& lost = trace->losses[static_cast<std::size_t>(i)];
    numemu_trace_step told = {};
    told.what = step.what.c_str();
    told.instruction = step.instruction;
    told.terms = std::ssize(step.terms);
    told.largest_exponent = step.largest_exponent.value_or(INT32_MIN);
    told.has_result = step.result.has_value();
    told.result = step.result.value_or(0);
    told.sum = rounded(step.sum);
    told.lost = rounded(lost.rounding);
    told.exact = rounded(lost.exact);
    give(told, out, "out");
  });
}

numemu_status numemu_trace_term_of(const numemu_trace* trace, int64_t i, int64_t t,
                                   numemu_trace_term* out) {
  return call([&] {
    const auto& steps = required(trace, "trace").trace.steps;
    require_within("step", i, 0, std::ssize(steps) - 1);
    const unit::TraceStep& step = steps[static_cast<std::size_t>(i)];
    require_within("term", t, 0, std::ssize(step.terms) - 1);
    const auto at = static_cast<std::size_t>(t);
    const unit::TraceTerm& term = step.terms[at];
    numemu_trace_term told = {};
    told.what = term.what.c_str();
    told.k = term.k;
    told.a = term.a;
    told.b = term.b;
    told.exponent = step.largest_exponent ? term.exponent.value_or(INT32_MIN) : INT32_MIN;
    told.product = rounded(term.product);
    told.kept = rounded(term.kept);
    told.lost = rounded(trace->losses[static_cast<std::size_t>(i)].terms[at]);
    give(told, out, "out");
  });
}
