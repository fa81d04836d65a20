// Traces as text and as JSON: a table of terms for every step, exact numbers.
#include "cli/unit_trace.hpp"

#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/table.hpp"
#include "formats/codec.hpp"
#include "formats/storage/number_text.hpp"

namespace numemu::cli {
namespace {

using Json = nlohmann::ordered_json;
using unit::Trace;
using unit::TraceStep;
using unit::TraceTerm;

int hex_digits(const Format* format) { return format == nullptr ? 8 : (format->bits + 3) / 4; }

std::string code_text(std::uint64_t code, int digits) {
  return fmt::format("{:0{}x}", code, digits);
}

/// A sum may carry a sticky bit: something lies below its 64 bits.
std::string number(const Value& v) {
  Value exact = v;
  exact.sticky = false;
  return hex_text(exact) + (v.sticky ? "+" : "");
}

/// What is lost between a product and what was added: exact, or empty where nothing was.
std::string lost(const TraceTerm& t) {
  const auto same = [](const Value& a, const Value& b) {
    if (a.kind != b.kind) return a.kind == Class::nan || b.kind == Class::nan;
    if (a.kind != Class::finite) return true;
    const int low_a = std::countr_zero(a.significand), low_b = std::countr_zero(b.significand);
    return a.negative == b.negative && a.significand >> low_a == b.significand >> low_b &&
           a.exponent + low_a == b.exponent + low_b;
  };
  if (same(t.product, t.kept)) return "";
  return t.kept.kind == Class::zero ? "all" : "cut";
}

/// Chains note the register after each multiply-add instead of what was added.
bool running(const TraceTerm& t) { return t.what.find("then") != std::string::npos; }

/// "0031b8c1 = -0x1.c6p+14", or the number of a two's complement register.
std::string register_text(const unit::Unit& unit, std::uint64_t code) {
  const Format* format = unit.description()->accumulator.format;
  const std::string text = code_text(code, hex_digits(format));
  return format == nullptr ? text : text + " = " + number(decode(*format, code));
}

std::vector<std::string> term_row(const TraceTerm& t, int a_digits, int b_digits, bool aligned) {
  const bool product = t.k >= 0;
  return {product ? std::to_string(t.k) : t.what,
          product ? code_text(t.a, a_digits) : "",
          product ? code_text(t.b, b_digits) : "",
          number(t.product),
          aligned ? std::to_string(t.exponent) : "",
          number(t.kept),
          running(t) ? "" : lost(t)};
}

Json term_json(const TraceTerm& t, int a_digits, int b_digits, bool aligned) {
  Json json;
  json["what"] = t.what;
  if (t.k >= 0) {
    json["k"] = t.k;
    json["a"] = code_text(t.a, a_digits);
    json["b"] = code_text(t.b, b_digits);
  }
  json["exact"] = number(t.product);
  if (aligned) json["exponent"] = t.exponent;
  json["kept"] = number(t.kept);
  if (!running(t)) json["cut"] = !lost(t).empty();
  return json;
}

}  // namespace

std::string trace_text(const unit::Unit& unit, const unit::Gemm& g, std::int64_t i, std::int64_t j,
                       const Trace& trace) {
  const int a_digits = hex_digits(g.a.format), b_digits = hex_digits(g.b.format);
  std::string text = fmt::format("D[{},{}] of {}: {} x {}, K = {}\n", i, j, unit.row().name,
                                 g.a.format->name, g.b.format->name, g.k);
  for (const TraceStep& step : trace.steps) {
    text += step.what;
    if (step.aligned) text += fmt::format(", largest exponent {}", step.largest_exponent);
    text += "\n";
    std::vector<std::vector<std::string>> rows;
    for (const TraceTerm& t : step.terms)
      rows.push_back(term_row(t, a_digits, b_digits, step.aligned));
    const bool chain = !step.terms.empty() && running(step.terms.back());
    text += text_table({"k", "a", "b", "exact", "exponent", chain ? "register" : "added", "lost"},
                       rows);
    if (step.sum.kind != Class::zero) text += fmt::format("sum {}\n", number(step.sum));
    text += fmt::format("register {}\n", register_text(unit, step.result));
  }
  text +=
      fmt::format("D[{},{}] = {}\n", i, j, code_text(trace.result, hex_digits(unit.d_format())));
  return text;
}

Json trace_json(const unit::Unit& unit, const unit::Gemm& g, std::int64_t i, std::int64_t j,
                const Trace& trace) {
  const int a_digits = hex_digits(g.a.format), b_digits = hex_digits(g.b.format);
  Json steps = Json::array();
  for (const TraceStep& step : trace.steps) {
    Json terms = Json::array();
    for (const TraceTerm& t : step.terms)
      terms.push_back(term_json(t, a_digits, b_digits, step.aligned));
    Json one;
    one["what"] = step.what;
    if (step.aligned) one["largest_exponent"] = step.largest_exponent;
    one["terms"] = terms;
    one["sum"] = number(step.sum);
    one["register"] = register_text(unit, step.result);
    steps.push_back(one);
  }
  return {{"unit", unit.row().name},
          {"format_a", g.a.format->name},
          {"format_b", g.b.format->name},
          {"m", i},
          {"n", j},
          {"k", g.k},
          {"steps", steps},
          {"d", code_text(trace.result, hex_digits(unit.d_format()))}};
}

}  // namespace numemu::cli
