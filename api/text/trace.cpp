#include "api/text/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/text/table.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/storage/number_text.hpp"

namespace numemu::api {
namespace {

using unit::StepLosses;
using unit::Trace;
using unit::TraceStep;
using unit::TraceTerm;

/// How many neighbours from the first on are padding and read the same. Item i is about term
/// `begin` + i.
template <class Item>
std::size_t alike(const std::vector<TraceTerm>& terms, std::size_t begin,
                  const std::vector<Item>& items, std::size_t first) {
  std::size_t end = first + 1;
  if (terms[begin + first].what != "padding") return 1;
  while (end < items.size() && terms[begin + end].what == "padding" && items[end] == items[first])
    ++end;
  return end - first;
}

/// A sum may carry a sticky bit: something lies below its 64 bits.
std::string exact_text(const Value& v) {
  Value exact = v;
  exact.sticky = false;
  return hex_text(exact) + (v.sticky ? "+" : "");
}

std::string whole_text(const Value& v) {
  if (v.kind == Class::nan || v.kind == Class::infinite) return exact_text(v);
  const std::uint64_t magnitude = v.kind == Class::zero ? 0
                                  : v.exponent >= 0     ? v.significand << v.exponent
                                                        : v.significand >> -v.exponent;
  return (v.negative && magnitude != 0 ? "-" : "") + std::to_string(magnitude);
}

class TraceWords {
 public:
  explicit TraceWords(const TracedOutput& traced)
      : u_(*traced.unit->description()),
        trace_(traced.trace),
        losses_(traced.losses),
        whole_(whole_numbers(*traced.unit, traced.gemm)),
        a_digits_(hex_digits(traced.gemm.a.format->bits)),
        b_digits_(hex_digits(traced.gemm.b.format->bits)) {}

  TraceWindow all() const { return {0, trace_.steps.size()}; }

  std::string text(const TraceWindow& window) const {
    std::string text;
    for (std::size_t i = window.begin; i < window.end; ++i) {
      const TraceStep& step = trace_.steps[i];
      const bool begins = i == window.begin || step.instruction != trace_.steps[i - 1].instruction;
      if (begins && trace_.instructions > 1)
        text += fmt::format("instruction {}\n", step.instruction);
      text += step_text(step, losses_[i], terms(window, i));
    }
    return text;
  }

  Json steps(const TraceWindow& window) const {
    Json list = Json::array();
    for (std::size_t i = window.begin; i < window.end; ++i)
      list.push_back(step_json(trace_.steps[i], losses_[i], terms(window, i)));
    return list;
  }

  std::string result_code() const {
    const Format* d = unit::result_format(u_);
    return code_text(trace_.result, hex_digits(d != nullptr ? d->bits : result_register().bits));
  }
  std::string result_number() const { return number(result()); }
  std::string result_text() const { return value_text(result(), whole_); }

 private:
  /// The terms of a step that are shown.
  struct Terms {
    std::size_t begin = 0, end = 0;
    bool to_the_end = true;
  };
  Terms terms(const TraceWindow& window, std::size_t step) const {
    const std::size_t count = trace_.steps[step].terms.size();
    const bool cut = step + 1 == window.end && window.end_term && *window.end_term < count;
    return {step == window.begin ? window.begin_term : 0, cut ? *window.end_term : count, !cut};
  }

  const unit::Register& result_register() const { return unit::result_register(u_); }
  static int hex_digits(int bits) { return (bits + 3) / 4; }
  static int hex_digits(const unit::Register& r) {
    return hex_digits(r.format == nullptr ? r.bits : r.format->bits);
  }
  static std::string code_text(std::uint64_t code, int digits) {
    return fmt::format("{:0{}x}", code, digits);
  }

  std::string number(const Value& v) const { return whole_ ? whole_text(v) : exact_text(v); }
  std::string number(const std::optional<Value>& v) const { return v ? number(*v) : ""; }
  std::string both(const std::optional<Value>& v) const { return v ? value_text(*v, whole_) : ""; }

  /// Of a code of D or the register.
  Value value(const unit::Register& r, const Format* format, std::uint64_t code) const {
    if (format != nullptr) code <<= format->container_shift;
    return unit::read_element(format, r, &code, 0);
  }
  Value result() const { return value(result_register(), unit::result_format(u_), trace_.result); }

  /// "0031b8c1 = -0x1.c6p+14 (-29056)".
  std::string register_text(const TraceStep& step, bool decimal) const {
    if (!step.result) return "nan";
    const unit::Register& r = step.outer ? u_.outer.accumulator : u_.accumulator;
    const Value held = value(r, r.format, *step.result);
    return code_text(*step.result, hex_digits(r)) + " = " +
           (decimal ? value_text(held, whole_) : number(held));
  }

  std::vector<std::string> row(const TraceStep& step, const TraceTerm& t,
                               const std::optional<Value>& lost) const {
    const bool product = t.k >= 0;
    return {product ? std::to_string(t.k) : t.what,
            product ? code_text(t.a, a_digits_) : "",
            product ? code_text(t.b, b_digits_) : "",
            number(t.scale_a),
            number(t.scale_b),
            value_text(t.product, whole_),
            step.largest_exponent && t.exponent ? std::to_string(*t.exponent) : "",
            number(t.kept),
            both(t.after),
            number(t.error),
            both(lost)};
  }

