// The table of scale rules, made from the files of formats/scaling/rules/, and the arithmetic they
// share.
#include "formats/scaling/scale_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "formats/blocks/block_convert.hpp"
#include "formats/call_text.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/interned.hpp"
#include "formats/joined.hpp"
#include "formats/simd/block_scales.hpp"
#include "formats/suggest.hpp"

namespace numemu {

#define NUMEMU_SCALE_RULE(stem) extern const ScaleRule scale_##stem;
#include "formats/scaling/rules/table.inc"
#undef NUMEMU_SCALE_RULE

namespace {

constexpr std::size_t kLongestText = 256;  // bounds how deep rules nest

bool meant(const ScaleRule& rule, std::string_view text) {
  return text == rule.name || (rule.alias != nullptr && text == rule.alias);
}

const ScaleRule* row_of(std::string_view name) {
  for (const ScaleRule* rule : all_scale_rules()) {
    if (meant(*rule, name)) return rule;
  }
  return nullptr;
}

/// "detuned(RULE,FACTOR)": how a rule with arguments is written.
std::string usage(const ScaleRule& rule) {
  std::vector<std::string_view> names;
  for (const ScaleArgument& argument : rule.arguments) names.push_back(argument.name);
  return fmt::format("{}({})", rule.name, joined(names, ","));
}

const ScaleRule* rule_meant(std::string_view text);
using Fits = std::function<bool(const ScaleRule&)>;
Error unknown_rule(std::string_view text, const Fits& fit,
                   const std::vector<std::string>& others = {});

/// Reads one argument and adds its canonical text to `texts`.
void read_argument(const ScaleRule& row, const ScaleArgument& known, const std::string& given,
                   ScaleArguments& read, std::vector<std::string>& texts) {
  if (known.kind == ScaleArgument::Kind::rule) {
    read.rule = rule_meant(given);
    if (read.rule == nullptr) throw unknown_rule(given, [](const ScaleRule&) { return true; });
    texts.push_back(read.rule->name);
  } else if (known.kind == ScaleArgument::Kind::number) {
    const std::optional<double> number = number_argument(given);
    if (!number || !(*number >= known.least && *number <= known.most)) {
      throw Error(fmt::format("scale rule {}: expected a number from {} to {} as {}, found '{}'",
                              usage(row), known.least, known.most, known.name, given));
    }
    read.number = *number;
    texts.push_back(fmt::format("{}", *number));
  } else {
    const auto found = std::find(known.choices.begin(), known.choices.end(), given);
    if (found == known.choices.end()) {
      throw Error(fmt::format(
          "scale rule {}: {}", usage(row),
          unknown_name(known.name, given, {known.choices.begin(), known.choices.end()})));
    }
    read.choice = static_cast<std::size_t>(found - known.choices.begin());
    if (read.choice != 0) texts.emplace_back(given);
  }
}

/// The rule that a row makes of its arguments; one for each canonical text.
const ScaleRule& made_rule(const ScaleRule& row, const CallText& call) {
  const std::vector<ScaleArgument>& known = row.arguments;
  std::size_t needed = known.size();
  if (known.back().kind == ScaleArgument::Kind::choice) --needed;
  const std::size_t given = call.arguments.size();
  if (given < needed || given > known.size())
    throw Error(fmt::format("scale rule {}: expected {} argument{}, found {}", usage(row),
                            needed == known.size() ? fmt::format("{}", needed)
                                                   : fmt::format("{} or {}", needed, needed + 1),
                            known.size() == 1 ? "" : "s", given));
  ScaleArguments read;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < given; ++i)
    read_argument(row, known[i], call.arguments[i], read, texts);
  read.text = fmt::format("{}({})", row.name, joined(texts, ","));
  return Interned::find<ScaleRule>(read.text, [&] {
    auto rule = std::make_unique<ScaleRule>(row.make(read));
    rule->name = read.text;
    rule->summary = row.summary;
    rule->alias = nullptr;
    return rule;
  });
}

/// Whether what a row with arguments makes of some of them fits: of each rule without arguments, of
/// a number that all take, of the first choice.
bool makes_fitting(const ScaleRule& row, const Fits& fit) {
  CallText call{row.name, {}};
  std::size_t rule_at = row.arguments.size();
  for (const ScaleArgument& argument : row.arguments) {
    if (argument.kind == ScaleArgument::Kind::rule) rule_at = call.arguments.size();
    call.arguments.push_back(
        argument.kind == ScaleArgument::Kind::choice
            ? std::string(argument.choices.front())
            : fmt::format("{}", std::clamp(1.0, argument.least, argument.most)));
  }
  if (rule_at == row.arguments.size()) return fit(made_rule(row, call));
  return std::ranges::any_of(all_scale_rules(), [&](const ScaleRule* inner) {
    if (inner->make != nullptr) return false;
    call.arguments[rule_at] = inner->name;
    return fit(made_rule(row, call));
  });
}

ServingRules fitting(const Fits& fit) {
  ServingRules rules;
  for (const ScaleRule* row : all_scale_rules()) {
    if (row->make == nullptr && fit(*row)) rules.names.push_back(row->name);
    if (row->make != nullptr && makes_fitting(*row, fit))
      rules.with_arguments.push_back(usage(*row));
  }
  return rules;
}

/// The rule that a text means, whatever it serves; null for an unknown name.
const ScaleRule* rule_meant(std::string_view text) {
  if (text.size() > kLongestText) return nullptr;
  const ScaleRule* row = row_of(text);
  const CallText call = parse_call(text);
  if (row == nullptr) row = row_of(call.name);
  if (row != nullptr && row->make != nullptr) return &made_rule(*row, call);
  return row_of(text);
}

/// Names the rules that fit, those with arguments with the arguments of the text, and others.
Error unknown_rule(std::string_view text, const Fits& fit, const std::vector<std::string>& others) {
  if (parse_call(text).name == "delayed") {
    return Error(
        fmt::format("scale rule '{}': expected delayed outside other rules, as a recipe has "
                    "it: delayed(N,RULE)",
                    text));
  }
  const std::string_view arguments = text.substr(std::min(text.find('('), text.size()));
  std::vector<std::string> known;
  for (const ScaleRule* rule : all_scale_rules()) {
    if (rule->make != nullptr || fit(*rule))
      known.push_back(rule->name + std::string(rule->make == nullptr ? "" : arguments));
    if (rule->alias != nullptr && fit(*rule)) known.emplace_back(rule->alias);
  }
  known.insert(known.end(), others.begin(), others.end());
  return Error(unknown_name("scale rule", text, known));
}

/// The rule that a text means, which must be one that `fit`s; `what` is what those choose.
const ScaleRule& find_among(std::string_view text, const std::string& what, const Fits& fit) {
  const ScaleRule* const rule = rule_meant(text);
  if (rule == nullptr) throw unknown_rule(text, fit);
  if (fit(*rule)) return *rule;
  auto [known, with_arguments] = fitting(fit);
  known.insert(known.end(), with_arguments.begin(), with_arguments.end());
  std::string message = fmt::format("scale rule '{}' has no {}, expected ", text, what);
  for (std::size_t i = 0; i < known.size(); ++i)
    message += (i == 0 ? "" : i + 1 == known.size() ? " or " : ", ") + known[i];
  throw Error(message);
}

Value negated(float x) { return value_of(-x); }

/// What the elements reach, and how many steps the codes have for it.
struct Reach {
  Value elements, codes;
};
Reach reach_of(const ScaleRequest& r) {
  const BlockFormat& f = *r.block;
  if (f.affine == Affine::sym)
    return {value_of(static_cast<float>(largest_magnitude(r.x, r.n))), largest_element(f)};
  const simd::FiniteRange e = simd::finite_range(r.x, r.n);
  if (f.affine == Affine::min)
    return {exact_sum(value_of(e.high), negated(e.low)), largest_element(f)};
  const Value steps{Class::finite, false, false, 0, f.element->code_mask()};
  return {exact_sum(value_of(std::max(e.high, 0.0f)), negated(std::min(e.low, 0.0f))), steps};
}

float encoded_scale(const ScaleRequest& r, const Value& exact) {
  const Format& f = *r.block->scale;
  const Encoded result = encode(f, exact, {.mode = r.scale_rounding}, Overflow::saturate);
  const Value rounded = decode(f, result.code);
  if (rounded.kind == Class::finite) return static_cast<float>(to_double(rounded));
  return static_cast<float>(smallest_value(f));
}

float reaching_scale(const ScaleRequest& r, const Reach& reach) {
  if (reach.elements.kind == Class::zero) return r.block->tensor_scale ? 0.0f : 1.0f;
  const Value divisor =
      r.block->tensor_scale ? exact_product(reach.codes, value_of(r.tensor_scale)) : reach.codes;
  return encoded_scale(r, exact_quotient(reach.elements, divisor));
}

}  // namespace

