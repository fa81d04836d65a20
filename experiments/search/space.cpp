#include "experiments/search/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "emu/unit/description/fields.hpp"
#include "experiments/predict/unit_errors.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/role_json.hpp"
#include "policies/recipe/role_table.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::experiments {
namespace {

constexpr int kMostExponent = 5;  // of eXmY: more binades than a block's numbers span

/// Two of the same multiples of a power of two quantize alike under scales. Integers without their
/// most negative code.
std::vector<double> shape_of(const Format& format) {
  std::vector<double> values = finite_values(format);
  if (format.kind == Kind::integer && values.size() > 1) values.erase(values.begin());
  const double unit = std::ldexp(1.0, std::ilogb(values.back() == 0 ? 1 : values.back()));
  for (double& value : values) value /= unit;
  return values;
}

const Format& found(const std::string& name, const std::string& where) {
  return *at(where, ErrorKind::usage, [&] { return &find_format(name); });
}

std::vector<std::string> all_formats(const SpacePlan& plan) {
  std::vector<std::string> names;
  for (const Format* format : named_formats()) {
    if (format->is_signed && format->kind != Kind::sign && format->has_zero() &&
        format->bits >= plan.least_bits && format->bits <= plan.most_bits)
      names.push_back(format->name);
  }
  for (int bits = std::max(3, plan.least_bits); bits <= plan.most_bits; ++bits) {
    for (int exponent = 1; exponent <= std::min(kMostExponent, bits - 1); ++exponent)
      names.push_back(fmt::format("e{}m{}+finite", exponent, bits - 1 - exponent));
    for (const char* family : {"posit", "log"})
      names.push_back(fmt::format("{}({})", family, bits));
  }
  if (plan.least_bits <= 4 && plan.most_bits >= 4) names.insert(names.end(), {"nf4", "af4"});
  return names;
}

/// What shares a scale, for any element that it takes.
struct Shape {
  std::string words;
  std::function<Json(const Format&)> role;
};

std::vector<Shape> shapes_of(const SpacePlan& plan, bool weight) {
  std::vector<Shape> out;
  for (const char* granularity : {"tensor", weight ? "channel" : "row"}) {
    out.push_back({fmt::format("one float32 per {}", granularity), [=](const Format& f) {
                     return Json{{"format", f.name}, {"granularity", granularity}};
                   }});
  }
  for (const std::int64_t size : plan.blocks) {
    out.push_back({fmt::format("e8m0 per {}", size), [=](const Format& f) {
                     return Json{{"format", f.kind == Kind::integer
                                                ? fmt::format("bfp({},{})", f.bits, size)
                                                : fmt::format("mx({},{})", f.name, size)}};
                   }});
    for (const std::string& scale : plan.scales) {
      for (const bool tensor : {false, true}) {
        if (tensor && find_format(scale).bits > 8) continue;  // has range enough
        out.push_back(
            {fmt::format("{} per {}{}", scale, size, tensor ? " and float32 per tensor" : ""),
             [=](const Format& f) {
               return Json{{"format", fmt::format("group({},{},{}{})", f.name, size, scale,
                                                  tensor ? ",tensor-scale" : "")}};
             }});
      }
    }
  }
  return out;
}

constexpr const char *kFourOverSix = "four-over-six", *kMse = "mse";

/// Whether a rule that the plan does not name is tried. Without blocks mse is never worse than
/// four-over-six. Hardware that scales activations in blocks as it goes has four-over-six for
/// NVFP4.
bool has_added_rule(const SpacePlan& plan, bool weight, const std::string& rule,
                    const BlockFormat* block) {
  if (rule == kMse) return block == nullptr || plan.more_rules;
  return block != nullptr && (weight || block->tensor_scale);
}

}  // namespace

