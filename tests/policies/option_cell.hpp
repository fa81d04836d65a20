// How the tables of the documents show an option of a policy or a tuning step.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "policies/canonical_json.hpp"
#include "policies/policy.hpp"

namespace numemu::policies::test {

inline std::string join(const std::vector<std::string>& parts, const std::string& between) {
  return fmt::format("{}", fmt::join(parts, between));
}

/// "`weight`: 1, 0 to 100: factor on the penalty".
inline std::string option_cell(const Option& option) {
  const std::string key = fmt::format("`{}`: ", option.key);
  const std::string range =
      fmt::format(", {} to {}: ", ecmascript_number(option.least), ecmascript_number(option.most));
  const std::string help(option.help);
  if (const auto* number = std::get_if<double*>(&option.value))
    return key + ecmascript_number(**number) + range + help;
  if (const auto* whole = std::get_if<std::int64_t*>(&option.value))
    return key + std::to_string(**whole) + range + help;
  if (const auto* flag = std::get_if<bool*>(&option.value))
    return key + (**flag ? "true" : "false") + ", false or true: " + help;
  const std::string texts =
      option.kind != nullptr ? "a " + std::string(option.kind->name) : join(option.choices, " or ");
  return key + *std::get<std::string*>(option.value) + ", " + texts + ": " + help;
}

}  // namespace numemu::policies::test