std::vector<const ScaleRule*> all_scale_rules() {
  return {
#define NUMEMU_SCALE_RULE(stem) &scale_##stem,
#include "formats/scaling/rules/table.inc"
#undef NUMEMU_SCALE_RULE
  };
}

std::string scale_rule_name(std::string_view text) {
  const ScaleRule* const rule = rule_meant(text);
  return rule == nullptr ? std::string(text) : rule->name;
}

bool serves(const ScaleRule& rule, const BlockFormat& f) {
  if (f.power_of_two_scale()) return rule.exponents != nullptr;
  const bool plain = f.affine == Affine::sym && !f.tensor_scale;
  return rule.scale != nullptr &&
         (plain || rule.serves_affine || (f.affine == Affine::sym && rule.serves_tensor_scale));
}

ServingRules rules_serving(const BlockFormat& f) {
  return fitting([&](const ScaleRule& rule) { return serves(rule, f); });
}

const ScaleRule& find_scale_rule(std::string_view name) {
  return find_among(name, "real scale, it chooses powers of two for blocks",
                    [](const ScaleRule& rule) { return rule.scale != nullptr; });
}

void require_scale_rule(std::string_view name, const std::vector<std::string>& others) {
  if (rule_meant(name) == nullptr && std::find(others.begin(), others.end(), name) == others.end())
    throw unknown_rule(
        name, [](const ScaleRule&) { return true; }, others);
}