std::vector<const Format*> space_elements(const SpacePlan& plan) {
  std::vector<const Format*> out;
  std::set<std::vector<double>> seen;
  for (const std::string& name : plan.formats.empty() ? all_formats(plan) : plan.formats) {
    const Format& format = found(name, plan.named);
    if (format.bits > 8 || format.kind == Kind::sign || !format.is_signed || !format.has_zero())
      throw usage_error(
          fmt::format("{}: {}: expected signed formats with a zero, of at most 8 bits", plan.named,
                      format.name));
    if (seen.insert(shape_of(format)).second) out.push_back(&format);
  }
  return out;
}

double stored_bits_of(const policies::RolePolicy& policy) {
  return policy.block != nullptr ? policy.block->bits_per_element()
                                 : static_cast<double>(policy.format->bits);
}

std::vector<SearchOption> space_of(const SpacePlan& plan, const std::string& role) {
  const std::vector<const Format*> elements = space_elements(plan);
  const bool weight = role == "weight";
  std::vector<SearchOption> out;
  std::vector<std::string> rules = plan.rules;
  const auto also = [&](const char* rule) {
    if (std::ranges::find(rules, scale_rule_name(rule), scale_rule_name) == rules.end())
      rules.emplace_back(rule);
  };
  if (plan.more_rules) also(kFourOverSix);
  if (weight) also(kMse);
  std::size_t scaling = 0, first_form = 0;
  for (const Shape& shape : shapes_of(plan, weight)) {
    for (std::size_t r = 0; r < rules.size(); ++r) {
      const std::string& rule = rules[r];
      for (std::size_t e = 0; e < elements.size(); ++e) {
        const Format& element = *elements[e];
        Json json = shape.role(element);
        json["scale"] = rule;
        try {
          const policies::RolePolicy policy =
              policies::read_role(JsonReader(json, "search"), policies::role_row(role));
          const bool added = r >= plan.rules.size();
          if (added && !has_added_rule(plan, weight, rule, policy.block)) continue;
          if (std::round(100 * stored_bits_of(policy)) > 100 * plan.most_stored) continue;
          out.push_back({fmt::format("{}, {}, {}", element.name, shape.words, rule),
                         policies::role_json(policy), policy, scaling, first_form + e, rule,
                         added && rule == kMse && policy.block != nullptr});
        } catch (const Error&) {  // not every element serves every scale
        }
      }
      ++scaling;
    }
    first_form += elements.size();
  }
  return out;
}

std::string rules_text(const std::vector<SearchOption>& options) {
  std::vector<std::string> rules, words;
  for (const SearchOption& option : options)
    if (std::ranges::find(rules, option.rule) == rules.end()) rules.push_back(option.rule);
  // It is the first in the order of options, and the last to be tried.
  std::stable_partition(rules.begin(), rules.end(),
                        [](const std::string& rule) { return rule != kMse; });
  for (const std::string& rule : rules) {
    const auto of_rule = [&](const auto& holds) {
      return std::ranges::any_of(options,
                                 [&](const SearchOption& o) { return o.rule == rule && holds(o); });
    };
    const bool searched = of_rule([](const SearchOption& o) { return o.searched; });
    const bool blocks = of_rule([](const SearchOption& o) { return o.policy.block != nullptr; });
    words.push_back(rule + (rule != kMse ? ""
                            : searched   ? " (in blocks for the best under the others)"
                            : blocks     ? ""
                                         : " without blocks"));
  }
  return joined(words, ", ");
}
namespace {

constexpr double kFloat32Bits = 32, kExactBits = 64;
/// Exponents of 8 bits hold the sums of codes of any element format.
constexpr int kWideExponent = 8;
constexpr int kAdditionsOfKahan = 4;

bool holds_any_size(const Format* format) {
  return format != nullptr && format->kind == Kind::floating &&
         format->exponent_bits >= kWideExponent;
}

int bits_of(const unit::Register& r) { return r.format != nullptr ? r.format->bits : r.bits; }

std::vector<bool> taken(const unit::Unit& unit, const std::vector<SearchOption>& options,
                        net::Side side) {
  std::vector<bool> out;
  for (const SearchOption& option : options) {
    bool takes = true;
    try {
      policies::require_operand(unit, option.policy, side);
    } catch (const Error&) {  // is what is asked
      takes = false;
    }
    out.push_back(takes);
  }
  return out;
}

}  // namespace

