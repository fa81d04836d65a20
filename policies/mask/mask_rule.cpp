// The table of mask rules, made from the files of policies/mask/rules/, and the texts that name
// them.
#include "policies/mask/mask_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/suggest.hpp"
#include "policies/mask/tile_mask.hpp"

namespace numemu::policies {

#define NUMEMU_MASK_RULE(stem) extern const MaskRule mask_##stem;
#include "policies/mask/rules/table.inc"
#undef NUMEMU_MASK_RULE

namespace {

constexpr std::int64_t kLongestRefresh = 1'000'000'000;
constexpr std::int64_t kLongestHistory = 65536;

const std::vector<std::string> kRemainders = {"error", "pad", "dense"};
const std::vector<std::string> kMaskAxes = {"channel", "reduction", "batch"};
const std::vector<std::string> kLayouts = {"tile", "channel"};
const std::vector<std::string> kRepairs = {"none", "absorb", "adaprune"};
const std::vector<std::string> kLaws = {"normal", "lognormal"};
const std::vector<std::string> kPlaces = {"operand", "input"};

/// Masks of tiles cost more than the products they serve: the publication renews them so often.
std::int64_t default_refresh(const MaskRule& rule) { return rule.span == MaskSpan::tile ? 40 : 1; }

[[noreturn]] void fail(std::string_view text, const std::string& expected) {
  throw Error(fmt::format("mask '{}': expected {}", text, expected));
}

bool takes(const MaskRule& rule, std::string_view option) {
  if (option == "remainder" || option == "axis") return rule.span != MaskSpan::tensor;
  return std::find(rule.options.begin(), rule.options.end(), option) != rule.options.end();
}

std::string options_of(const MaskRule& rule) {
  std::string names;
  for (const char* option :
       {"remainder", "axis", "layout", "repair", "refresh", "law", "history", "at"}) {
    if (takes(rule, option)) names += fmt::format("{}{}=", names.empty() ? "" : ", ", option);
  }
  return names.empty() ? "no options" : "options among " + names;
}

template <class Enumeration>
Enumeration value_of(std::string_view text, std::string_view key, std::string_view value,
                     const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), value);
  if (found == names.end())
    fail(text, fmt::format("{}={}", key, joined(names, fmt::format(" or {}=", key))));
  return static_cast<Enumeration>(found - names.begin());
}

std::int64_t whole_of(std::string_view text, std::string_view key, std::string_view value,
                      std::int64_t least, std::int64_t most) {
  const auto number = whole_argument(value, least, most);
  if (!number) fail(text, fmt::format("{}= a whole number from {} to {}", key, least, most));
  return *number;
}

void read_option(std::string_view text, std::string_view key, std::string_view value,
                 MaskPolicy& policy) {
  if (!takes(*policy.rule, key))
    fail(text, fmt::format("{} for {}", options_of(*policy.rule), policy.rule->name));
  if (key == "remainder") {
    policy.remainder = value_of<Remainder>(text, key, value, kRemainders);
  } else if (key == "axis") {
    policy.axis = value_of<MaskAxis>(text, key, value, kMaskAxes);
  } else if (key == "layout") {
    policy.layout = value_of<TileLayout>(text, key, value, kLayouts);
  } else if (key == "repair") {
    policy.repair = value_of<Repair>(text, key, value, kRepairs);
  } else if (key == "refresh") {
    policy.refresh = whole_of(text, key, value, 0, kLongestRefresh);
  } else if (key == "law") {
    policy.law = value_of<ThresholdLaw>(text, key, value, kLaws);
  } else if (key == "history") {
    policy.history = whole_of(text, key, value, 0, kLongestHistory);
  } else {
    policy.propagated = value_of<int>(text, key, value, kPlaces) == 1;
  }
}

/// "4:8": the patterns of sparse units, and for tiles those up to 32.
unit::Pattern pattern_of(std::string_view text, const std::string& argument, MaskSpan span) {
  if (span == MaskSpan::group) return unit::parse_pattern(argument);
  const std::size_t colon = argument.find(':');
  std::optional<std::int64_t> kept, group;
  if (colon != std::string::npos) {
    group = whole_argument(argument.substr(colon + 1), 1, kMostTile);
    if (group) kept = whole_argument(argument.substr(0, colon), 1, *group);
  }
  if (!kept) fail(text, fmt::format("NAME(N:M) with 1 <= N <= M <= {}", kMostTile));
  return {{static_cast<int>(*kept), static_cast<int>(*group)}, false};
}

}  // namespace

