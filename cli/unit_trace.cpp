// Traces as text and as JSON: a table of terms for every step, exact numbers.
#include "cli/unit_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/table.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/storage/number_text.hpp"

namespace numemu::cli {
namespace {

using unit::Trace;
using unit::TraceStep;
using unit::TraceTerm;

/// How many neighbours from the first on are padding and read the same.
template <class Item>
std::size_t alike(const std::vector<TraceTerm>& terms, const std::vector<Item>& items,
                  std::size_t first) {
  std::size_t end = first + 1;
  if (terms[first].what != "padding") return 1;
  while (end < items.size() && terms[end].what == "padding" && items[end] == items[first]) ++end;
  return end - first;
}

class TraceWords {
 public:
  TraceWords(const unit::Unit& unit, const unit::Gemm& g, const Trace& trace)
      : u_(*unit.description()),
        trace_(trace),
        whole_(unit::is_integer_core(u_) ||
               (u_.accumulator.format == nullptr && u_.accumulator.fraction == 0 &&
                g.a.format->kind == Kind::integer && g.b.format->kind == Kind::integer)),
        a_digits_(hex_digits(g.a.format->bits)),
        b_digits_(hex_digits(g.b.format->bits)) {}

  std::string text() const {
    std::string text;
    for (std::size_t i = 0; i < trace_.steps.size(); ++i) {
      const TraceStep& step = trace_.steps[i];
      const bool begins = i == 0 || step.instruction != trace_.steps[i - 1].instruction;
      if (begins && trace_.instructions > 1)
        text += fmt::format("instruction {}\n", step.instruction);
      text += step_text(step);
    }
    return text;
  }

  Json steps() const {
    Json list = Json::array();
    for (const TraceStep& step : trace_.steps) list.push_back(step_json(step));
    return list;
  }

  std::string result_code() const {
    const Format* d = unit::result_format(u_);
    return code_text(trace_.result, hex_digits(d != nullptr ? d->bits : result_register().bits));
  }
  std::string result_number() const {
    return code_number(result_register(), unit::result_format(u_), trace_.result);
  }

 private:
  const unit::Register& result_register() const { return unit::result_register(u_); }
  static int hex_digits(int bits) { return (bits + 3) / 4; }
  static int hex_digits(const unit::Register& r) {
    return hex_digits(r.format == nullptr ? r.bits : r.format->bits);
  }
  static std::string code_text(std::uint64_t code, int digits) {
    return fmt::format("{:0{}x}", code, digits);
  }

  /// A sum may carry a sticky bit: something lies below its 64 bits.
  std::string number(const Value& v) const {
    if (whole_ && v.kind != Class::nan && v.kind != Class::infinite) {
      const std::uint64_t magnitude = v.kind == Class::zero ? 0
                                      : v.exponent >= 0     ? v.significand << v.exponent
                                                            : v.significand >> -v.exponent;
      return (v.negative && magnitude != 0 ? "-" : "") + std::to_string(magnitude);
    }
    Value exact = v;
    exact.sticky = false;
    return hex_text(exact) + (v.sticky ? "+" : "");
  }
  std::string number(const std::optional<Value>& v) const { return v ? number(*v) : ""; }

  /// Of a code of C, D or the register.
  std::string code_number(const unit::Register& r, const Format* format, std::uint64_t code) const {
    if (format != nullptr) code <<= format->container_shift;
    return number(unit::read_element(format, r, &code, 0));
  }

  /// "0031b8c1 = -0x1.c6p+14".
  std::string register_text(const TraceStep& step) const {
    if (!step.result) return "nan";
    const unit::Register& r = step.outer ? u_.outer.accumulator : u_.accumulator;
    return code_text(*step.result, hex_digits(r)) + " = " + code_number(r, r.format, *step.result);
  }

  /// What is lost between a product and what was added; a correction is not a loss.
  std::string lost(const TraceStep& step, const TraceTerm& t) const {
    if (t.error || t.product.kind == Class::zero || number(t.product) == number(t.kept)) return "";
    if (t.kept.kind == Class::zero) return "all";
    return step.largest_exponent ? "cut" : "rounded";
  }

  std::vector<std::string> row(const TraceStep& step, const TraceTerm& t) const {
    const bool product = t.k >= 0;
    return {product ? std::to_string(t.k) : t.what,
            product ? code_text(t.a, a_digits_) : "",
            product ? code_text(t.b, b_digits_) : "",
            number(t.scale_a),
            number(t.scale_b),
            number(t.product),
            step.largest_exponent && t.exponent ? std::to_string(*t.exponent) : "",
            number(t.kept),
            number(t.after),
            number(t.error),
            lost(step, t)};
  }

  std::string step_text(const TraceStep& step) const {
    std::vector<std::string> header{"k",        "a",     "b",        "scale a", "scale b", "exact",
                                    "exponent", "added", "register", "error",   "lost"};
    std::vector<std::vector<std::string>> all, rows;
    for (const TraceTerm& t : step.terms) all.push_back(row(step, t));
    for (std::size_t i = 0, count = 0; i < all.size(); i += count) {
      count = alike(step.terms, all, i);
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
    if (step.sum) text += fmt::format("sum {}\n", number(*step.sum));
    return text + fmt::format("register {}\n", register_text(step));
  }

  Json term_json(const TraceStep& step, const TraceTerm& t) const {
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
    json["cut"] = !lost(step, t).empty();
    return json;
  }

  Json step_json(const TraceStep& step) const {
    std::vector<Json> all;
    Json terms = Json::array();
    for (const TraceTerm& t : step.terms) all.push_back(term_json(step, t));
    for (std::size_t i = 0, count = 0; i < all.size(); i += count) {
      count = alike(step.terms, all, i);
      terms.push_back(all[i]);
      if (count > 1) terms.back()["count"] = count;
    }
    Json one = {{"what", step.what}, {"instruction", step.instruction}};
    if (step.largest_exponent) one["largest_exponent"] = *step.largest_exponent;
    one["terms"] = terms;
    if (step.sum) one["sum"] = number(*step.sum);
    one["register"] = register_text(step);
    return one;
  }

  const unit::UnitDescription& u_;
  const Trace& trace_;
  const bool whole_;  ///< numbers are integers
  const int a_digits_, b_digits_;
};

}  // namespace

std::string trace_text(const unit::Unit& unit, const unit::Gemm& g, const std::string& place,
                       const Trace& trace) {
  const TraceWords words(unit, g, trace);
  const Format* input = unit.description()->input.format;
  return fmt::format("D[{}] of {}: {} x {}, K = {}{}\n", place, unit.row().name, g.a.format->name,
                     g.b.format->name, g.k,
                     input == nullptr ? "" : ", operands rounded to " + input->name) +
         words.text() +
         fmt::format("D[{}] = {} = {}\n", place, words.result_code(), words.result_number());
}

Json trace_json(const unit::Unit& unit, const unit::Gemm& g, const Trace& trace) {
  const TraceWords words(unit, g, trace);
  return {{"unit", unit.row().name},       {"format_a", g.a.format->name},
          {"format_b", g.b.format->name},  {"k", g.k},
          {"steps", words.steps()},        {"d", words.result_code()},
          {"value", words.result_number()}};
}

}  // namespace numemu::cli
