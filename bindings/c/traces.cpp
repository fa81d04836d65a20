#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/text/trace.hpp"
#include "api/units.hpp"
#include "bindings/c/call.hpp"
#include "bindings/c/units.hpp"
#include "emu/unit/reference/given_result.hpp"
#include "emu/unit/reference/register.hpp"

struct numemu_trace {
  numemu::unit::Trace trace;
  std::vector<numemu::unit::StepLosses> losses;
};

namespace numemu::c {
namespace {

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