std::vector<const MaskRule*> all_mask_rules() {
  return {
#define NUMEMU_MASK_RULE(stem) &mask_##stem,
#include "policies/mask/rules/table.inc"
#undef NUMEMU_MASK_RULE
  };
}

const MaskRule& find_mask_rule(std::string_view name) {
  const std::vector<const MaskRule*> rules = all_mask_rules();
  if (name.find('(') != name.npos)
    throw Error(fmt::format("mask '{}': expected a closing parenthesis at its end", name));
  if (name.find(':') != name.npos)
    throw Error(
        fmt::format("unknown mask '{0}'; expected a rule with it, such as greedy({0})", name));
  return *find_named("mask", name, rules, &MaskRule::name);
}

MaskPolicy parse_mask(std::string_view text) {
  const CallText call = parse_call(text);
  MaskPolicy policy;
  policy.rule = &find_mask_rule(call.name);
  policy.refresh = default_refresh(*policy.rule);
  const bool of_tensor = policy.rule->span == MaskSpan::tensor;
  if (call.arguments.empty()) {
    fail(text, fmt::format("{}({}), {}", call.name, of_tensor ? "SHARE" : "N:M",
                           options_of(*policy.rule)));
  }
  const std::string& argument = call.arguments[0];
  if (of_tensor) {
    const auto share = number_argument(argument);
    if (!share || !(*share > 0 && *share < 1))
      fail(text, fmt::format("{}(SHARE) with a share between 0 and 1", call.name));
    policy.share = *share;
  } else {
    policy.pattern = pattern_of(text, argument, policy.rule->span);
  }
  std::vector<std::string> seen;
  for (std::size_t i = 1; i < call.arguments.size(); ++i) {
    const std::string& option = call.arguments[i];
    const std::size_t equals = option.find('=');
    const std::string key = option.substr(0, equals);
    if (equals == std::string::npos || std::find(seen.begin(), seen.end(), key) != seen.end())
      fail(text, fmt::format("each option once as key=value after the argument, not '{}'", option));
    seen.push_back(key);
    read_option(text, key, option.substr(equals + 1), policy);
  }
  if (policy.rule->check != nullptr) policy.rule->check(policy);
  return policy;
}

std::string to_string(const MaskPolicy& policy) {
  const MaskPolicy defaults;
  std::string out =
      fmt::format("{}({}", policy.rule->name,
                  policy.rule->span == MaskSpan::tensor ? fmt::format("{}", policy.share)
                                                        : unit::to_string(policy.pattern));
  const auto choice = [&](const char* key, auto value, auto usual,
                          const std::vector<std::string>& names) {
    if (value != usual) out += fmt::format(",{}={}", key, names[static_cast<std::size_t>(value)]);
  };
  const auto number = [&](const char* key, std::int64_t value, std::int64_t usual) {
    if (value != usual) out += fmt::format(",{}={}", key, value);
  };
  choice("remainder", policy.remainder, defaults.remainder, kRemainders);
  choice("axis", policy.axis, defaults.axis, kMaskAxes);
  choice("layout", policy.layout, defaults.layout, kLayouts);
  choice("repair", policy.repair, defaults.repair, kRepairs);
  number("refresh", policy.refresh, default_refresh(*policy.rule));
  choice("law", policy.law, defaults.law, kLaws);
  number("history", policy.history, defaults.history);
  choice("at", policy.propagated, defaults.propagated, kPlaces);
  return out + ")";
}

void require_single_elements(const char* rule, const unit::Pattern& pattern) {
  if (pattern.pairwise)
    throw Error(std::string(rule) + "(" + unit::to_string(pattern) +
                "): expected N:M without .pairwise, because this rule judges single elements");
}

double kept_share(const MaskPolicy& policy) {
  if (policy.rule->span != MaskSpan::tensor)
    return static_cast<double>(policy.pattern.kept) / policy.pattern.group;
  return policy.rule->threshold == nullptr ? policy.share : 1;
}

std::int64_t decision_size(const MaskPolicy& policy) {
  const std::int64_t m = policy.pattern.group;
  switch (policy.rule->span) {
    case MaskSpan::group:
      return m;
    case MaskSpan::tile:
      return m * m;
    default:
      return 1;
  }
}

}  // namespace numemu::policies