  std::string step_text(const TraceStep& step, const StepLosses& losses, const Terms& shown) const {
    std::vector<std::string> header{"k",        "a",     "b",        "scale a", "scale b", "exact",
                                    "exponent", "added", "register", "error",   "lost"};
    std::vector<std::vector<std::string>> all, rows;
    for (std::size_t i = shown.begin; i < shown.end; ++i)
      all.push_back(row(step, step.terms[i], losses.terms[i]));
    for (std::size_t i = 0, count = 0; i < all.size(); i += count) {
      count = alike(step.terms, shown.begin, all, i);
      rows.push_back(all[i]);
      if (count > 1) rows.back()[0] += fmt::format(" x{}", count);
    }
    for (std::size_t column = header.size(); column-- > 0;) {
      const auto empty = [&](const auto& cells) { return cells[column].empty(); };
      if (!std::all_of(rows.begin(), rows.end(), empty)) continue;
      header.erase(header.begin() + static_cast<std::ptrdiff_t>(column));
      for (auto& cells : rows) cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(column));
    }
    std::string text = step.what;
    if (step.largest_exponent) text += fmt::format(", largest exponent {}", *step.largest_exponent);
    text += "\n" + text_table(header, rows);
    if (!shown.to_the_end) return text;
    if (step.sum) text += fmt::format("sum {}\n", both(step.sum));
    text += fmt::format("register {}", register_text(step, true));
    if (losses.rounding) text += fmt::format(", lost by rounding {}", both(losses.rounding));
    if (losses.exact) {
      text += fmt::format("\nexact {}", both(losses.exact));
      if (losses.off) text += fmt::format(", register off by {}", both(losses.off));
    }
    return text + "\n";
  }

  Json term_json(const TraceStep& step, const TraceTerm& t,
                 const std::optional<Value>& lost) const {
    Json json;
    json["what"] = t.what;
    if (t.k >= 0) {
      json["k"] = t.k;
      json["a"] = code_text(t.a, a_digits_);
      json["b"] = code_text(t.b, b_digits_);
    }
    if (t.scale_a) json["scale_a"] = number(t.scale_a);
    if (t.scale_b) json["scale_b"] = number(t.scale_b);
    json["exact"] = number(t.product);
    if (step.largest_exponent && t.exponent) json["exponent"] = *t.exponent;
    json["kept"] = number(t.kept);
    if (t.after) json["register"] = number(t.after);
    if (t.error) json["error"] = number(t.error);
    json["cut"] = lost.has_value();
    if (lost) json["lost"] = number(lost);
    return json;
  }

  Json step_json(const TraceStep& step, const StepLosses& losses, const Terms& shown) const {
    std::vector<Json> all;
    Json terms = Json::array();
    for (std::size_t i = shown.begin; i < shown.end; ++i)
      all.push_back(term_json(step, step.terms[i], losses.terms[i]));
    for (std::size_t i = 0, count = 0; i < all.size(); i += count) {
      count = alike(step.terms, shown.begin, all, i);
      terms.push_back(all[i]);
      if (count > 1) terms.back()["count"] = count;
    }
    Json one = {{"what", step.what}, {"instruction", step.instruction}};
    if (step.largest_exponent) one["largest_exponent"] = *step.largest_exponent;
    one["terms"] = terms;
    if (!shown.to_the_end) return one;
    if (step.sum) one["sum"] = number(*step.sum);
    one["register"] = register_text(step, false);
    if (losses.rounding) one["lost_by_rounding"] = number(losses.rounding);
    if (losses.exact) one["exact"] = number(losses.exact);
    if (losses.off) one["off_by"] = number(losses.off);
    return one;
  }

  const unit::UnitDescription& u_;
  const Trace& trace_;
  const std::vector<StepLosses>& losses_;
  const bool whole_;  ///< numbers are integers
  const int a_digits_, b_digits_;
};

}  // namespace

void add_place(const Place& place, const Product& p, Json& json) {
  const std::size_t axes = p.d.shape.size();
  if (axes == 3) json["b"] = place.product;
  if (axes > 1) json["m"] = place.i;
  json["n"] = axes == 1 ? place.product : place.j;
}

std::string value_text(const Value& v, bool whole) {
  if (whole) return whole_text(v);
  const std::string exact = exact_text(v);
  return v.kind == Class::finite ? fmt::format("{} ({})", exact, decimal_text(v)) : exact;
}

bool whole_numbers(const unit::Unit& unit, const unit::Gemm& g) {
  const unit::UnitDescription& u = *unit.description();
  return unit::is_integer_core(u) ||
         (u.accumulator.format == nullptr && u.accumulator.fraction == 0 &&
          g.a.format->kind == Kind::integer && g.b.format->kind == Kind::integer);
}

std::string trace_text(const TracedOutput& traced, const std::string& place) {
  const TraceWords words(traced);
  const unit::Gemm& g = traced.gemm;
  const Format* input = traced.unit->description()->input.format;
  return fmt::format("D[{}] of {}: {} x {}, K = {}{}\n", place, traced.unit->row().name,
                     g.a.format->name, g.b.format->name, g.k,
                     input == nullptr ? "" : ", operands rounded to " + input->name) +
         words.text(words.all()) +
         fmt::format("D[{}] = {} = {}\n", place, words.result_code(), words.result_text());
}

Json trace_json(const TracedOutput& traced) {
  const TraceWords words(traced);
  const unit::Gemm& g = traced.gemm;
  return {{"unit", traced.unit->row().name},   {"format_a", g.a.format->name},
          {"format_b", g.b.format->name},      {"k", g.k},
          {"steps", words.steps(words.all())}, {"d", words.result_code()},
          {"value", words.result_number()}};
}

std::string steps_text(const TracedOutput& traced, const TraceWindow& window) {
  return TraceWords(traced).text(window);
}

Json steps_json(const TracedOutput& traced, const TraceWindow& window) {
  return TraceWords(traced).steps(window);
}

}  // namespace numemu::api
