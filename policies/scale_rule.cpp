// The table of scale rules, made from the files of policies/scale/, and the arithmetic they share.
#include "policies/scale_rule.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "formats/block_arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/simd/block_scales.hpp"
#include "formats/suggest.hpp"

namespace numemu::policies {

#define NUMEMU_SCALE_RULE(stem) extern const ScaleRule scale_##stem;
#include "policies/scale/table.inc"
#undef NUMEMU_SCALE_RULE

namespace {

bool meant(const ScaleRule& rule, std::string_view text) {
  return text == rule.name || (rule.alias != nullptr && text == rule.alias);
}

/// The rule of that name, which must be among those that `fit`; `what` is what they choose.
const ScaleRule& find_among(std::string_view name, const std::string& what,
                            const std::vector<const ScaleRule*>& fit) {
  std::vector<std::string> known;
  for (const ScaleRule* rule : fit) {
    if (meant(*rule, name)) return *rule;
    known.emplace_back(rule->name);
  }
  const std::vector<const ScaleRule*> all = all_scale_rules();
  if (std::none_of(all.begin(), all.end(), [&](const auto* rule) { return meant(*rule, name); }))
    throw Error(unknown_name("scale rule", name, known));
  std::string text = "scale rule '" + std::string(name) + "' has no " + what + ", expected ";
  for (std::size_t i = 0; i < known.size(); ++i)
    text += (i == 0 ? "" : i + 1 == known.size() ? " or " : ", ") + known[i];
  throw Error(text);
}

template <class Predicate>
std::vector<const ScaleRule*> rules_that(const Predicate& predicate) {
  std::vector<const ScaleRule*> rules = all_scale_rules();
  std::erase_if(rules, [&](const ScaleRule* rule) { return !predicate(*rule); });
  return rules;
}

/// The smallest and the largest finite element, 0 and 0 for none.
struct Extremes {
  float low = 0, high = 0;
};
Extremes extremes(const float* x, std::int64_t n) {
  Extremes e;
  bool any = false;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    e.low = any ? std::min(e.low, x[i]) : x[i];
    e.high = any ? std::max(e.high, x[i]) : x[i];
    any = true;
  }
  return e;
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
  const Extremes e = extremes(r.x, r.n);
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

}  // namespace

std::vector<const ScaleRule*> all_scale_rules() {
  return {
#define NUMEMU_SCALE_RULE(stem) &scale_##stem,
#include "policies/scale/table.inc"
#undef NUMEMU_SCALE_RULE
  };
}

std::string scale_rule_name(std::string_view text) {
  for (const ScaleRule* rule : all_scale_rules()) {
    if (meant(*rule, text)) return rule->name;
  }
  return std::string(text);
}

bool serves(const ScaleRule& rule, const BlockFormat& f) {
  if (f.power_of_two_scale()) return rule.exponents != nullptr;
  const bool plain = f.affine == Affine::sym && !f.tensor_scale;
  return rule.scale != nullptr && (plain || rule.serves_affine);
}

const ScaleRule& find_scale_rule(std::string_view name) {
  return find_among(name, "real scale, it chooses powers of two for blocks",
                    rules_that([](const ScaleRule& rule) { return rule.scale != nullptr; }));
}

const ScaleRule& find_scale_rule(std::string_view name, const BlockFormat& f) {
  return find_among(name, "scales for " + f.name,
                    rules_that([&](const ScaleRule& rule) { return serves(rule, f); }));
}

double largest_element(const Conversion& conversion) { return largest_value(*conversion.format); }

double largest_magnitude(const float* x, std::int64_t n) {
  return std::bit_cast<float>(simd::largest_finite(x, n));
}

float absmax_scale(double amax, const Conversion& conversion) {
  if (amax == 0) return 1;
  const double largest = largest_element(conversion);
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

float absmax_block_scale(const ScaleRequest& r) {
  const Reach reach = reach_of(r);
  if (reach.elements.kind == Class::zero) return r.block->tensor_scale ? 0.0f : 1.0f;
  const Value divisor =
      r.block->tensor_scale ? exact_product(reach.codes, value_of(r.tensor_scale)) : reach.codes;
  return encoded_scale(r, exact_quotient(reach.elements, divisor));
}

float round_scale(const ScaleRequest& r, float scale) { return encoded_scale(r, value_of(scale)); }

}  // namespace numemu::policies
