// Matrix units: products of arrays, traces of single outputs, and why a result differs.
#include "api/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <limits>
#include <memory>
#include <utility>

#include "api/text/trace.hpp"
#include "bindings/c/call.hpp"
#include "bindings/c/handles.hpp"
#include "emu/unit/description/json.hpp"
#include "formats/containers.hpp"

struct numemu_trace {
  std::unique_ptr<numemu::api::Product> product;
  std::shared_ptr<numemu::api::TracedOutput> traced;
};

using namespace numemu;
using c::guarded, c::required;

namespace {

api::UnitPtr opened(const std::string& name) {
  if (!name.starts_with('{')) return api::open_unit(name);
  return unit::make_unit(unit::parse_description(name, "unit"));
}

/// The product of the caller's arrays, and where its results go.
struct GivenProduct {
  std::unique_ptr<api::Product> product;
  std::optional<c::Given> d, flags;
  Array room;
  api::MultiplyOptions options;
};

std::optional<Array> optional_array(const numemu_array* array, const char* name) {
  if (array == nullptr) return std::nullopt;
  return c::Given(array, name).read();
}

Codes operand(const numemu_array* array, const char* name, const Format* own,
              const numemu_format* told, const std::string& unit) {
  const c::Given given(array, name);
  const Format* const format = told != nullptr ? told->format : own;
  if (format == nullptr)
    throw usage_error(fmt::format("format_{}: expected a format: unit {} takes any", name, unit));
  if (bytes_of(given.type()) != container_bytes(*format))
    given.require_type(container_type(*format));
  Array codes = given.read();
  codes.type = container_type(*format);
  return {format, std::move(codes)};
}

/// `multiply`: D is written into the caller's array, which must be there.
GivenProduct product_of(const numemu_unit* handle, const numemu_product* structure, bool multiply) {
  const api::UnitPtr& unit = required(handle, "unit").unit;
  const auto given = c::members_of(structure, "product");
  const unit::UnitDescription* const u = unit->description();
  const std::string& name = unit->row().name;
  const numemu_format* const format_b = given.format_b == nullptr ? given.format_a : given.format_b;
  api::Operands operands{
      .a = operand(given.a, "a", u == nullptr ? nullptr : u->a, given.format_a, name),
      .b = operand(
          given.b, "b", u == nullptr ? nullptr : u->b,
          u != nullptr && u->b != nullptr && given.format_b == nullptr ? nullptr : format_b, name),
      .c = optional_array(given.c, "c"),
      .scale_a = optional_array(given.scale_a, "scale_a"),
      .scale_b = optional_array(given.scale_b, "scale_b"),
      .meta = optional_array(given.meta, "meta"),
      .meta_layout = given.meta_layout == nullptr ? "" : given.meta_layout,
      .shape = given.dots != 0 ? api::ProductShape::dots : api::ProductShape::batches,
      .b_by_columns = given.by_columns != 0,
      .seed = given.seed};
  GivenProduct out;
  out.options.reference = given.reference != 0;
  out.options.flags = given.flags != nullptr;
  if (given.alpha != nullptr) out.options.alpha = *given.alpha;
  if (multiply) {
    out.d.emplace(given.d, "d");
    out.d->require_type(api::result_type(*unit));
    out.room = out.d->room();
    operands.d = Array::borrowed(out.room.type, out.room.shape, out.room.data.data());
    if (given.flags != nullptr) out.flags.emplace(given.flags, "flags");
  }
  out.product = api::make_product(unit, std::move(operands));
  if (out.flags) {
    out.flags->require_type(ArrayType::uint8);
    out.flags->require_shape(out.product->d.shape);
  }
  return out;
}

api::Place place(const api::Product& p, std::int64_t i) {
  if (i < 0 || i >= p.batch.outputs())
    throw usage_error(
        fmt::format("i: expected 0 to {}, the outputs, found {}", p.batch.outputs() - 1, i));
  return api::place_of(i, p.batch);
}

const unit::TraceStep& step_of(const numemu_trace* handle, std::int64_t step) {
  const auto& steps = required(handle, "trace").traced->trace.steps;
  if (step < 0 || step >= std::ssize(steps))
    throw usage_error(fmt::format("step: expected 0 to {}, found {}", steps.size() - 1, step));
  return steps[static_cast<std::size_t>(step)];
}

double number(const std::optional<Value>& value) {
  return value ? to_double(*value) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

numemu_status numemu_unit_open(const char* name, numemu_unit** out) {
  return guarded([&] {
    required(out, "unit") = nullptr;
    *out = new numemu_unit{opened(&required(name, "name"))};
  });
}
void numemu_unit_close(numemu_unit* unit) { delete unit; }

const char* numemu_unit_name(int32_t i) {
  const auto& all = unit::all_units();
  return i < 0 || i >= std::ssize(all) ? nullptr
                                       : all[static_cast<std::size_t>(i)]->row().name.c_str();
}

numemu_status numemu_unit_describe(const numemu_unit* handle, numemu_unit_facts* out) {
  return guarded([&] {
    const unit::Unit& unit = *required(handle, "unit").unit;
    const unit::UnitRow& row = unit.row();
    const unit::UnitDescription* const u = unit.description();
    const auto name_of = [](const Format* format) {
      return format == nullptr ? nullptr : format->name.c_str();
    };
    numemu_unit_facts facts{};
    facts.name = row.name.c_str();
    facts.accumulation = row.accumulation.c_str();
    facts.source = row.source.c_str();
    facts.grade = unit::letter_of(row.grade);
    facts.d = name_of(unit.d_format());
    facts.d_bits = unit.d_format() != nullptr ? unit.d_format()->bits : 32;
    facts.c_type = static_cast<numemu_type>(api::c_type(unit));
    facts.d_type = static_cast<numemu_type>(api::result_type(unit));
    if (u != nullptr) {
      facts.a = name_of(u->a);
      facts.b = name_of(u->b);
      if (unit.d_format() == nullptr) facts.d_bits = unit::result_register(*u).bits;
      facts.k = u->k;
      facts.block = u->scaling.block;
      facts.scale = name_of(u->scaling.format);
      facts.kept = u->sparsity.kept;
      facts.group = u->sparsity.group;
      facts.has_flags = unit.d_format() != nullptr;
      facts.is_stochastic = u->accumulator.rounding.stochastic();
    }
    c::give(facts, out, "facts");
  });
}

numemu_status numemu_unit_json(const numemu_unit* handle, char* text, size_t room, size_t* length) {
  return guarded([&] {
    const unit::Unit& unit = *required(handle, "unit").unit;
    if (unit.description() == nullptr)
      throw usage_error("unit: " + unit.row().name + " has no description");
    c::write_text(unit::description_json(*unit.description()), text, room, length);
  });
}

numemu_status numemu_multiply(const numemu_unit* unit, const numemu_product* given) {
  return guarded([&] {
    const GivenProduct p = product_of(unit, given, true);
    api::multiply(*p.product, p.options);
    p.d->finish(p.room);
    if (p.flags) p.flags->finish(p.product->flags);
  });
}

numemu_status numemu_trace_text(const numemu_unit* unit, const numemu_product* given, int64_t i,
                                char* text, size_t room, size_t* length) {
  return guarded([&] {
    const GivenProduct p = product_of(unit, given, false);
    const api::Place at = place(*p.product, i);
    c::write_text(api::trace_text(api::trace(*p.product, at), api::place_text(at, *p.product)),
                  text, room, length);
  });
}

numemu_status numemu_trace_open(const numemu_unit* unit, const numemu_product* given, int64_t i,
                                numemu_trace** out) {
  return guarded([&] {
    required(out, "trace") = nullptr;
    GivenProduct p = product_of(unit, given, false);
    // The handle outlives the caller's arrays.
    p.product->a.array.data.own();
    p.product->b.array.data.own();
    auto traced = std::make_shared<api::TracedOutput>(api::trace(*p.product, place(*p.product, i)));
    *out = new numemu_trace{std::move(p.product), std::move(traced)};
  });
}
void numemu_trace_close(numemu_trace* trace) { delete trace; }
int64_t numemu_trace_steps(const numemu_trace* trace) {
  return trace == nullptr ? 0 : std::ssize(trace->traced->trace.steps);
}

numemu_status numemu_trace_step_of(const numemu_trace* trace, int64_t step,
                                   numemu_trace_step* out) {
  return guarded([&] {
    const unit::TraceStep& one = step_of(trace, step);
    double before = std::numeric_limits<double>::quiet_NaN();
    for (const unit::TraceTerm& term : one.terms)
      if (term.k < 0 && (term.what == "C" || term.what == "register"))
        before = to_double(term.product);
    c::give({.size = 0,
             .terms = std::ssize(one.terms),
             .aligned_to = one.largest_exponent.value_or(INT32_MIN),
             .before = before,
             .sum = number(one.sum),
             .result = one.result.value_or(0)},
            out, "step");
  });
}

numemu_status numemu_trace_term_of(const numemu_trace* trace, int64_t step, int64_t term,
                                   numemu_trace_term* out) {
  return guarded([&] {
    const unit::TraceStep& one = step_of(trace, step);
    if (term < 0 || term >= std::ssize(one.terms))
      throw usage_error(
          fmt::format("term: expected 0 to {}, found {}", one.terms.size() - 1, term));
    const unit::TraceTerm& t = one.terms[static_cast<std::size_t>(term)];
    const std::int64_t k = t.k >= 0 ? t.k : t.what == "C" ? -1 : t.what == "register" ? -2 : -3;
    c::give({.size = 0, .k = k, .product = to_double(t.product), .kept = to_double(t.kept)}, out,
            "term");
  });
}

numemu_status numemu_explain(const numemu_unit* unit, const numemu_product* given, int64_t i,
                             uint64_t result, char* text, size_t room, size_t* length) {
  return guarded([&] {
    GivenProduct p = product_of(unit, given, false);
    const api::Place at = place(*p.product, i);
    api::multiply(*p.product, {.reference = true});
    Array other(p.product->d.type, p.product->d.shape);
    std::copy_n(p.product->d.data.data(), p.product->d.data.size(), other.data.data());
    const int bytes = bytes_of(other.type);
    std::memcpy(other.data.data() + i * bytes, &result, static_cast<std::size_t>(bytes));
    const api::Comparison comparison = api::compare(*p.product, other, 1);
    std::string out;
    if (comparison.worst.empty()) {
      out = "the result is the unit's\n";
    } else {
      for (const std::string& line : api::explain(comparison, comparison.worst[0]))
        out += line + "\n";
    }
    out += api::trace_text(api::trace(*p.product, at), api::place_text(at, *p.product));
    c::write_text(out, text, room, length);
  });
}
