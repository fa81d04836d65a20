#include "experiments/search/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "formats/blocks/block_format.hpp"
#include "formats/error.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/role_json.hpp"
#include "policies/recipe/role_table.hpp"

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
  try {
    return find_format(name);
  } catch (const Error& error) {
    throw usage_error(where + ": " + error.what());
  }
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
  std::size_t scaling = 0;
  for (const Shape& shape : shapes_of(plan, weight)) {
    std::vector<std::string> rules = plan.rules;
    if (weight && std::ranges::find(rules, "mse") == rules.end()) rules.emplace_back("mse");
    for (const std::string& rule : rules) {
      for (const Format* const element : elements) {
        Json json = shape.role(*element);
        json["scale"] = rule;
        try {
          const policies::RolePolicy policy =
              policies::read_role(JsonReader(json, "search"), policies::role_row(role));
          // In blocks mse searches every block: it is tried where it is asked for.
          if (policy.block != nullptr && rules.size() > plan.rules.size() && rule == "mse")
            continue;
          if (std::round(100 * stored_bits_of(policy)) > 100 * plan.most_stored) continue;
          out.push_back({fmt::format("{}, {}, {}", element->name, shape.words, rule),
                         policies::role_json(policy), policy, scaling});
        } catch (const Error&) {  // not every element serves every scale
        }
      }
      ++scaling;
    }
  }
  return out;
}

}  // namespace numemu::experiments