double adder_bits(const unit::Unit& unit) {
  const unit::UnitDescription* const u = unit.description();
  if (u == nullptr) return kFloat32Bits;
  if (u->core == unit::CoreKind::exact) return kExactBits;
  double bits = bits_of(u->accumulator);
  if (u->core == unit::CoreKind::fused) {
    const int step = std::max(1, unit::products_of_step(*u));
    bits = u->alignment.fraction_bits + bits / step;
  } else if (u->chain.kahan) {
    bits *= kAdditionsOfKahan;
  } else if (u->chain.chunk > 0) {
    bits += bits / u->chain.chunk;
  }
  if (u->outer.every > 0) bits += double(bits_of(u->outer.accumulator)) / u->outer.every;
  return bits;
}

double multiply_add_cost(int weight_bits, int activation_bits, double adder_bits) {
  return (weight_bits * activation_bits + adder_bits) /
         (kFloat32Bits * kFloat32Bits + kFloat32Bits);
}

int RankedUnit::size_of(const SearchOption& weight, const SearchOption& activation) const {
  constexpr int kBlocks = 1 << 12;  // above every exponent
  if (any_size) return 0;
  int size = 0;
  for (const auto& [option, blocks] : {std::pair(&weight, kBlocks), {&activation, 2 * kBlocks}})
    size += option->policy.block != nullptr ? blocks
                                            : std::ilogb(largest_value(*option->policy.format));
  return size;
}

std::vector<RankedUnit> ranked_units(const std::vector<std::string>& names,
                                     const std::vector<SearchOption>& weights,
                                     const std::vector<SearchOption>& activations,
                                     const std::string& where) {
  if (names.empty()) return {RankedUnit{}};
  std::vector<RankedUnit> out;
  for (const std::string& name : names) {
    const unit::Unit& unit = unit::find_unit(name);
    const unit::UnitDescription* const u = unit.description();
    RankedUnit ranked{.name = name,
                      .adder_bits = adder_bits(unit),
                      .weights = taken(unit, weights, net::Side::b),
                      .activations = taken(unit, activations, net::Side::a)};
    if (u != nullptr && unit_adds_noise(unit.row().name))
      ranked.any_size = !unit::is_integer_core(*u) && holds_any_size(u->accumulator.format) &&
                        holds_any_size(unit::result_format(*u));
    for (const auto& [options, role] :
         {std::pair(&ranked.weights, "weights"), {&ranked.activations, "activations"}}) {
      if (std::ranges::find(*options, true) == options->end())
        throw usage_error(fmt::format("{}: {} takes none of the {} options of {} (it takes {})",
                                      where, name, options->size(), role, unit.operand_rule()));
    }
    out.push_back(std::move(ranked));
  }
  return out;
}

double least_cost(const std::vector<SearchOption>& weights,
                  const std::vector<SearchOption>& activations,
                  const std::vector<RankedUnit>& units) {
  const auto least = [](const std::vector<SearchOption>& options, const std::vector<bool>& taken) {
    int bits = std::numeric_limits<int>::max();
    for (std::size_t i = 0; i < options.size(); ++i)
      if (taken.empty() || taken[i]) bits = std::min(bits, options[i].policy.format->bits);
    return bits;
  };
  double cost = HUGE_VAL;
  for (const RankedUnit& unit : units)
    cost = std::min(cost, multiply_add_cost(least(weights, unit.weights),
                                            least(activations, unit.activations), unit.adder_bits));
  return cost;
}

}  // namespace numemu::experiments