const ScaleRule& find_scale_rule(std::string_view name, const BlockFormat& f) {
  return find_among(name, "scales for " + f.name,
                    [&](const ScaleRule& rule) { return serves(rule, f); });
}

double largest_element(const Conversion& conversion) { return largest_value(*conversion.format); }

double largest_magnitude(const float* x, std::int64_t n) {
  return std::bit_cast<float>(simd::largest_finite(x, n));
}

float absmax_scale(double amax, const Conversion& conversion) {
  return scale_to(amax, largest_element(conversion));
}

float scale_to(double amax, double largest) {
  if (amax == 0) return 1;
  // scale * largest is exact in double (24 + 11 bits), so the comparison below decides the upward
  // rounding exactly.
  float scale = static_cast<float>(amax / largest);
  while (static_cast<double>(scale) * largest < amax) {
    scale = std::nextafter(scale, std::numeric_limits<float>::infinity());
  }
  for (float below = std::nextafter(scale, 0.0f); static_cast<double>(below) * largest >= amax;
       below = std::nextafter(below, 0.0f)) {
    scale = below;
  }
  return std::min(scale, std::numeric_limits<float>::max());
}

float absmax_block_scale(const ScaleRequest& r) { return reaching_scale(r, reach_of(r)); }

float block_scale_to(const ScaleRequest& r, const Value& element) {
  Reach reach = reach_of(r);
  reach.codes = element;
  return reaching_scale(r, reach);
}

bool has_magnitude(const ScaleRequest& r) {
  return std::any_of(r.x, r.x + r.n, [](float x) { return x != 0 && std::isfinite(x); });
}

float round_scale(const ScaleRequest& r, float scale) { return encoded_scale(r, value_of(scale)); }

}  // namespace numemu
